"""Running allocation cases and comparing the answers with what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dralloc.check import check
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.write import allocations
from dralloc.lint.conformance.cases import AllocationCase, Json
from dralloc.lint.conformance.difference import comparable, first_difference
from dralloc.lint.conformance.document import OutcomeDocument
from dralloc.objects.errors import FatalError
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve

__all__ = ["CaseOutcome", "name_shares", "run_first_fit", "run_optimal"]


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """How a case went: the answer in the form of the recorded one, and the first difference (empty: it passes)."""

    name: str
    profile: str
    actual: Any
    difference: str

    @property
    def passed(self) -> bool:
        """Whether the answer is the recorded one."""
        return not self.difference

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain data, ready for JSON."""
        return OutcomeDocument.of(self).to_dict()


def run_first_fit(case: AllocationCase, *, pruning: bool = True) -> CaseOutcome:
    """Answer the case as upstream would and compare everything, errors word by word.

    Only the details of syntax errors differ: upstream lists the tokens of its parser generator there.
    Without pruning the steps of the search are compared, too, where a row of upstream's tables recorded them.
    """
    compiled = compile_cluster(case.cluster, features=case.features)
    solution = first_fit(compiled.problem, pruning=pruning)
    check(compiled.problem, solution)
    actual = (
        _batch_answer(case, compiled, solution)
        if case.pods
        else _single_answer(compiled, solution)
    )
    difference = _difference(case, actual)
    if not pruning and case.exact is not None and not difference:
        expected, steps = case.expected["allocateOne"], actual["allocateOne"]
        difference = (
            ""
            if steps == expected
            else f"allocateOne: expected {expected} steps, got {steps}"
        )
    return CaseOutcome(case.name, case.profile, actual, difference)


def run_optimal(case: AllocationCase) -> CaseOutcome:
    """Answer the case with the exact model.

    It passes if there is a solution exactly where one was recorded; in a batch, if at least as many pods are placed.
    """
    compiled = compile_cluster(case.cluster, features=case.features)
    solution = solve(compiled.problem, Options(), hint=first_fit(compiled.problem))
    check(compiled.problem, solution)
    if case.pods:
        actual = _batch_answer(case, compiled, solution)
        recorded = sum(pod["node"] is not None for pod in case.expected["pods"])
        placed = len(solution.placements)
        difference = (
            ""
            if placed >= recorded
            else f"pods: expected at least {recorded} placed, got {placed}"
        )
    else:
        actual = _single_answer(compiled, solution)
        exists, recorded = (
            actual["result"] is not None,
            case.expected["result"] is not None,
        )
        difference = (
            ""
            if exists == recorded
            else f"result: expected {_some(recorded)}, got {_some(exists)}"
        )
    return CaseOutcome(case.name, case.profile, actual, difference)


def _some(exists: bool) -> str:
    return "a solution" if exists else "none"


def _single_answer(compiled: CompiledCluster, solution: Solution) -> dict[str, Any]:
    error = solution.errors.get(0)
    written = allocations(compiled, solution)
    demands = compiled.problem.demands
    fits = len(solution.placements) == len(demands)
    result = (
        [
            written[claim.key].wire_form()
            for demand in demands
            for claim in demand.claims
        ]
        if fits
        else None
    )
    name_shares(result or ())
    return {
        "result": result,
        "error": str(error) if error else None,
        "errorKind": error and ("fatal" if isinstance(error, FatalError) else "node"),
        # Upstream needs one step to see that there is nothing to allocate.
        "allocateOne": solution.steps if demands else 1,
    }


def _batch_answer(
    case: AllocationCase, compiled: CompiledCluster, solution: Solution
) -> dict[str, Any]:
    demands = compiled.problem.demands
    numbers = {demand.key.name: number for number, demand in enumerate(demands)}
    nodes = {
        placement.demand: compiled.problem.nodes[placement.node].name
        for placement in solution.placements
    }
    written = allocations(compiled, solution)
    pods: list[dict[str, Any]] = []
    for name in case.pods:
        number, error = numbers[name], solution.errors.get(numbers[name])
        allocated = (
            [written[claim.key].wire_form() for claim in demands[number].claims]
            if number in nodes
            else None
        )
        fared = {
            "node": nodes.get(number),
            "allocations": allocated,
            "error": str(error) if error else None,
        }
        pods.append({"name": name, **fared})
    name_shares([allocation for pod in pods for allocation in pod["allocations"] or ()])
    return {"pods": pods}


def name_shares(wire: Sequence[dict[str, Any]]) -> None:
    """Call the shares SHARE-1, SHARE-2, ... in order of appearance."""
    names: dict[str, str] = {}
    for allocation in wire:
        for result in allocation["devices"].get("results", ()):
            if "shareID" in result:
                result["shareID"] = names.setdefault(
                    result["shareID"], f"SHARE-{len(names) + 1}"
                )


def _difference(case: AllocationCase, actual: Json) -> str:
    if case.exact is not None:
        return _table_difference(case, actual)
    if not case.pods:
        return first_difference(
            _comparable_answer(case.expected), _comparable_answer(actual)
        )
    expected, got = (
        {"pods": [*map(_comparable_answer, one["pods"])]}
        for one in (case.expected, actual)
    )
    return first_difference(expected, got)


def _comparable_answer(answer: Json) -> dict[str, Any]:
    """The answer without the effort, which only informs, and the words of its error as far as they can be the same."""
    kept = {key: value for key, value in answer.items() if key != "allocateOne"}
    return {**kept, "error": answer["error"] and comparable(answer["error"])}


def _table_difference(case: AllocationCase, actual: Json) -> str:
    """Compare with a row of upstream's tables, where order counts only if the row says so."""
    if case.error_contains and case.error_contains not in (
        actual["error"] or ""
    ).replace("default/", ""):
        return (
            f"error: expected one with {case.error_contains!r}, got {actual['error']!r}"
        )
    left, right = _comparable_answer(case.expected), _comparable_answer(actual)
    # The tables have one fixed ID everywhere.
    for answer in (left, right):
        answer["result"] = answer["result"] and [
            _without_share_names(one) for one in answer["result"]
        ]
    if left["result"] is None or right["result"] is None or not all(case.exact or ()):
        left, right = _unordered(left), _unordered(right)
    return first_difference(left, right)


def _without_share_names(allocation: Json) -> dict[str, Any]:
    results = [
        {**one, "shareID": "shareID" in one}
        for one in allocation["devices"].get("results", ())
    ]
    return {**allocation, "devices": {**allocation["devices"], "results": results}}


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unordered(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_unordered(item) for item in value), key=repr)
    return value
