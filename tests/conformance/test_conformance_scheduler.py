"""Recorded runs of kube-scheduler: each attempt is answered as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dralloc.conformance import read_lines, run_scheduler

OWN = Path(__file__).resolve().parents[1] / "data" / "scheduler_runs"


def runs(folder: Path) -> dict[str, Any]:
    files = sorted(folder.glob("*.json.gz"))
    return {file.name: {"name": file.name, **next(iter(read_lines(file)))} for file in files}


def test_every_attempt_of_every_run_agrees() -> None:
    """Taints, affinity, spreading, ports, images, sidecars, requests of whole pods, 150 nodes; four profiles."""
    outcomes = [run_scheduler(run) for run in runs(OWN).values()]
    assert len(outcomes) >= 5
    assert [(one.name, one.difference) for one in outcomes if not one.passed] == []


def test_every_attempt_of_other_runs_agrees(shared: Path) -> None:
    outcomes = [run_scheduler(run) for run in runs(shared / "control-plane" / "recorded").values()]
    assert len(outcomes) >= 16
    assert [(one.name, one.difference) for one in outcomes if not one.passed] == []


def _score(run: Any) -> None:
    attempt = next(one for one in run["attempts"] if one["scores"])
    next(iter(attempt["scores"].values()))["NodeResourcesFit"] += 1


def _message(run: Any) -> None:
    next(one for one in run["attempts"] if "message" in one)["message"] += "!"


def _feasible(run: Any) -> None:
    [one for one in run["attempts"] if one["outcome"] == "bound"][-1]["feasible"] -= 1


def _node(run: Any) -> None:
    attempt = next(one for one in run["attempts"] if len(set(one["totals"].values())) > 1)
    attempt["node"] = min(attempt["totals"], key=lambda node: attempt["totals"][node])


def _device(run: Any) -> None:
    held = next(claim["allocation"]["devices"] for claim in run["claims"].values() if "allocation" in claim)
    held["results"][0]["device"] = "another"


@pytest.mark.parametrize(
    ("changed", "where"),
    [(_score, "scores."), (_message, "message"), (_feasible, "feasible"), (_node, "best"), (_device, "device")],
)
def test_whatever_is_otherwise_is_found(changed: Callable[[Any], None], where: str) -> None:
    run = copy.deepcopy(runs(OWN)["most-allocated.json.gz"])
    changed(run)
    assert where in run_scheduler(run).difference
