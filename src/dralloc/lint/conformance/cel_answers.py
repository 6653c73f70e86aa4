"""Running CEL cases: one expression on one device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dralloc.lint.conformance.cases import Json
from dralloc.lint.conformance.differences import comparable
from dralloc.lint.conformance.outcomes import CaseOutcome
from dralloc.objects.features import ALL_FEATURES
from kubecel import (
    ALL_GATES,
    CelCompileError,
    CelRuntimeError,
    FeatureGates,
    compile_selector,
    device_from_wire,
    estimated_cost,
)

__all__ = ["run_cel"]

COMPILE_ERROR = "compile-error"
RUNTIME_ERROR = "runtime-error"


@dataclass(frozen=True, slots=True)
class _Answer:
    """The value of an expression (true, false or the kind of error), the error's text, and costs where known."""

    value: bool | str
    message: str = ""
    cost: int | None = None
    highest_cost: int | None = None


def run_cel(case: Json) -> CaseOutcome:
    """Evaluate the case's expression and compare the answer with the recorded one.

    Cases are probes (``expect``: true, false, "compile-error" or "runtime-error") or rows of upstream's own table
    (``actualCompileError``, ``actualMatchError``, ``actualMatch``). Of rows, the text of errors and the costs are
    compared as well: ``actualCost`` if the evaluation ends without an error, and the estimate ``actualMaxCost``. Of
    syntax errors only the place counts: the rest of upstream's text lists the tokens of its parser generator.
    """
    answer = _answer(case)
    profile = f"cel/{case.get('category') or case.get('table') or 'other'}"
    return CaseOutcome(
        case["name"],
        profile,
        answer.value,
        next(_differences(case, answer), ""),
    )


def _answer(case: Json) -> _Answer:
    expression: str = case["expression"]
    gates = (
        _gates(case) if case.get("envType") == "NewExpressions" else ALL_GATES
    )
    device: dict[str, Any] = case["device"]
    highest: int | None = None
    try:
        selector = compile_selector(expression, gates)
        highest = estimated_cost(expression, gates)
        value, cost = selector.evaluate(
            device_from_wire(device["driver"], device)
        )
    except CelCompileError as error:
        return _Answer(COMPILE_ERROR, str(error))
    except CelRuntimeError as error:
        return _Answer(RUNTIME_ERROR, str(error), None, highest)
    return _Answer(value, "", cost, highest)


def _gates(case: Json) -> FeatureGates:
    features = ALL_FEATURES.switched(case.get("features") or {})
    return FeatureGates(
        features.ConsumableCapacity, features.ListTypeAttributes
    )


def _table_value(case: Json) -> bool | str:
    if case["actualCompileError"] is not None:
        return COMPILE_ERROR
    return (
        bool(case["actualMatch"])
        if case["actualMatchError"] is None
        else RUNTIME_ERROR
    )


def _differences(case: Json, answer: _Answer) -> Iterator[str]:
    expected = case["expect"] if "expect" in case else _table_value(case)
    if answer.value != expected or type(answer.value) is not type(expected):
        yield f"expected {expected!r}, got {answer.value!r}"
    if "expect" in case:
        return
    recorded = case["actualCompileError"] or case["actualMatchError"] or ""
    if comparable(recorded) != comparable(answer.message):
        yield f"error: expected {recorded!r}, got {answer.message!r}"
    if answer.cost is not None and answer.cost != case["actualCost"]:
        yield f"cost: expected {case['actualCost']}, got {answer.cost}"
    if answer.highest_cost != case["actualMaxCost"]:
        yield f"estimated cost: expected {case['actualMaxCost']}, got {answer.highest_cost}"
