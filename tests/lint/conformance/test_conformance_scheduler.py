"""Recorded runs of kube-scheduler: each attempt is answered as it was."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dralloc.cli import app
from dralloc.lint.conformance import read_lines, run_scheduler
from dralloc.lint.conformance.replay import Replay

OWN = Path(__file__).resolve().parents[2] / "data" / "scheduler_runs"


def runs(folder: Path) -> dict[str, Any]:
    files = sorted(folder.glob("*.json.gz"))
    return {
        file.name: {"name": file.name, **next(iter(read_lines(file)))}
        for file in files
    }


def test_every_attempt_of_every_run_agrees() -> None:
    """Taints, affinity, spreading, ports, images, sidecars, requests of whole pods, 150 nodes; five profiles.

    In the runs ``footprint-*`` devices take of CPU, memory and huge pages of nodes.
    The numbered runs have partitions, shared adapters, adapters of the network, extended resources, prioritized lists
    and claims that pods share, several for a pod. Those of groups have gangs, and groups that choose a domain.
    """
    outcomes = [run_scheduler(run) for run in runs(OWN).values()]
    assert len(outcomes) >= 40
    assert [
        (outcome.name, outcome.difference)
        for outcome in outcomes
        if not outcome.passed
    ] == []


def test_every_attempt_of_other_runs_agrees(shared: Path) -> None:
    outcomes = [
        run_scheduler(run)
        for run in runs(shared / "control-plane" / "recorded").values()
    ]
    assert len(outcomes) >= 16
    assert [
        (outcome.name, outcome.difference)
        for outcome in outcomes
        if not outcome.passed
    ] == []


def _score(run: Any) -> None:
    attempt = next(attempt for attempt in run["attempts"] if attempt["scores"])
    next(iter(attempt["scores"].values()))["NodeResourcesFit"] += 1


def _message(run: Any) -> None:
    next(attempt for attempt in run["attempts"] if "message" in attempt)[
        "message"
    ] += "!"


def _feasible(run: Any) -> None:
    [attempt for attempt in run["attempts"] if attempt["outcome"] == "bound"][
        -1
    ]["feasible"] -= 1


def _node(run: Any) -> None:
    attempt = next(
        attempt
        for attempt in run["attempts"]
        if len(set(attempt["totals"].values())) > 1
    )
    attempt["node"] = min(
        attempt["totals"], key=lambda node: attempt["totals"][node]
    )


def _device(run: Any) -> None:
    held = next(
        claim["allocation"]["devices"]
        for claim in run["claims"].values()
        if "allocation" in claim
    )
    held["results"][0]["device"] = "another"


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        (_score, "scores."),
        (_message, "message"),
        (_feasible, "feasible"),
        (_node, "best"),
        (_device, "device"),
    ],
)
def test_whatever_is_otherwise_is_found(
    changed: Callable[[Any], None], where: str
) -> None:
    run = copy.deepcopy(runs(OWN)["most-allocated.json.gz"])
    changed(run)
    assert where in run_scheduler(run).difference


def test_recorded_bindings_are_held_against_the_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody but the checker finds that the scheduler does not look at resources."""
    run = copy.deepcopy(runs(OWN)["most-allocated.json.gz"])
    bound = next(
        attempt for attempt in run["attempts"] if attempt["outcome"] == "bound"
    )
    run["attempts"], run["claims"] = [bound], {}
    for document in run["objects"]:
        if document["kind"] == "Node":
            document["status"]["allocatable"] = {"cpu": "1m", "pods": "1"}
    monkeypatch.setattr(Replay, "_replay", lambda *_: bound)
    monkeypatch.setattr(Replay, "_device_difference", lambda _: "")
    assert "bindings: " in run_scheduler(run).difference
    assert "no room on node" in run_scheduler(run).difference


def test_a_run_passes_by_a_later_order_after_one_that_differs_in_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both agree on every attempt; two nodes disagree on the size of an image that nobody uses."""
    run = copy.deepcopy(runs(OWN)["most-allocated.json.gz"])
    nodes = [
        document for document in run["objects"] if document["kind"] == "Node"
    ]
    for size, node in enumerate(nodes[:2]):
        images = [{"names": ["unused"], "sizeBytes": size}]
        node["status"]["images"] = images
    differences = iter(["claims of a/b: device", ""])
    monkeypatch.setattr(
        Replay, "_device_difference", lambda _: next(differences)
    )
    assert run_scheduler(run).passed
    assert list(differences) == []


def test_a_claim_that_is_being_allocated_turns_its_next_user_away() -> None:
    """Only where an attempt before has decided about the claim."""
    files = runs(OWN)
    run = next(
        run
        for run in files.values()
        if any(
            "being allocated" in attempt.get("message", "")
            for attempt in run["attempts"]
        )
    )
    assert run_scheduler(run).passed
    decided = next(
        attempt_index
        for attempt_index, attempt in enumerate(run["attempts"])
        if "being allocated" in attempt.get("message", "")
    )
    early = {**run, "attempts": run["attempts"][decided:]}
    assert (
        "expected 'unschedulable', got 'bound'"
        in run_scheduler(early).difference
    )


def test_a_resource_that_nobody_serves_is_found_without_the_plugin_that_says_so_first() -> (
    None
):
    """With the filter of NodeResourcesFit off, DynamicResources looks at what no class of devices stands for."""
    run = runs(OWN)["24-off.json.gz"]
    assert run_scheduler(run).passed


def _trial_score(run: Any) -> None:
    attempt = next(
        attempt
        for attempt in run["attempts"]
        if "cycle" in attempt and not attempt["outcome"] and attempt["scores"]
    )
    next(iter(attempt["scores"].values()))["NodeResourcesFit"] += 1


def _domain_score(run: Any) -> None:
    next(iter(run["placements"][0]["scores"].values()))["NodeResourcesFit"] += 1


def _domain(run: Any) -> None:
    """A domain was not tried."""
    cycle = run["placements"][0]["cycle"]
    bound = next(
        attempt
        for attempt in run["attempts"]
        if attempt.get("cycle") == cycle and attempt["outcome"] == "bound"
    )
    run["attempts"] = [
        attempt
        for attempt in run["attempts"]
        if attempt.get("cycle") != cycle
        or attempt["placement"] == bound["placement"]
    ]


def _group_message(run: Any) -> None:
    next(
        attempt
        for attempt in run["attempts"]
        if "cycle" in attempt and "message" in attempt
    )["message"] += "!"


def _unbound(run: Any) -> None:
    """A group that has enough nodes was not bound."""
    cycle = next(
        attempt["cycle"]
        for attempt in run["attempts"]
        if "cycle" in attempt and attempt["outcome"] == "bound"
    )
    for attempt in run["attempts"]:
        if attempt.get("cycle") == cycle and attempt["outcome"] == "bound":
            attempt.update(outcome="", node="")


@pytest.mark.parametrize(
    ("falsify", "difference"),
    [
        (_trial_score, "scores"),
        (_domain_score, "NodeResourcesFit: expected"),
        (_domain, "placements: expected"),
        (_group_message, "message: expected"),
        (_unbound, "placement: expected [], got one of"),
    ],
)
def test_what_differs_in_a_group_is_named(
    falsify: Callable[[Any], None], difference: str
) -> None:
    run = copy.deepcopy(runs(OWN)["groups-2.json.gz"])
    falsify(run)
    assert difference in run_scheduler(run).difference


def _without_outcome(run: Any) -> Any:
    """The attempt before the last pod was bound, as if its end were not recorded."""
    attempt = [
        attempt
        for attempt in run["attempts"]
        if attempt["outcome"] == "bound" and attempt["totals"]
    ][-2]
    attempt.update(outcome="", node="")
    del attempt["evaluated"], attempt["feasible"]
    return attempt


def test_an_attempt_without_an_outcome_holds_its_node_as_long_as_that_agrees() -> (
    None
):
    run = copy.deepcopy(runs(OWN)["most-allocated.json.gz"])
    _without_outcome(run)
    assert run_scheduler(run).difference == ""


def test_an_attempt_without_an_outcome_is_compared_by_its_scores() -> None:
    run = copy.deepcopy(runs(OWN)["most-allocated.json.gz"])
    next(iter(_without_outcome(run)["scores"].values()))[
        "NodeResourcesFit"
    ] += 1
    assert "scores." in run_scheduler(run).difference


def test_a_pod_whose_binding_was_given_up_leaves_what_it_was_to_get() -> None:
    """It is tried again, and bound; nothing says when it was given up."""
    run = runs(OWN)["33-ratio.json.gz"]
    (given_up,) = [
        attempt["pod"] for attempt in run["attempts"] if not attempt["outcome"]
    ]
    assert [
        attempt["outcome"]
        for attempt in run["attempts"]
        if attempt["pod"] == given_up
    ] == [
        "",
        "bound",
    ]
    assert run_scheduler(run).passed


def test_runs_are_found_below_a_directory(tmp_path: Path) -> None:
    source = next(OWN.glob("*.json.gz"))
    for folder in (tmp_path / "a", tmp_path / "b" / "c"):
        folder.mkdir(parents=True)
        (folder / "run.json.gz").write_bytes(source.read_bytes())
    result = CliRunner().invoke(
        app, ["conformance", str(tmp_path), "--kind", "scheduler", "--json"]
    )
    assert result.exit_code == 0
    assert [
        json.loads(line)["name"] for line in result.stdout.splitlines()
    ] == [
        "a/run.json.gz",
        "b/c/run.json.gz",
    ]
