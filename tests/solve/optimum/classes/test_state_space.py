"""A rulebook of the state space of a bin: what a state says, and which transitions there are.

A state lists the units of the bin. A unit is a block of numbers: devices left per group of equal ones, then what is
left of counters, then of capacities.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dralloc.problem import Charge, ConstraintKind
from dralloc.solve.optimum.classes import state_space
from dralloc.solve.optimum.classes.assignments import (
    Effort,
    State,
    TooMuchEffort,
)
from dralloc.solve.optimum.classes.bins import (
    BinClass,
    DeviceView,
    NodeView,
    UnitView,
    Values,
)
from dralloc.solve.optimum.classes.demand_classes import (
    AttributeRule,
    ItemGroup,
    Requirement,
)
from dralloc.solve.optimum.classes.state_space import StateSpace

WHOLE, PART = 0, 1
"""Two types of items."""

ONE = Requirement((ItemGroup(0, WHOLE, 1),), (), 0)
TWO = Requirement((ItemGroup(0, WHOLE, 2),), (), 0)
ONE_PART = Requirement((ItemGroup(0, PART, 1),), (), 0)


def device(profile: int = 0, *consumes: tuple[int, int]) -> DeviceView:
    """A dedicated device."""
    return DeviceView(profile, False, (), False, consumes)


def shareable(memory: int, *consumes: tuple[int, int]) -> DeviceView:
    return DeviceView(0, True, (("memory", memory),), False, consumes)


def unit(*devices: DeviceView, free: tuple[int, ...] = ()) -> UnitView:
    return UnitView(devices, free)


def space(
    *units: UnitView,
    profiles: Sequence[Sequence[tuple[int, Charge]]] = (
        ((WHOLE, Charge()),),
        ((PART, Charge()),),
    ),
    reach: Sequence[Sequence[int]] = (),
    attributes: tuple[str, ...] = (),
    values: Values = (),
) -> StateSpace:
    """Of a bin on one node that reaches all devices, unless ``reach`` says more."""
    everything = range(sum(len(view.devices) for view in units))
    nodes = tuple(
        NodeView(region, tuple(own))
        for region, own in enumerate(reach or [everything])
    )
    return StateSpace(
        BinClass(units, attributes, values or ((),) * len(everything), nodes),
        [tuple(profile) for profile in profiles],
        [frozenset({0, region + 1}) for region in range(len(nodes))],
    )


def after(space: StateSpace, *requirements: Requirement) -> list[State]:
    """The states that are reached when these are served one after the other."""
    states = {space.start: None}
    for requirement_index, requirement in enumerate(requirements):
        states = {
            successor: None
            for state in states
            for successor, _ in space.transitions(
                requirement_index, requirement, state
            )
        }
    return list(states)


def test_a_device_that_is_taken_is_left_no_more() -> None:
    single = space(unit(device()))
    assert single.start == ((1,),)
    assert after(single, ONE) == [((0,),)]
    assert after(single, ONE, ONE) == []


def test_equal_devices_of_a_unit_are_counted() -> None:
    """So there is one transition, whichever of the three is taken."""
    three = space(unit(device(), device(), device()))
    assert three.start == ((3,),)
    assert after(three, ONE) == [((2,),)]
    assert after(three, TWO) == [((1,),)]


def test_equal_units_are_sorted() -> None:
    """So it makes no difference which of two equal units gives a device; the transition says how to sort again."""
    pair = space(unit(device(), device()), unit(device(), device()))
    assert pair.start == ((2,), (2,))
    [(state, transition)] = pair.transitions(0, ONE, pair.start)
    assert state == ((1,), (2,))
    assert [use.unit for use in transition.device_uses] == [0]
    assert after(pair, TWO) == [((0,), (2,)), ((1,), (1,))]


def test_different_devices_are_told_apart() -> None:
    mixed = space(unit(device(0), device(1)))
    assert mixed.start == ((1, 1),)
    assert after(mixed, ONE) == [((0, 1),)]
    assert after(mixed, ONE_PART) == [((1, 0),)]


def test_what_cannot_be_taken_any_more_counts_as_taken() -> None:
    """A whole that consumes both slices of a counter, or two parts with one each: after one part, no whole is left."""
    gpu = space(
        unit(device(0, (0, 2)), device(1, (0, 1)), device(1, (0, 1)), free=(2,))
    )
    wholes, parts, slices = range(3)
    assert gpu.start == ((1, 2, 2),)
    [(part,)] = after(gpu, ONE_PART)
    assert (part[wholes], part[parts], part[slices]) == (0, 1, 1)
    [(nothing,)] = after(gpu, ONE)
    assert nothing == (0, 0, 0)
    assert after(gpu, ONE_PART, ONE_PART) == [((0, 0, 0),)]


def test_states_of_one_future_are_one_state() -> None:
    """With 3 of a counter left beside parts of 2 the third is of no use to anybody."""
    odd = space(unit(device(1, (0, 2)), device(1, (0, 2)), free=(5,)))
    [(state,)] = after(odd, ONE_PART)
    assert state == (1, 3)
    assert after(odd, ONE_PART, ONE_PART) == [((0, 0),)]


def test_shares_take_capacity_and_leave_the_device() -> None:
    shared = space(
        unit(shareable(10)), profiles=[[(WHOLE, Charge((("memory", 4),)))]]
    )
    assert shared.start == ((1, 10),)
    assert after(shared, ONE) == [((1, 6),)]
    assert after(shared, ONE, ONE) == [((0, 0),)], (
        "2 are left, which nobody can use"
    )


def test_one_request_takes_a_shared_device_once() -> None:
    profiles = [[(WHOLE, Charge((("memory", 4),)))]]
    assert after(space(unit(shareable(10)), profiles=profiles), TWO) == []
    assert after(
        space(unit(shareable(10), shareable(10)), profiles=profiles), TWO
    ) == [((1, 1, 6, 6),)]


def test_counters_of_a_shared_device_are_consumed_at_its_first_use() -> None:
    opened = space(
        unit(shareable(10, (0, 3)), free=(3,)),
        profiles=[[(WHOLE, Charge((("memory", 4),)))]],
    )
    devices, counter, memory, unopened = range(4)
    [(first,)] = after(opened, ONE)
    assert [
        opened.start[0][position]
        for position in (devices, counter, memory, unopened)
    ] == [1, 3, 10, 1]
    assert [
        first[position] for position in (devices, counter, memory, unopened)
    ] == [
        1,
        0,
        6,
        0,
    ]


def test_only_devices_within_reach_of_one_node_are_taken_together() -> None:
    apart = space(unit(device()), unit(device()), reach=[[0], [1]])
    assert after(apart, TWO) == []
    assert len(after(apart, ONE)) == 2, "units on different nodes are not equal"


def test_a_requirement_is_served_on_its_candidate_nodes() -> None:
    apart = space(unit(device()), unit(device()), reach=[[0], [1]])
    second = ONE._replace(nodes=2)
    assert [
        transition.node
        for _, transition in apart.transitions(0, second, apart.start)
    ] == [1]
    assert not apart.may_serve(ONE._replace(nodes=3))


def test_two_claims_for_more_devices_than_there_are_are_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are 6,435 ways to choose the first 8 of 15 different devices: none of them is tried."""
    units = [unit(device(0, (0, 1)), free=(1 + n,)) for n in range(15)]
    eight_each = Requirement(
        (ItemGroup(0, WHOLE, 8), ItemGroup(1, WHOLE, 8)), (), 0
    )
    seven_for_the_other = Requirement(
        (ItemGroup(0, WHOLE, 8), ItemGroup(1, WHOLE, 7)), (), 0
    )
    assert space(*units).may_serve(seven_for_the_other)
    monkeypatch.setattr(state_space, "_EFFORT_TO_SERVE", 0)
    assert not space(*units).may_serve(eight_each)


def test_who_takes_long_to_be_refused_may_be_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 12 devices, 6 each carry one value: no 7 have one in common, which many are tried for."""
    units = [unit(device(0, (0, 1)), free=(1 + n,)) for n in range(12)]
    halves = space(
        *units,
        attributes=("row",),
        values=tuple((frozenset([n % 2]),) for n in range(12)),
    )
    seven_alike = Requirement(
        (ItemGroup(0, WHOLE, 7),),
        (AttributeRule(ConstraintKind.MATCH, ((0, "row"),)),),
        0,
    )
    assert not halves.may_serve(seven_alike)
    monkeypatch.setattr(state_space, "_EFFORT_TO_SERVE", 100)
    assert halves.may_serve(seven_alike)


@pytest.mark.parametrize(
    ("kind", "pair"),
    [
        (ConstraintKind.MATCH, [(0, 1), (0, 1)]),
        (ConstraintKind.DISTINCT, [(0, 1), (2,)]),
    ],
)
def test_constraints_compare_values(
    kind: ConstraintKind, pair: list[tuple[int, ...]]
) -> None:
    """Two devices on NUMA node 0 and one on NUMA node 1; those of one value are equal, so 0 and 1 are one group."""
    numa: Values = ((frozenset({0}),), (frozenset({0}),), (frozenset({1}),))
    three = space(
        unit(device(), device(), device()), attributes=("numa",), values=numa
    )
    constrained = TWO._replace(rules=(AttributeRule(kind, ((0, "numa"),)),))
    groups = [group.members for group in three.layouts[0].groups]
    used_groups = [
        sorted(groups[use.group] for use in transition.device_uses)
        for _, transition in three.transitions(0, constrained, three.start)
    ]
    assert groups == [(0, 1), (2,)]
    assert used_groups == [pair]


def test_a_search_that_takes_too_much_effort_is_given_up() -> None:
    many = space(*(unit(device(index % 2)) for index in range(20)))
    with pytest.raises(TooMuchEffort):
        list(many.transitions(0, TWO, many.start, Effort(5)))
