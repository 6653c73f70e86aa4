"""The recorded answers of upstream, with the corrected rules: first fit gives exactly these, the optimum none worse."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from dralloc.conformance import AllocationCase, read_allocation_case, read_lines, run_first_fit, run_optimal

CASES = Path(__file__).resolve().parents[1] / "data" / "recorded_cases.jsonl.gz"

PROFILES = ["core", "prioritized", "constraints", "partitionable", "consumable", "admin_taints", "mixed", "batch"]

DIFFERENT = {
    "all-constraint-is-fatal": "first fit stops at a device that breaks a constraint, the optimum takes another "
    "alternative or leaves the claim",
    "admin-blocks-device": "first fit lets admin access of one claim keep a device from later claims of the pod",
}
"""Kept behaviors of upstream that the optimum does not imitate, with what it does instead."""


@cache
def cases(profile: str) -> tuple[AllocationCase, ...]:
    return tuple(read_allocation_case(case) for case in read_lines(CASES) if case["profile"] == profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_first_fit_answers_as_recorded(profile: str) -> None:
    outcomes = [run_first_fit(case) for case in cases(profile)]
    assert len(outcomes) >= 60
    assert [(one.name, one.difference) for one in outcomes if not one.passed] == []


@pytest.mark.parametrize("profile", [profile for profile in PROFILES if profile != "batch"])
def test_the_optimum_finds_a_solution_exactly_when_first_fit_does(profile: str) -> None:
    chosen = [case for case in cases(profile) if not case.expected["error"] and not case.relies_on]
    outcomes = [run_optimal(case) for case in chosen]
    assert [(one.name, one.difference) for one in outcomes if not one.passed] == []


def test_where_a_kept_behavior_decides_the_optimum_may_differ() -> None:
    for profile in PROFILES:
        for case in cases(profile):
            assert set(case.relies_on) <= set(DIFFERENT), case.name
            if case.relies_on and not case.pods and case.expected["result"] is not None:
                assert run_optimal(case).passed, case.name


def test_the_optimum_never_places_fewer_pods_than_first_fit() -> None:
    outcomes = [run_optimal(case) for case in cases("batch")]
    assert [(one.name, one.difference) for one in outcomes if not one.passed] == []
