"""Packing items into bins against deciding on every device, on problems that would be counted otherwise."""

from __future__ import annotations

from dataclasses import replace
from math import comb, prod

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import brute_force
from crowd_strategies import crowds
from dralloc.check import check
from dralloc.objects.choices import Thresholds
from dralloc.problem import Constraint, ConstraintKind, Problem
from dralloc.problem.solution import Status
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.division import divide
from dralloc.solve.optimum.packing.models import Relaxation
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    placed,
)

EXAMPLES = examples(40)
MOST_WAYS = 10**6
"""So many ways to choose devices, or fewer, are tried one by one."""

THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


PACKED = Thresholds(pattern_effort=0)
"""No bin's patterns are listed, as if they were too many."""

SETTINGS = {
    "patterns": PACKED,
    "amounts": replace(
        PACKED, listed_patterns=0
    ),  # nor are those of shared devices
    "proof": replace(
        PACKED, packings=0, round_packings=0
    ),  # the exact model decides alone
}


@pytest.fixture(scope="module", params=list(SETTINGS))
def options(request: pytest.FixtureRequest) -> Options:
    return Options(thresholds=SETTINGS[request.param])


def packed(problem: Problem, options: Options) -> bool:
    return bool(
        divide(
            problem, lambda demands: survey(problem, demands), options
        ).packed
    )


@THOROUGH
@given(crowds())
def test_packing_is_as_good_as_devices(
    options: Options, problem: Problem
) -> None:
    assume(packed(problem, options))
    solution = solve(problem, options)
    check(problem, solution)
    one_by_one = solve(problem, Options(per_device=True))
    assert solution.status is Status.OPTIMAL
    assert [tier.value for tier in solution.tiers] == [
        tier.value for tier in one_by_one.tiers
    ]


@THOROUGH
@given(
    crowds(gangs=True) | crowds(sharing=True) | crowds(gangs=True, sharing=True)
)
def test_gangs_and_shared_claims_are_packed_as_well(
    options: Options, problem: Problem
) -> None:
    assume(packed(problem, options))
    solution = solve(problem, options)
    check(problem, solution)
    one_by_one = solve(problem, Options(per_device=True))
    assert solution.status is Status.OPTIMAL
    assert [tier.value for tier in solution.tiers] == [
        tier.value for tier in one_by_one.tiers
    ]


def has_few_ways(problem: Problem) -> bool:
    """Whether there are few enough to try all of them."""
    asked = [
        max(alternative.count or 0 for alternative in request.alternatives)
        for demand in problem.demands
        for claim in demand.claims
        for request in claim.requests
    ]
    ways = prod(1 + comb(len(problem.devices), count) for count in asked)
    return ways <= MOST_WAYS


@THOROUGH
@given(crowds().filter(has_few_ways))
def test_packing_is_as_good_as_anything(
    options: Options, problem: Problem
) -> None:
    assume(packed(problem, options))
    assert tuple(
        tier.value for tier in solve(problem, options).tiers
    ) == brute_force.best(problem)


@THOROUGH
@given(crowds())
def test_bounds_hold_when_time_is_short(
    options: Options, problem: Problem
) -> None:
    assume(packed(problem, options))
    solution = solve(problem, replace(options, time_limit=0.001))
    check(problem, solution)
    weight, best = (
        solution.tiers[0],
        solve(problem, Options(per_device=True)).tiers[0],
    )
    assert weight.value <= best.value <= weight.bound


SIZES = st.integers(1, 3)


@st.composite
def several_shares(draw: st.DrawFn) -> Problem:
    """Draw shared devices, and claims for shares of several of them, in some problems bound together."""
    builder = ProblemBuilder(nodes=draw(st.integers(1, 2)))
    some_rule = st.sampled_from(ConstraintKind).map(
        lambda kind: [Constraint(kind, "root")]
    )
    any_rules = draw(st.sampled_from([st.just([]), st.just([]), some_rule]))
    some_sizes = st.tuples(SIZES, st.integers(1, 2))
    sizes = draw(st.lists(some_sizes, min_size=1, max_size=3))
    for node in range(len(builder.own)):
        for capacity in draw(st.lists(st.integers(2, 6), max_size=5)):
            builder.device(
                node,
                capacity={"memory": capacity, "cores": 5},
                attributes={"root": [draw(SIZES)]},
            )
    for _ in range(draw(st.integers(1, 6))):
        specs = []
        for _ in range(draw(st.integers(1, 2))):
            memory, cores = draw(st.sampled_from(sizes))
            share = {"memory": memory, "cores": cores}
            specs.append(AlternativeSpec(count=draw(SIZES), capacity=share))
        builder.pod(builder.claim(*specs, constraints=draw(any_rules)))
    return builder.problem()


@THOROUGH
@given(several_shares())
def test_several_shares_are_of_different_devices(
    options: Options, problem: Problem
) -> None:
    assume(packed(problem, options))
    answer = solve(problem, options)
    check(problem, answer)
    assert answer.status is Status.OPTIMAL
    by_device = solve(problem, Options(per_device=True))
    assert answer.tiers[0].value == by_device.tiers[0].value


def test_the_last_shares_are_of_different_devices_too(options: Options) -> None:
    """Who takes the first two devices first leaves two shares of one device to a claim for shares of two."""
    builder = ProblemBuilder()
    for capacity in (1, 1, 2):
        builder.device(0, capacity={"memory": capacity})
    for _ in range(2):
        share = AlternativeSpec(count=2, capacity={"memory": 1})
        builder.pod(builder.claim(share))
    problem = builder.problem()
    assert packed(problem, options) == (options.thresholds.listed_patterns > 0)
    answer = solve(problem, options)
    check(problem, answer)
    assert len(answer.placements) == 2


def test_a_rule_about_values_holds_inside_of_a_unit(options: Options) -> None:
    """Three partitions of one GPU, two of which have the same value: who asks for two that differ gets the third."""
    builder = ProblemBuilder()
    memory = builder.counter(2)
    for root in (1, 1, 2):
        builder.device(0, consumes={memory: 1}, attributes={"root": [root]})
    differ = Constraint(ConstraintKind.DISTINCT, "root")
    builder.pod(
        builder.claim(
            AlternativeSpec(), AlternativeSpec(), constraints=[differ]
        )
    )
    problem = builder.problem()
    assert packed(problem, options)
    solution = solve(problem, options)
    check(problem, solution)
    assert placed(solution) == [0]


def test_a_bundle_is_not_taken_for_what_nobody_can_have(
    options: Options,
) -> None:
    """Two shares of one device that a rule binds together, beside a claim for two devices where there is only one."""
    builder = ProblemBuilder()
    builder.device(0, capacity={"memory": 3}, attributes={"root": [1]})
    small, large = (
        AlternativeSpec(capacity={"memory": amount}) for amount in (1, 2)
    )
    same = Constraint(ConstraintKind.MATCH, "root")
    builder.pod(builder.claim(large, small, constraints=[same]))
    builder.pod(builder.claim(large, small, constraints=[same]))
    builder.pod(builder.claim(replace(large, count=2)))
    problem = builder.problem()
    assert packed(problem, options)
    solution = solve(problem, options)
    check(problem, solution)
    assert len(solution.placements) == 1


def test_a_gang_that_needs_nobody_is_placed_in_part(options: Options) -> None:
    builder = ProblemBuilder()
    for _ in range(3):
        builder.device()
    for _ in range(4):
        builder.pod(builder.claim(AlternativeSpec()), gang="gang", quorum=0)
    solution = solve(builder.problem(), options)
    assert len(solution.placements) == 3


@pytest.mark.parametrize("time_limit", [None, 600.0])
def test_a_limit_that_is_not_reached_changes_no_proof_however_many_bins(
    time_limit: float | None,
) -> None:
    """Nodes with one device too few for a second pod, which the relaxation fills with devices of several nodes."""
    builder = ProblemBuilder(nodes=70)
    for node in range(70):
        for _ in range(3):
            builder.device(node)
    for _ in range(80):
        builder.pod(builder.claim(AlternativeSpec(count=2)))
    problem = builder.problem()
    options = Options(thresholds=PACKED, time_limit=time_limit)
    assert packed(problem, options)
    solution = solve(problem, options)
    assert (len(solution.placements), solution.status) == (70, Status.OPTIMAL)


def least_missed(problem: Problem, listed_patterns: int) -> int:
    """What the relaxation says."""
    thresholds = replace(PACKED, listed_patterns=listed_patterns)
    [instance] = divide(
        problem,
        lambda demands: survey(problem, demands),
        Options(thresholds=thresholds),
    ).packed
    relaxation = Relaxation(instance)
    return minimise(relaxation.cp, relaxation.cost(0), Options(), Stop()).bound


def test_shares_of_many_sizes_are_no_fractions() -> None:
    """Two shares of more than a third fit on a device, in whatever sizes; their sums leave room for more."""
    builder = ProblemBuilder(nodes=4)
    for node in range(4):
        builder.device(node, capacity={"memory": 100, "cores": 100})
    for amount in range(34, 46):
        capacity = {"memory": amount, "cores": 79 - amount}
        builder.pod(builder.claim(AlternativeSpec(capacity=capacity)))
    problem = builder.problem()
    assert least_missed(problem, 1_000) == 4
    assert least_missed(problem, 0) < 4
