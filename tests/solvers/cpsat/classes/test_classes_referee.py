"""Counting over classes against deciding on every device, on problems with few kinds of pods and nodes."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from crowd_strategies import crowds
from dralloc.check import check
from dralloc.problem import Problem
from dralloc.solution import Solution, Status
from dralloc.solvers.cpsat import Options, solve
from dralloc.solvers.cpsat.candidates import survey
from dralloc.solvers.cpsat.division import divide

THOROUGH = settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def answer(problem: Problem, *, per_device: bool) -> Solution:
    solution = solve(problem, Options(per_device=per_device))
    check(problem, solution)
    assert solution.status is Status.OPTIMAL
    return solution


@THOROUGH
@given(crowds())
def test_classes_are_as_good_as_devices(problem: Problem) -> None:
    counted = answer(problem, per_device=False)
    assert not divide(problem, lambda demands: survey(problem, demands)).left
    one_by_one = answer(problem, per_device=True)
    assert [tier.value for tier in counted.tiers] == [tier.value for tier in one_by_one.tiers]
