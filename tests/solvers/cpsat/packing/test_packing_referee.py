"""Packing items into bins against deciding on every device, on problems that would be counted otherwise."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings

import brute_force
from crowd_strategies import crowds
from dralloc.check import check
from dralloc.problem import Problem
from dralloc.solution import Status
from dralloc.solvers.cpsat import Options, division, solve
from dralloc.solvers.cpsat.candidates import survey
from dralloc.solvers.cpsat.packing import component, diving, unit_classes

EXAMPLES = int(os.environ.get("DRALLOC_PACKING_EXAMPLES", "40"))
FEW = 4
"""So many demands, or fewer, are tried in every option."""

THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


SETTINGS = {
    "patterns": {},
    "amounts": {(unit_classes, "_FEW_AMOUNTS"): 0},
    "dives": {(component, "_ALWAYS"): 0, (component, "_FIRST"): 0, (diving, "_FEW"): 1},
}


@pytest.fixture(scope="module", autouse=True, params=list(SETTINGS))
def too_many_patterns(request: pytest.FixtureRequest) -> Iterator[None]:
    """No bin's patterns are listed, as if they were too many.

    In turn: nor are those of shared devices; and there are no packings, so that columns come from pricing alone.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(division, "_MOST_EFFORT", 0)
        for (module, name), value in SETTINGS[request.param].items():
            patch.setattr(module, name, value)
        yield


def packed(problem: Problem) -> bool:
    return bool(division.divide(problem, lambda demands: survey(problem, demands)).packed)


@THOROUGH
@given(crowds())
def test_packing_is_as_good_as_devices(problem: Problem) -> None:
    assume(packed(problem))
    found = solve(problem, Options())
    check(problem, found)
    one_by_one = solve(problem, Options(per_device=True))
    assert found.status is Status.OPTIMAL
    assert [tier.value for tier in found.tiers] == [tier.value for tier in one_by_one.tiers]


@THOROUGH
@given(crowds().filter(lambda problem: len(problem.demands) <= FEW))
def test_packing_is_as_good_as_anything(problem: Problem) -> None:
    assume(packed(problem))
    assert tuple(tier.value for tier in solve(problem, Options()).tiers) == brute_force.best(problem)


@THOROUGH
@given(crowds())
def test_bounds_hold_when_time_is_short(problem: Problem) -> None:
    assume(packed(problem))
    found = solve(problem, Options(time_limit=0.001))
    check(problem, found)
    weight, best = found.tiers[0], solve(problem, Options(per_device=True)).tiers[0]
    assert weight.value <= best.value <= weight.bound
