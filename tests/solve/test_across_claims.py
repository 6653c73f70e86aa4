"""Constraints over the claims of a pod or of a group: every search and the checker agree with the referee."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from across_strategies import bound_claims
from dralloc.check import check, violations
from dralloc.objects.choices import Options, Thresholds
from dralloc.problem import Problem
from dralloc.problem.solution import Status
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.policies import place
from examples import INDEPENDENT, examples

REFEREE = settings(
    max_examples=examples(50), backend=INDEPENDENT, deadline=None
)


@REFEREE
@given(bound_claims())
def test_the_optimum_is_what_the_referee_finds(problem: Problem) -> None:
    solution = solve(problem, hint=first_fit(problem))
    check(problem, solution)
    assert solution.status is Status.OPTIMAL
    assert tuple(tier.value for tier in solution.tiers) == brute_force.best(
        problem
    )


@REFEREE
@given(bound_claims())
def test_first_fit_keeps_them(problem: Problem) -> None:
    solution = first_fit(problem)
    check(problem, solution)
    assert brute_force.feasible(problem, solution)
    assert solution.placements == first_fit(problem, pruning=False).placements


@REFEREE
@given(bound_claims(), st.sampled_from(("best-fit", "fgd", "density")))
def test_policies_keep_them(problem: Problem, policy: str) -> None:
    assert violations(problem, place(problem, policy)) == []


@REFEREE
@given(bound_claims(max_pods=2))
def test_the_checker_accepts_what_the_referee_accepts(problem: Problem) -> None:
    for solution in brute_force.every_solution(_unbound(problem)):
        assert (not violations(problem, solution)) == brute_force.feasible(
            problem, solution
        )


@REFEREE
@given(bound_claims(max_pods=4, groups=False))
def test_bundles_of_several_claims_are_counted_and_packed(
    problem: Problem,
) -> None:
    exact = solve(problem, Options(per_device=True))
    for thresholds in (
        Thresholds(),
        Thresholds(pattern_effort=0, listed_patterns=0),
    ):
        solution = solve(problem, Options(thresholds=thresholds))
        check(problem, solution)
        assert [tier.value for tier in solution.tiers] == [
            tier.value for tier in exact.tiers
        ]


def _unbound(problem: Problem) -> Problem:
    demands = (
        replace(
            demand,
            claims=tuple(
                replace(claim, constraints=()) for claim in demand.claims
            ),
        )
        for demand in problem.demands
    )
    return replace(problem, demands=tuple(demands))
