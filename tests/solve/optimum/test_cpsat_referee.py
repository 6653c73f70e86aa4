"""The exact model against exhaustive search, on random problems with every feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import brute_force
import strategies
from dralloc.check import check
from dralloc.objects.choices import Goal
from dralloc.problem import Problem, indices
from dralloc.problem.solution import Placement, Status
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.objective import DemandSubset, after_weight
from examples import examples

THOROUGH = settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
BRIEF = settings(THOROUGH, max_examples=examples(100))


PROBLEMS = strategies.problems()


def optimum(problem: Problem, goal: Goal = Goal.NONE) -> tuple[int, ...]:
    solution = solve(problem, Options(goal=goal))
    check(problem, solution)
    assert solution.status is Status.OPTIMAL
    return tuple(tier.value for tier in solution.tiers)


@THOROUGH
@given(PROBLEMS)
def test_weight_and_alternatives(problem: Problem) -> None:
    assert optimum(problem) == brute_force.best(problem)


@THOROUGH
@given(PROBLEMS, st.booleans())
def test_devices_and_fragmentation(problem: Problem, devices: bool) -> None:
    goal = Goal.FEWEST_DEVICES if devices else Goal.LEAST_FRAGMENTATION
    best, everything = (
        brute_force.best(problem),
        DemandSubset(problem, indices(problem.demands)),
    )
    *_, counted = after_weight(goal)
    costs = (
        counted.cost(everything, solution.placements)
        for solution in brute_force.solutions(problem)
        if worth(problem, solution.placements) == best
    )
    assert optimum(problem, goal) == (*best, min(costs))


@THOROUGH
@given(PROBLEMS)
def test_fewest_nodes(problem: Problem) -> None:
    best = brute_force.best(problem)
    count = len(problem.nodes)
    some = chain.from_iterable(
        combinations(range(count), size) for size in range(count + 1)
    )
    least = next(
        len(nodes)
        for nodes in some
        if brute_force.best(limited_to(problem, nodes)) == best
    )
    assert optimum(problem, Goal.FEWEST_NODES) == (*best, least)


@BRIEF
@given(PROBLEMS)
def test_spread_changes_nothing_before_it(problem: Problem) -> None:
    values = optimum(problem, Goal.SPREAD)
    assert values[:2] == brute_force.best(problem)
    assert values[2] <= len(problem.demands)


@BRIEF
@given(PROBLEMS)
def test_an_answer_from_exhaustive_search_is_a_fine_hint(
    problem: Problem,
) -> None:
    hint = brute_force.best_solution(problem)
    solution = solve(problem, Options(), hint)
    assert solution.status is Status.OPTIMAL
    assert solution.placements == hint.placements


def limited_to(problem: Problem, nodes: Sequence[int]) -> Problem:
    demands = (
        replace(
            demand,
            nodes=tuple(
                node
                for node in problem.candidate_nodes(demand)
                if node in nodes
            ),
        )
        for demand in problem.demands
    )
    return replace(problem, demands=tuple(demands))


def worth(problem: Problem, placements: Sequence[Placement]) -> tuple[int, int]:
    weight = rank = 0
    for placement in placements:
        demand = problem.demands[placement.demand]
        weight += demand.weight
        for claim, grants in zip(demand.claims, placement.grants, strict=True):
            for request, alternative in {
                (grant.request, grant.alternative) for grant in grants
            }:
                rank += claim.requests[request].alternatives[alternative].rank
    return weight, rank
