"""Interchangeable devices: which are, and that counting them is as good as telling them apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from dralloc.check import check
from dralloc.objects.choices import Goal, Options
from dralloc.problem import (
    Charge,
    Constraint,
    ConstraintKind,
    CounterIndex,
    Problem,
)
from dralloc.problem.requests import Scope
from dralloc.problem.solution import Solution
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.component import build_for
from dralloc.solve.optimum.interchangeable import interchangeable_devices
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.objective import (
    DemandSubset,
    after_weight,
    placed_weight,
)
from dralloc.solve.optimum.search import as_one, minimise
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder
from strategies import TableEligibility

MATCH = Constraint(ConstraintKind.MATCH, "parent")
DISTINCT = Constraint(ConstraintKind.DISTINCT, "parent")

COVERED = (frozenset[str](), frozenset({"r0"}))
"""What constraints are about: all requests, or the first."""


def adapters(*parents: Collection[int]) -> ProblemBuilder:
    """A node with adapters, each of three functions with these values of the attribute, and a counter of 10."""
    builder = ProblemBuilder()
    for values in parents:
        builder.counter(10)
        for _ in range(3):
            builder.device(attributes={"parent": values})
    return builder


def groups(problem: Problem) -> list[tuple[int, ...]]:
    """The groups of devices that are counted."""
    sites = survey(problem).sites
    return [
        group.devices
        for group in interchangeable_devices(problem, sites, Stop())
    ]


def model(problem: Problem, *, named: bool = False) -> Model:
    """The exact model; ``named``: with every device told apart."""
    return build_for(problem, survey(problem).sites, Stop(), named=named)


def optimum(problem: Problem, goal: Goal, *, named: bool) -> list[int]:
    """What the best answer costs, tier by tier; the checker has accepted it."""
    tiers = (*placed_weight(problem), *after_weight(goal))
    built = model(problem, named=named)
    if not built.sites:
        return []
    terms = [tier.terms(built) for tier in tiers]
    outcome = minimise(
        built.cp, as_one(terms), Options(), Stop(), hint_is_answer=False
    )
    assert outcome.proven
    assert outcome.values is not None
    values = outcome.values
    placements = built.placements(lambda variable: values[variable.index])
    check(problem, Solution(placements))
    everything = DemandSubset(
        problem, sorted(built.variables.miss), built.sites
    )
    costs = [tier.cost(everything, placements) for tier in tiers]
    assert costs == [
        sum(factor * values[variable.index] for variable, factor in tier_terms)
        for tier_terms in terms
    ]
    return costs


def charging(
    builder: ProblemBuilder,
    amounts: Sequence[int | None],
    counter_of: Mapping[int, CounterIndex],
) -> Problem:
    """The problem in which each alternative charges its amount, if any, to the counter of the device that it gets."""
    problem = builder.problem()
    charges: dict[tuple[int, int], Charge | None] = {}
    for alternative, amount in enumerate(amounts):
        for device, counter in counter_of.items():
            drawn = () if amount is None else ((counter, amount),)
            charges[alternative, device] = Charge((), drawn)
    eligibility = problem.eligibility
    assert isinstance(eligibility, TableEligibility)
    return replace(problem, eligibility=replace(eligibility, charges=charges))


def test_devices_are_told_apart_by_what_they_charge_by_request() -> None:
    builder = adapters([0], [1])
    builder.pod(builder.claim(AlternativeSpec(4)))
    counter_of = {device: CounterIndex(device // 3) for device in range(6)}
    assert groups(builder.problem()) == [tuple(range(6))]
    problem = charging(builder, [5], counter_of)
    assert groups(problem) == [(0, 1, 2), (3, 4, 5)]
    assert optimum(problem, Goal.NONE, named=False) == [0, 0]
    too_much = charging(builder, [6], counter_of)
    assert optimum(too_much, Goal.NONE, named=False) == [1, 0]


def test_devices_that_do_not_always_charge_something_are_not_counted() -> None:
    builder = adapters([0])
    for _ in range(2):
        builder.pod(builder.claim(AlternativeSpec()))
    counter_of = dict.fromkeys(range(3), CounterIndex(0))
    assert groups(charging(builder, [1, 1], counter_of)) == [(0, 1, 2)]
    assert groups(charging(builder, [1, None], counter_of)) == []


def test_devices_are_told_apart_by_what_constraints_compare() -> None:
    for constraint in (MATCH, DISTINCT):
        builder = adapters([0], [1])
        builder.pod(builder.claim(AlternativeSpec(2), constraints=[constraint]))
        assert groups(builder.problem()) == [(0, 1, 2), (3, 4, 5)]


def test_what_is_compared_for_somebody_divides_the_devices_of_all() -> None:
    builder = adapters([0], [1])
    builder.pod(builder.claim(AlternativeSpec(2), constraints=[MATCH]))
    builder.pod(builder.claim(AlternativeSpec(3)))
    assert groups(builder.problem()) == [(0, 1, 2), (3, 4, 5)]


def test_what_matches_nothing_is_not_counted() -> None:
    builder = adapters([], [1])
    builder.pod(builder.claim(AlternativeSpec(2), constraints=[MATCH]))
    assert groups(builder.problem()) == []


def test_a_device_that_has_no_equal_is_taken_and_not_counted() -> None:
    builder = adapters([0])
    builder.device(attributes={"parent": [1]})
    builder.pod(builder.claim(AlternativeSpec(2), constraints=[DISTINCT]))
    problem = builder.problem()
    assert groups(problem) == [(0, 1, 2)]
    [serving] = model(problem).variables.every_serving()
    assert [take.device for take in serving.takes] == [3]
    assert [count.group for count in serving.group_counts] == [0]
    assert optimum(problem, Goal.NONE, named=False) == [0, 0]


def test_what_constraints_over_several_claims_compare_is_not_counted() -> None:
    builder = adapters([0])
    across = replace(DISTINCT, scope=Scope(0))
    claims = [
        builder.claim(AlternativeSpec(), constraints=[across]) for _ in range(2)
    ]
    builder.pod(*claims)
    assert groups(builder.problem()) == []
    assert optimum(builder.problem(), Goal.NONE, named=False) == [1, 0]


def test_as_many_as_there_are_with_one_value_can_be_had() -> None:
    builder = adapters([0], [1])
    builder.pod(builder.claim(AlternativeSpec(3), constraints=[MATCH]))
    assert optimum(builder.problem(), Goal.NONE, named=False) == [0, 0]
    builder.pod(builder.claim(AlternativeSpec(4), constraints=[MATCH]))
    assert optimum(builder.problem(), Goal.NONE, named=False) == [1, 0]


def test_different_values_are_not_to_be_had_from_one_group() -> None:
    builder = adapters([0])
    builder.pod(builder.claim(AlternativeSpec(2), constraints=[DISTINCT]))
    assert optimum(builder.problem(), Goal.NONE, named=False) == [1, 0]


def test_what_is_charged_by_request_is_broken_by_whatever_device() -> None:
    builder = ProblemBuilder()
    counter = builder.counter(10)
    counter_of: dict[int, CounterIndex] = {}
    for _ in range(3):
        counter_of[builder.device()] = counter
    for _ in range(2):
        builder.pod(builder.claim(AlternativeSpec()))
    problem = charging(builder, [1, 1], counter_of)
    assert groups(problem) == [(0, 1, 2)]
    goal = Goal.LEAST_FRAGMENTATION
    assert optimum(problem, goal, named=False) == [0, 0, 1]
    assert optimum(problem, goal, named=True) == [0, 0, 1]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Draw nodes with devices in ones to threes that draw on a counter, and pods whose claims compare them."""
    builder = ProblemBuilder(draw(st.integers(1, 2)))
    counter_of: dict[int, CounterIndex] = {}
    for node in range(len(builder.own)):
        for _ in range(draw(st.integers(1, 2))):
            counter = builder.counter(draw(st.integers(2, 6)))
            values = draw(st.lists(st.integers(0, 1), max_size=2))
            consumed = draw(st.sampled_from([{}, {counter: 0}, {counter: 1}]))
            for _ in range(draw(st.integers(1, 3))):
                device = builder.device(
                    node, consumed, None, {"parent": values}
                )
                counter_of[device] = counter
    amounts: list[int | None] = []
    drawn = draw(st.sampled_from([st.none(), st.integers(0, 3)]))
    for _ in range(draw(st.integers(1, 4))):
        specs = []
        for _ in range(draw(st.integers(1, 2))):
            count = draw(st.integers(1, 3))
            specs.append(AlternativeSpec(count, only=draw(chosen(counter_of))))
            amounts.append(draw(drawn))
        constraints = [
            Constraint(kind, "parent", draw(st.sampled_from(COVERED)))
            for kind in draw(
                st.lists(st.sampled_from(list(ConstraintKind)), max_size=2)
            )
        ]
        builder.pod(
            builder.claim(*specs, constraints=constraints),
            weight=draw(st.integers(1, 3)),
        )
    return charging(builder, amounts, counter_of)


def chosen(devices: Collection[int]) -> st.SearchStrategy[set[int] | None]:
    """Some of the devices, or all."""
    return st.none() | st.sets(st.sampled_from(sorted(devices)), min_size=1)


@settings(max_examples=examples(300))
@given(problems(), st.sampled_from(list(Goal)))
def test_counting_devices_is_as_good_as_telling_them_apart(
    problem: Problem, goal: Goal
) -> None:
    assert optimum(problem, goal, named=False) == optimum(
        problem, goal, named=True
    )
