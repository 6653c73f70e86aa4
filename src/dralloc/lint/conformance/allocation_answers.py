"""Running allocation cases and comparing the answers with what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dralloc.check import check
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.write import allocations
from dralloc.lint.conformance.cases import AllocationCase, Json
from dralloc.lint.conformance.differences import comparable, first_difference
from dralloc.lint.conformance.outcomes import CaseOutcome
from dralloc.objects.errors import FatalError
from dralloc.problem.indices import numbered
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve

__all__ = ["name_shares", "run_first_fit", "run_optimal"]


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
    solution = solve(
        compiled.problem, Options(), hint=first_fit(compiled.problem)
    )
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


def _single_answer(
    compiled: CompiledCluster, solution: Solution
) -> dict[str, Any]:
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
        "errorKind": error
        and ("fatal" if isinstance(error, FatalError) else "node"),
        # Upstream needs one step to see that there is nothing to allocate.
        "allocateOne": solution.steps if demands else 1,
    }


def _batch_answer(
    case: AllocationCase, compiled: CompiledCluster, solution: Solution
) -> dict[str, Any]:
    demands = compiled.problem.demands
    demand_indices = {
        demand.key.name: demand_index
        for demand_index, demand in numbered(demands)
    }
    nodes = {
        placement.demand: compiled.problem.nodes[placement.node].name
        for placement in solution.placements
    }
    written = allocations(compiled, solution)
    pods: list[dict[str, Any]] = []
    for name in case.pods:
        demand_index, error = (
            demand_indices[name],
            solution.errors.get(demand_indices[name]),
        )
        allocated = (
            [
                written[claim.key].wire_form()
                for claim in demands[demand_index].claims
            ]
            if demand_index in nodes
            else None
        )
        fared = {
            "node": nodes.get(demand_index),
            "allocations": allocated,
            "error": str(error) if error else None,
        }
        pods.append({"name": name, **fared})
    # Over all pods together, so that a share of a claim that several of them use has one name.
    name_shares(
        [allocation for pod in pods for allocation in pod["allocations"] or ()]
    )
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
    expected, answered = (
        {"pods": [*map(_comparable_answer, batch["pods"])]}
        for batch in (case.expected, actual)
    )
    return first_difference(expected, answered)


def _comparable_answer(answer: Json) -> dict[str, Any]:
    """Return the answer without its number of steps, and with the words of its error that can be the same."""
    without_steps = {
        key: value for key, value in answer.items() if key != "allocateOne"
    }
    return {
        **without_steps,
        "error": answer["error"] and comparable(answer["error"]),
    }


def _table_difference(case: AllocationCase, actual: Json) -> str:
    """Compare with a row of upstream's tables, where order counts only if the row says so."""
    # Upstream's tables have claims without a namespace.
    error_text = (actual["error"] or "").replace("default/", "")
    if case.error_contains and case.error_contains not in error_text:
        return f"error: expected one with {case.error_contains!r}, got {actual['error']!r}"
    expected, answered = (
        _comparable_answer(case.expected),
        _comparable_answer(actual),
    )
    # The tables have one fixed ID for all shares: only whether there is one is compared.
    for answer in (expected, answered):
        if answer["result"]:
            answer["result"] = list(map(_without_share_names, answer["result"]))
    if (
        expected["result"] is None
        or answered["result"] is None
        or not all(case.exact or ())
    ):
        expected, answered = _unordered(expected), _unordered(answered)
    return first_difference(expected, answered)


def _without_share_names(allocation: Json) -> dict[str, Any]:
    results = [
        {**result, "shareID": "shareID" in result}
        for result in allocation["devices"].get("results", ())
    ]
    return {
        **allocation,
        "devices": {**allocation["devices"], "results": results},
    }


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unordered(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_unordered(item) for item in value), key=repr)
    return value
