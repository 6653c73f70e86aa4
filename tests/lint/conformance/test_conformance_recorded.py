"""The recorded answers of upstream, with the corrected rules: first fit gives exactly these, the optimum none worse."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from dralloc.lint.conformance import (
    AllocationCase,
    read_allocation_case,
    read_lines,
    run_first_fit,
    run_optimal,
)

CASES = Path(__file__).resolve().parents[2] / "data" / "recorded_cases.jsonl.gz"

PROFILES = [
    "core",
    "prioritized",
    "constraints",
    "partitionable",
    "consumable",
    "admin_taints",
    "mixed",
    "batch",
]

DIFFERENT = {
    "mixed-1-34": "admin-blocks-device: first fit does not give a later claim of the pod the device that an earlier "
    "one only has admin access to; the optimum does, as holding it with admin access means not holding it",
}
"""Where the optimum has a solution and first fit, for a behavior that is kept from upstream, has none."""


@cache
def cases(profile: str) -> tuple[AllocationCase, ...]:
    return tuple(
        read_allocation_case(case)
        for case in read_lines(CASES)
        if case["profile"] == profile
    )


@pytest.mark.parametrize("pruning", [True, False])
@pytest.mark.parametrize("profile", PROFILES)
def test_first_fit_answers_as_recorded(profile: str, pruning: bool) -> None:
    outcomes = [run_first_fit(case, pruning=pruning) for case in cases(profile)]
    assert len(outcomes) >= 60
    assert [
        (outcome.name, outcome.difference)
        for outcome in outcomes
        if not outcome.passed
    ] == []


@pytest.mark.parametrize(
    "profile", [profile for profile in PROFILES if profile != "batch"]
)
def test_the_optimum_finds_a_solution_exactly_when_first_fit_does(
    profile: str,
) -> None:
    outcomes = [
        run_optimal(case)
        for case in cases(profile)
        if not case.expected["error"]
    ]
    different = {
        outcome.name: outcome.difference
        for outcome in outcomes
        if not outcome.passed
    }
    assert different.keys() == {
        name for name in DIFFERENT if name.startswith(profile)
    }, different
    assert all(
        difference == "result: expected none, got a solution"
        for difference in different.values()
    )


def test_the_optimum_never_places_fewer_pods_than_first_fit() -> None:
    outcomes = [run_optimal(case) for case in cases("batch")]
    assert [
        (outcome.name, outcome.difference)
        for outcome in outcomes
        if not outcome.passed
    ] == []
