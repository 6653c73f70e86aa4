"""Running CEL cases: one expression on one device."""

from __future__ import annotations

from typing import Any

from dralloc.conformance.allocation import Outcome
from dralloc.conformance.cases import Json
from dralloc.errors import CelCompileError, CelRuntimeError
from dralloc.features import ALL_FEATURES
from dralloc.match.cel import compile_selector, device_from_wire

__all__ = ["run_cel"]

COMPILE_ERROR = "compile-error"
RUNTIME_ERROR = "runtime-error"


def run_cel(case: Json) -> Outcome:
    """Evaluate the case's expression and compare the answer with the recorded one.

    Cases are probes (``expect``: true, false, "compile-error" or "runtime-error") or rows of upstream's own table
    (``actualCompileError``, ``actualMatchError``, ``actualMatch``).
    """
    actual, message = _evaluate(case)
    expected = case["expect"] if "expect" in case else _table_answer(case)
    difference = (
        "" if actual == expected and type(actual) is type(expected) else f"expected {expected!r}, got {actual!r}"
    )
    text = case.get("expectCompileError") or case.get("expectMatchError") or ""
    if not difference and text not in ("", "(any)") and text not in message:
        difference = f"error: expected one with {text!r}, got {message!r}"
    return Outcome(case["name"], case.get("category") or case.get("table") or "cel", actual, difference)


def _evaluate(case: Json) -> tuple[bool | str, str]:
    features = ALL_FEATURES.switched(case.get("features") or {})
    device: dict[str, Any] = case["device"]
    try:
        selector = compile_selector(
            case["expression"], features, new_expression=case.get("envType") == "NewExpressions"
        )
        return selector.matches(device_from_wire(device["driver"], device)), ""
    except CelCompileError as error:
        return COMPILE_ERROR, str(error)
    except CelRuntimeError as error:
        return RUNTIME_ERROR, str(error)


def _table_answer(case: Json) -> bool | str:
    if case["actualCompileError"] is not None:
        return COMPILE_ERROR
    if case["actualMatchError"] is not None:
        return RUNTIME_ERROR
    return bool(case["actualMatch"])
