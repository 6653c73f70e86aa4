"""Weights that are too large for one tier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import brute_force
import strategies
from crowd_strategies import crowds
from dralloc.check import check
from dralloc.objects.choices import Thresholds
from dralloc.problem import Problem
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.rows import WeightTier, weight_tiers
from examples import examples
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    answer,
    placed,
)

BRIEF = settings(
    max_examples=examples(60),
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
HUGE = 10**12


def far_apart(problem: Problem, exponents: Sequence[int]) -> Problem:
    """The problem with weights of which each is worth more than thousands of those below."""
    pairs = zip(problem.demands, exponents, strict=False)
    return replace(
        problem,
        demands=tuple(
            replace(demand, weight=3 * HUGE**exponent)
            for demand, exponent in pairs
        ),
    )


def exponents(problem: Problem) -> st.SearchStrategy[list[int]]:
    count = len(problem.demands)
    return st.lists(st.integers(0, 3), min_size=count, max_size=count)


def test_small_sums_are_one_tier() -> None:
    assert weight_tiers([1, 2, 3] * 100) == (WeightTier(0, None, 1),)
    assert weight_tiers([]) == (WeightTier(0, None, 1),)


def test_what_is_far_apart_is_a_tier_each() -> None:
    assert weight_tiers([7, 7, HUGE, 2 * HUGE, HUGE**2]) == (
        WeightTier(HUGE**2, HUGE**2, HUGE**2),
        WeightTier(HUGE, 2 * HUGE, HUGE),
        WeightTier(7, 7, 7),
    )


def test_what_others_could_outweigh_is_no_tier_of_its_own() -> None:
    assert len(weight_tiers([HUGE] * 3 + [HUGE // 2] * 3)) == 1


def test_two_weights_may_be_worth_more_than_a_larger_one() -> None:
    weights = [15 * HUGE, 10 * HUGE, 7 * HUGE + 1]
    assert weight_tiers(weights) == (WeightTier(0, None, 1),)


@settings(max_examples=examples(1000), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from((0, 1, 1, 2, 3)),
            st.integers(0, 20),
            st.sampled_from((0, 0, 1)),
        ),
        max_size=7,
    )
)
def test_tiers_rank_as_sums_do(drawn: list[tuple[int, int, int]]) -> None:
    weights = [
        factor * HUGE**exponent + more for exponent, factor, more in drawn
    ]
    tiers = weight_tiers(weights)

    def ranking(taken: Sequence[int]) -> list[int]:
        return [sum(map(tier.of, taken)) for tier in tiers]

    subsets: list[tuple[int, ...]] = []
    for size in range(len(weights) + 1):
        subsets += combinations(weights, size)
    subsets.sort(key=sum)
    for lower, higher in pairwise(subsets):
        assert (ranking(lower) < ranking(higher)) == (sum(lower) < sum(higher))
    for taken in subsets:
        assert sum(
            tier.unit * part
            for tier, part in zip(tiers, ranking(taken), strict=True)
        ) == sum(taken)


@BRIEF
@given(strategies.problems(max_demands=4, max_devices=5), st.data())
@pytest.mark.parametrize("per_device", [False, True])
def test_against_trying_everything(
    per_device: bool, drawn: Problem, data: st.DataObject
) -> None:
    problem = far_apart(drawn, data.draw(exponents(drawn)))
    solution = solve(
        problem, Options(per_device=per_device), first_fit(problem)
    )
    check(problem, solution)
    weight, rank = brute_force.best(problem)
    assert [(tier.name, tier.value, tier.bound) for tier in solution.tiers] == [
        ("weight", weight, weight),
        ("alternatives", rank, rank),
    ]


@BRIEF
@given(crowds(), st.data())
def test_packing_is_as_good_as_deciding_on_every_device(
    drawn: Problem, data: st.DataObject
) -> None:
    problem = far_apart(drawn, data.draw(exponents(drawn)))
    packed = solve(problem, Options(thresholds=Thresholds(pattern_effort=0)))
    check(problem, packed)
    assert packed.tiers == solve(problem, Options(per_device=True)).tiers


def test_what_counts_is_the_sum_however_large_the_weights_are() -> None:
    """A device has room for the pod that is worth most, or for the two others together."""
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 17})
    for amount, weight in (
        (15, 15 * HUGE),
        (10, 10 * HUGE),
        (7, 7 * HUGE + 1),
    ):
        spec = AlternativeSpec(capacity={"memory": amount})
        builder.pod(builder.claim(spec), weight=weight)
    assert placed(answer(builder)) == [1, 2]
