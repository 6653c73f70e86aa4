"""Clusters of which nobody has thought: whatever is mixed, answers keep the rules, and bounds hold."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.workloads.varied import varied
from dralloc.check.problem import violations
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Choices, Goal, Options
from dralloc.problem import Problem, indices
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.objective import (
    DemandSubset,
    after_weight,
    placed_weight,
)
from dralloc.solve.optimum.relax import relaxed_bounds
from dralloc.solve.optimum.stopping import Stop
from examples import examples

SECONDS = 10.0
"""For the proof."""


def problem_of(nodes: int, seed: int) -> Problem:
    return compile_cluster(varied(nodes, seed), Choices()).whole


def costs(problem: Problem, solution: Solution) -> list[int]:
    everything = DemandSubset(problem, indices(problem.demands))
    tiers = (*placed_weight(problem), *after_weight(Goal.NONE))
    return [tier.cost(everything, solution.placements) for tier in tiers]


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(10, 40), st.integers(0, 2**32))
def test_no_relaxation_says_less_than_first_fit_places(
    nodes: int, seed: int
) -> None:
    problem = problem_of(nodes, seed)
    first = first_fit(problem)
    assert violations(problem, first) == []
    tiers = (*placed_weight(problem), *after_weight(Goal.NONE))
    weights = [
        problem.demands[placement.demand].weight
        for placement in first.placements
    ]
    for bound in relaxed_bounds(problem, tiers, Stop()):
        assert list(bound.costs) <= costs(problem, first)
        reached = [sum(map(level.of, weights)) for level in bound.levels]
        limits = bound.most_of_optimum(reached)
        assert reached[:1] <= limits[:1]


@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(1, 3), st.integers(0, 2**32))
def test_the_optimum_is_within_all_bounds(nodes: int, seed: int) -> None:
    """A few steps of the search, beside what the exact model makes of it."""
    problem = problem_of(nodes, seed)
    first = first_fit(problem)
    quick = solve(problem, Options(steps=2), hint=first)
    assert violations(problem, quick) == []
    assert costs(problem, quick) <= costs(problem, first)
    exact = Options(per_device=True, time_limit=SECONDS)
    known = solve(problem, exact, hint=quick)
    assert violations(problem, known) == []
    if not known.tiers[0].proven:
        return
    assert known.tiers[0].value <= quick.tiers[0].bound
    assert quick.most_placed is not None
    assert len(known.placements) <= quick.most_placed
