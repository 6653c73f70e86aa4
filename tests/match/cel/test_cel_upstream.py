"""Upstream's own cases and what was probed of upstream, where a checkout has them beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dralloc.errors import CelCompileError, CelRuntimeError
from dralloc.features import ALL_FEATURES
from dralloc.match.cel import compile_selector, device_from_wire

_FOLDER = Path(__file__).resolve().parents[3].parent / "shared" / "upstream"
_KNOWN = 'device.capacity["d"].x.compareTo(quantity("1Ei")) < 0 && device.capacity["d"].x.isInteger()'
"""Upstream's comparison changes how the left quantity is held, and with that what it says about itself."""

pytestmark = pytest.mark.skipif(not _FOLDER.is_dir(), reason="upstream's cases are not beside this checkout")


def _read(name: str) -> Iterator[dict[str, Any]]:
    path = _FOLDER / name
    if path.exists():
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def _answer(case: dict[str, Any], **options: Any) -> tuple[bool | str, str, int | None]:
    """The answer or the kind of error, the error's text, and the cost."""
    device = case["device"]
    try:
        selector = compile_selector(case["expression"], **options)
        matches, cost = selector.evaluate(device_from_wire(device.get("driver", ""), device))
    except CelCompileError as error:
        return "compile-error", str(error), None
    except CelRuntimeError as error:
        return "runtime-error", str(error), None
    return matches, "", cost


def test_probes() -> None:
    wrong = []
    for probe in _read("cel_probes.jsonl"):
        expected = {"true": True, "false": False}.get(probe["expect"], probe["expect"])
        answer, text, _ = _answer(probe)
        if answer != expected and probe["expression"] != _KNOWN:
            wrong.append((probe["expression"], expected, answer, text))
    assert wrong == []


def test_cases() -> None:
    wrong = []
    for case in _read("cel_cases.jsonl"):
        features = ALL_FEATURES.switched(case["features"])
        answer, text, cost = _answer(case, features=features, new_expression=case["envType"] == "NewExpressions")
        expected: bool | str = case["actualMatch"]
        wanted = ""
        if case["actualCompileError"]:
            expected, wanted = "compile-error", case["expectCompileError"]
        elif case["actualMatchError"]:
            expected, wanted = "runtime-error", case["expectMatchError"]
        right = answer == expected and wanted.replace("(any)", "") in text
        if not right or (cost is not None and cost != case["actualCost"]):
            wrong.append((case["name"], case["expression"], expected, answer, text, cost))
    assert wrong == []
