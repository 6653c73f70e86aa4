"""What was probed of upstream, and upstream's own cases where they lie beside the checkout."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubecel import (
    ALL_GATES,
    FeatureGates,
    compile_selector,
    device_from_wire,
    estimated_cost,
)
from kubecel.errors import CelCompileError, CelRuntimeError

_FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "upstream"
_PROBES = Path(__file__).resolve().parents[1] / "data" / "cel_probes.jsonl.gz"


def _read(path: Path) -> Iterator[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    yield from map(json.loads, text.splitlines())


def _answer(
    case: dict[str, Any], **options: Any
) -> tuple[bool | str, str, int | None]:
    """The answer or the kind of error, the error's text, and the cost."""
    device = case["device"]
    try:
        selector = compile_selector(case["expression"], **options)
        matches, cost = selector.evaluate(
            device_from_wire(device.get("driver", ""), device)
        )
    except CelCompileError as error:
        return "compile-error", str(error), None
    except CelRuntimeError as error:
        return "runtime-error", str(error), None
    return matches, "", cost


def _gates(case: dict[str, Any]) -> FeatureGates:
    if case["envType"] != "NewExpressions":
        return ALL_GATES
    switches = case["features"]
    return FeatureGates(
        switches.get("ConsumableCapacity", True),
        switches.get("ListTypeAttributes", True),
    )


def test_probes() -> None:
    wrong = []
    for probe in _read(_PROBES):
        expected = {"true": True, "false": False}.get(
            probe["expect"], probe["expect"]
        )
        answer, text, _ = _answer(probe)
        if answer != expected:
            wrong.append((probe["expression"], expected, answer, text))
    assert wrong == []


@pytest.mark.skipif(
    not _FOLDER.is_dir(), reason="upstream's cases are not beside this checkout"
)
def test_cases() -> None:
    wrong = []
    for case in _read(_FOLDER / "cel_cases.jsonl"):
        answer, text, cost = _answer(case, gates=_gates(case))
        expected: bool | str = case["actualMatch"]
        wanted = ""
        if case["actualCompileError"]:
            expected, wanted = "compile-error", case["expectCompileError"]
        elif case["actualMatchError"]:
            expected, wanted = "runtime-error", case["expectMatchError"]
        right = answer == expected and wanted.replace("(any)", "") in text
        if not right or (cost is not None and cost != case["actualCost"]):
            wrong.append(
                (case["name"], case["expression"], expected, answer, text, cost)
            )
    assert wrong == []


@pytest.mark.skipif(
    not _FOLDER.is_dir(), reason="upstream's cases are not beside this checkout"
)
def test_the_estimates_of_cases() -> None:
    wrong = []
    for case in _read(_FOLDER / "cel_cases.jsonl"):
        if case["actualMaxCost"] is None:
            continue
        estimate = estimated_cost(case["expression"], _gates(case))
        if estimate != case["actualMaxCost"] or estimate < (
            case["actualCost"] if case["actualMatch"] else 0
        ):
            wrong.append(
                (
                    case["name"],
                    case["expression"],
                    case["actualMaxCost"],
                    estimate,
                )
            )
    assert wrong == []
