"""Bounds of relaxations hold: for every problem, whatever is in it, and for whatever prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from operator import mul
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import weighted
from dralloc.objects.choices import Goal, Options
from dralloc.objects.quantity import NANOS
from dralloc.problem import DemandIndex, Problem, indices
from dralloc.problem.inter_pod import (
    AntiAffinity,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
)
from dralloc.problem.node_claims import (
    NodeStock,
    node_resource,
    with_node_claims,
)
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.objective import (
    DemandSubset,
    after_weight,
    placed_weight,
)
from dralloc.solve.optimum.relax import RelaxationLadder, ladder, relaxed_bounds
from dralloc.solve.optimum.relax.bounds import (
    Bound,
    Inequality,
    LevelRange,
)
from dralloc.solve.optimum.relax.halves import with_halves
from dralloc.solve.optimum.relax.levels import LexicographicLevel
from dralloc.solve.optimum.relax.market import market_of
from dralloc.solve.optimum.relax.offers import NodeOffers
from dralloc.solve.optimum.relax.patterns import with_patterns
from dralloc.solve.optimum.relax.prices import Prices
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

MEMORY = node_resource("memory")

THOROUGH = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def best_costs(problem: Problem) -> tuple[int, ...]:
    solution = solve(problem, Options(per_device=True))
    assert all(tier.proven for tier in solution.tiers)
    everything = DemandSubset(problem, indices(problem.demands))
    tiers = (*placed_weight(problem), *after_weight(Goal.NONE))
    return tuple(tier.cost(everything, solution.placements) for tier in tiers)


def bounds(problem: Problem) -> list[tuple[int, ...]]:
    tiers = (*placed_weight(problem), *after_weight(Goal.NONE))
    return [bound.costs for bound in relaxed_bounds(problem, tiers, Stop())]


@THOROUGH
@given(weighted())
def test_no_answer_costs_less(problem: Problem) -> None:
    proven, best = bounds(problem), best_costs(problem)
    assert proven == sorted(proven)
    assert all(costs <= best for costs in proven)


@st.composite
def in_domains(draw: st.DrawFn) -> Problem:
    """Draw a few pods for a device each, in two gangs; each carries one of three rules, two of one topology."""
    builder = ProblemBuilder(nodes=3)
    for node in range(3):
        for _ in range(draw(st.integers(0, 2))):
            builder.device(node)
    for _ in range(draw(st.integers(2, 5))):
        gang = draw(st.sampled_from(("first", "second")))
        builder.pod(builder.claim(AlternativeSpec()), gang=gang)
    problem = builder.problem()
    zones, racks = (
        {f"node-{node}": draw(st.sampled_from("ab")) for node in range(3)}
        for _ in range(2)
    )
    rules = [OneDomain(domains) for domains in (zones, zones, racks)]
    demands = []
    for demand in problem.demands:
        role = Role(draw(st.sampled_from(rules)), carries=True, counts=True)
        demands.append(replace(demand, roles=(role,)))
    return replace(problem, demands=tuple(demands))


@THOROUGH
@given(in_domains())
def test_no_answer_in_domains_costs_less(problem: Problem) -> None:
    best = best_costs(problem)
    assert all(costs <= best for costs in bounds(problem))


@st.composite
def with_precise_amounts(draw: st.DrawFn) -> Problem:
    """Draw pods, most of them in a gang, with memory to the byte, for nodes of which some have more than enough."""
    node_count = draw(st.integers(1, 3))
    pod_count = draw(st.integers(2, 5))
    builder = ProblemBuilder(nodes=node_count)
    gibibyte = 2**30 * NANOS
    asked: dict[DemandIndex, dict[str, int]] = {}
    for pod in map(DemandIndex, range(pod_count)):
        builder.pod(gang=draw(st.sampled_from(("", "gang", "gang"))))
        gibibytes, byte = draw(st.integers(4, 8)), draw(st.integers(0, 1))
        asked[pod] = {MEMORY: gibibytes * gibibyte + byte * NANOS}
    stocks = [
        NodeStock({MEMORY: draw(st.sampled_from((8, 16, 64))) * gibibyte}, {})
        for _ in range(node_count)
    ]
    return with_node_claims(builder.problem(), stocks, asked)


@THOROUGH
@given(with_precise_amounts(), st.sampled_from((Goal.NONE, Goal.SPREAD)))
def test_no_answer_with_precise_amounts_costs_less(
    problem: Problem, goal: Goal
) -> None:
    assert all(costs <= best_costs(problem) for costs in bounds(problem))
    assert_later_tiers_cost_no_less(problem, goal)


@THOROUGH
@given(weighted(), st.randoms(use_true_random=False))
def test_the_optimum_places_no_more_of_any_level(
    problem: Problem, random: Random
) -> None:
    """Whatever an answer has reached: here, first fit for some of the demands."""
    tiers = (*placed_weight(problem), *after_weight(Goal.NONE))
    ladder = RelaxationLadder(problem, tiers, Stop())
    best = solve(problem, Options(per_device=True)).placements
    kept = [demand for demand in problem.demands if random.random() < 0.7]
    start = first_fit(
        replace(problem, demands=tuple(kept), budgets=())
    ).placements
    for bound in ladder.bounds():
        weights = [
            problem.demands[placement.demand].weight for placement in best
        ]
        optimum = [sum(map(level.of, weights)) for level in bound.levels]
        own = [kept[placement.demand].weight for placement in start]
        reached = [sum(map(level.of, own)) for level in bound.levels]
        if reached <= optimum:
            known = random.choice([(), optimum])
            for proven in (bound, ladder.look_closer(bound, reached, known)):
                limits = proven.most_of_optimum(reached, known)
                assert all(
                    units <= limit
                    for units, limit in zip(optimum, limits, strict=True)
                )
                assert sum(optimum) <= proven.most_together(reached, known)


@THOROUGH
@given(weighted(), st.sampled_from(Goal))
def test_later_tiers_cost_no_less_than_is_proven(
    problem: Problem, goal: Goal
) -> None:
    assert_later_tiers_cost_no_less(problem, goal)


def assert_later_tiers_cost_no_less(problem: Problem, goal: Goal) -> None:
    tiers = (*placed_weight(problem), *after_weight(goal))
    ladder = RelaxationLadder(problem, tiers, Stop())
    list(ladder.bounds())
    best = solve(problem, Options(per_device=True, goal=goal))
    weights = [
        problem.demands[placement.demand].weight
        for placement in best.placements
    ]
    placed = [sum(map(level.of, weights)) for level in ladder.levels]
    for tier in best.tiers[1:]:
        assert tier.proven
        assert ladder.least_cost(tier.name, placed) <= tier.value


@THOROUGH
@given(
    weighted(),
    st.randoms(use_true_random=False),
    st.sampled_from([1, 3, 50]),
    st.sampled_from([(), (with_halves,), (with_patterns, with_halves)]),
)
def test_whatever_the_prices(
    problem: Problem,
    random: Random,
    dearest: int,
    closer: Sequence[Callable[[NodeOffers], NodeOffers]],
) -> None:
    market = market_of(problem, Stop(), *closer)
    prices = Prices(
        market, [random.randint(0, dearest) for _ in market.limits[:-1]]
    )
    total = sum(demand.weight for demand in problem.demands)
    cost, *_ = best_costs(problem)
    weights = [kind.weight for kind in market.demand_kinds.kinds]
    assert prices.bound(weights) >= total - cost


@THOROUGH
@given(weighted(), weighted())
def test_prices_of_another_problem_prove_no_more_than_is_true(
    problem: Problem, earlier: Problem
) -> None:
    tiers = (*placed_weight(problem), *after_weight(Goal.NONE))
    tiers_before = (*placed_weight(earlier), *after_weight(Goal.NONE))
    rungs = list(relaxed_bounds(earlier, tiers_before, Stop()))
    prices = rungs[-1].prices if rungs else ()
    bound = RelaxationLadder(problem, tiers, Stop()).bound_by(prices)
    assert bound is not None
    assert bound.costs <= best_costs(problem)


def test_a_guess_without_prices_says_nothing_of_what_demands_pay() -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 2**30})
    for _ in range(2):
        amounts = {"memory": 2**29 + 1}
        builder.pod(builder.claim(AlternativeSpec(capacity=amounts)))
    problem = builder.problem()
    tiers = (*placed_weight(problem), *after_weight(Goal.NONE))
    *_, rung = relaxed_bounds(problem, tiers, Stop())
    # At dear prices whole numbers have another scale than without any.
    dear = {
        name: 2.0**12 * price for name, price in rung.prices[-1].rows.items()
    }
    named = rung.prices[-1]._replace(rows=dear)
    assert dear
    known = RelaxationLadder(problem, tiers, Stop())
    known.bound_by([named])
    again = RelaxationLadder(problem, tiers, Stop())
    again.bound_by([named, named._replace(rows={})])
    assert again.appraisal() == known.appraisal()


@THOROUGH
@given(weighted())
def test_prices_prove_no_less_than_none(problem: Problem) -> None:
    tiers = (*placed_weight(problem), *after_weight(Goal.NONE))
    rungs = list(relaxed_bounds(problem, tiers, Stop()))
    for rung in rungs[-1:]:
        again = RelaxationLadder(problem, tiers, Stop()).bound_by(rung.prices)
        alone = RelaxationLadder(problem, tiers, Stop()).bound_by(())
        assert again is not None
        assert alone is not None
        assert alone.costs <= again.costs


@st.composite
def under_one_rule(draw: st.DrawFn) -> Problem:
    """Draw pods that differ in what they are to one rule, and ask for a device each of a few nodes."""
    node_count = draw(st.integers(1, 4))
    builder = ProblemBuilder(nodes=node_count)
    for node in range(node_count):
        for _ in range(draw(st.integers(0, 3))):
            builder.device(node)
    for _ in range(draw(st.integers(1, 7))):
        builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    names = [node.name for node in problem.nodes]
    zones = draw(st.dictionaries(st.sampled_from(names), st.sampled_from("ab")))
    some = st.frozensets(st.sampled_from("ab"), max_size=1)
    counted = draw(st.dictionaries(st.sampled_from("ab"), st.integers(1, 2)))
    rule: InterPodRule = draw(
        st.one_of(
            st.builds(AntiAffinity, st.just(zones), some, some),
            st.builds(
                Spread,
                st.just(zones),
                st.just(counted),
                st.integers(1, 2),
                st.integers(1, 3),
            ),
        )
    )
    parts = st.sampled_from([(True, True), (True, False), (False, True)])
    roles = st.sampled_from(draw(st.lists(parts, min_size=1, max_size=3)))
    demands = [
        replace(demand, roles=(Role(rule, *draw(roles)),))
        for demand in problem.demands
    ]
    return replace(problem, demands=tuple(demands))


@THOROUGH
@given(under_one_rule())
def test_no_more_come_to_a_domain_than_is_true(problem: Problem) -> None:
    assert all(costs <= best_costs(problem) for costs in bounds(problem))


def test_devices_are_counted() -> None:
    builder = ProblemBuilder()
    for _ in range(4):
        builder.pod(builder.claim(AlternativeSpec()))
    builder.device()
    builder.device()
    *_, best = bounds(builder.problem())
    assert best == (2, 0)


def test_nothing_to_place() -> None:
    assert bounds(ProblemBuilder().problem()) == []


def test_nowhere_to_place_anything() -> None:
    builder = ProblemBuilder(nodes=0)
    builder.pod(builder.claim(AlternativeSpec()))
    assert bounds(builder.problem()) == [(1, 0)]


def test_rungs_that_are_not_likely_to_bring_much_are_left_for_later() -> None:
    """Of equal nodes more regions prove no more."""
    builder = ProblemBuilder(nodes=70)
    for node in range(70):
        builder.device(node)
    for _ in range(100):
        builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    ladder = RelaxationLadder(problem, placed_weight(problem), Stop())
    assert [bound.costs for bound in ladder.bounds(0.1)] == [(0,), (30,)]
    assert not ladder.is_at_the_top
    assert list(ladder.bounds()) == []
    assert ladder.is_at_the_top


def ten_devices() -> Problem:
    """Ten devices, of which five demands that are worth more, and twenty others, would take one each."""
    builder = ProblemBuilder()
    for _ in range(10):
        builder.device()
    for weight in [1000] * 5 + [1] * 20:
        builder.pod(builder.claim(AlternativeSpec()), weight=weight)
    return builder.problem()


def test_who_is_missing_above_leaves_room_for_few_below() -> None:
    """An answer that lacks one of the five."""
    problem = ten_devices()
    *_, bound = relaxed_bounds(problem, placed_weight(problem), Stop())
    assert bound.most_of_optimum([5, 5]) == [5, 5]
    # One that counts three, at a price of one, leaves no more than three to others.
    assert bound.most_of_optimum([4, 6]) == [5, 8]


def test_what_an_answer_has_above_says_what_is_left_below() -> None:
    """Who looks closer sees that each demand takes one device, and that all are ten at most."""
    problem = ten_devices()
    ladder = RelaxationLadder(problem, placed_weight(problem), Stop())
    *_, bound = ladder.bounds()
    closer = ladder.look_closer(bound, [4, 5], ())
    assert closer.most_of_optimum([4, 5]) == [5, 6]
    # The sum over levels is 11, but nobody has both.
    assert closer.most_together([4, 5]) == 10
    # That the optimum has no more than four is known otherwise: so there are six below.
    assert closer.most_of_optimum([4, 5], [4, 20]) == [4, 6]


def test_levels_that_are_the_best_possible_say_more_of_those_below() -> None:
    """What the exact model has proven counts, too: the optimum has no less of the next level than the answer."""
    inequality = Inequality([1, 1, 1], 10)
    levels = [LexicographicLevel(unit, unit, unit, 8) for unit in (100, 10, 1)]
    proven = [[], [], [inequality]]
    bound = Bound((), "", levels, proven)
    assert bound.most_of_optimum([3, 4, 1]) == [8, 8, 7]
    assert bound.most_of_optimum([3, 4, 1], [3, 8, 8]) == [3, 8, 3]


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 30),
)
def test_no_more_is_placed_together_than_an_inequality_allows(
    levels: list[tuple[int, int, int]], room: int
) -> None:
    ranges = [LevelRange(least, least + more) for _, least, more in levels]
    factors = [factor for factor, _, _ in levels]
    used = sum(map(mul, factors, [level.least for level in ranges]))
    inequality = Inequality(factors, used + room)
    choices = product(*(range(level.least, level.most + 1) for level in ranges))
    best = max(
        sum(placed)
        for placed in choices
        if sum(map(mul, factors, placed)) <= inequality.bound
    )
    assert inequality.limit_together(ranges) == best


@THOROUGH
@given(
    st.integers(1, 200),
    st.integers(1, 4),
    st.lists(st.integers(0, 40), min_size=1, max_size=3),
)
def test_a_device_is_worth_as_many_equal_demands_as_it_holds(
    memory: int, taken: int, demands_of_weight: list[int]
) -> None:
    """A price that is cut off, as it seems too high for one row, would prove less."""
    builder = ProblemBuilder()
    builder.device(capacity={"memory": memory})
    weight_counts = zip((1, 2, 1000), demands_of_weight, strict=False)
    weights = [weight for weight, count in weight_counts for _ in range(count)]
    for weight in weights:
        claim = builder.claim(AlternativeSpec(capacity={"memory": taken}))
        builder.pod(claim, weight=weight)
    proven = [best for best, _ in bounds(builder.problem())]
    missed = sorted(weights, reverse=True)[memory // taken :]
    assert max(proven, default=0) == sum(missed)


def test_how_long_the_first_rung_takes_is_no_reason_to_stop_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may take long by chance, as where other threads work; the next one may prove all."""
    monkeypatch.setattr(ladder, "_GROWTH", 1e12)
    builder = ProblemBuilder(nodes=2)
    builder.device(0)
    builder.device(1)
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    relaxations = RelaxationLadder(
        problem, placed_weight(problem), Stop.after(100)
    )
    *_, last = relaxations.bounds()
    assert last.costs == (1,)
    assert relaxations.is_at_the_top
