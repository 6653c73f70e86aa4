"""While a pool is updated, nodes see devices in two versions: all searches and the checker agree with the referee."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from dralloc.check import check, violations
from dralloc.objects.names import (
    ClaimKey,
    CounterID,
    DeviceID,
    PoolID,
    RequestName,
)
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Capacity,
    Charge,
    Claim,
    Counter,
    CounterIndex,
    Demand,
    Device,
    DeviceIndex,
    Node,
    NodeIndex,
    PoolAccess,
    PoolState,
    Problem,
    Request,
    SlotIndex,
    Usage,
)
from dralloc.problem.solution import Status
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.improve.upper_levels import UpperLevels
from dralloc.solve.optimum.objective import DemandSubset, placed_weight
from dralloc.solve.optimum.room import cramped_groups
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from inventory_strategies import rarely
from strategies import TableEligibility

REFEREE = settings(max_examples=examples(50), deadline=None)
POOL = PoolID("gpu", "pool")


@st.composite
def updates(draw: st.DrawFn) -> Problem:
    """Draw two nodes: one sees a pool with counters, the other its next generation, which has none."""
    size = draw(st.integers(1, 3))
    shareable = [not draw(rarely()) for _ in range(size)]
    groups = draw(
        st.sampled_from((None, None, frozenset("a"), frozenset("ab")))
    )
    old = [
        _device(
            slot,
            group=0,
            shareable=shareable[slot],
            consumes=tuple(
                (CounterIndex(counter), draw(st.integers(0, 2)))
                for counter in range(2)
            ),
            compatibility=(
                (0, groups if draw(st.booleans()) else frozenset("b")),
            )
            if groups
            else (),
        )
        for slot in map(SlotIndex, range(size))
    ]
    new = [
        _device(slot, group=1, shareable=shareable[slot] ^ draw(rarely()))
        for slot in map(SlotIndex, range(size))
    ]
    alternatives = map(AlternativeIndex, count())
    demands = tuple(
        _demand(draw, next(alternatives))
        for _ in range(draw(st.integers(1, 4)))
    )
    by_request = draw(st.integers(0, 3)) == 3
    charges: dict[tuple[int, int], Charge] = {
        (demand.claims[0].requests[0].alternatives[0].index, index): _charge(
            device, by_request=index < size and by_request
        )
        for demand in demands
        for index, device in enumerate((*old, *new))
    }
    return Problem(
        demands=demands,
        nodes=(_node(0, range(size)), _node(1, range(size, 2 * size))),
        devices=(*old, *new),
        counters=tuple(
            Counter(
                CounterID(*POOL, "set", f"counter-{counter}"),
                4,
                draw(st.integers(-1, 3)),
                0,
            )
            for counter in range(2)
        ),
        usage=Usage(
            frozenset(),
            {SlotIndex(0): 1} if draw(rarely()) and shareable[0] else {},
            {},
        ),
        eligibility=TableEligibility(charges=charges),
    )


def _device(
    slot: SlotIndex,
    group: int,
    *,
    shareable: bool,
    consumes: tuple[tuple[CounterIndex, int], ...] = (),
    compatibility: tuple[tuple[int, frozenset[str]], ...] = (),
) -> Device:
    capacity = {"memory": Capacity("memory", 3 - group)} if shareable else {}
    name = DeviceID(*POOL, f"gpu-{slot}")
    return Device(
        name,
        slot,
        group,
        shareable,
        capacity,
        consumes,
        {},
        None,
        compatibility=compatibility,
    )


def _charge(device: Device, *, by_request: bool) -> Charge:
    capacity = (("memory", 1),) if device.shareable else ()
    return Charge(
        capacity,
        ((CounterIndex(0), 1),) if by_request and device.shareable else (),
    )


def _node(node: int, devices: range) -> Node:
    return Node(
        f"node-{node}",
        (PoolAccess(POOL, PoolState.USABLE, tuple(map(DeviceIndex, devices))),),
    )


def _demand(draw: st.DrawFn, alternative: AlternativeIndex) -> Demand:
    devices = draw(st.sampled_from((1, 1, 2)))
    claim = Claim(
        ClaimKey("default", f"claim-{alternative}"),
        "",
        (
            Request(
                "gpu",
                (
                    Alternative(
                        alternative,
                        RequestName("gpu"),
                        0,
                        devices,
                        admin=draw(rarely()),
                    ),
                ),
            ),
        ),
    )
    nodes = draw(st.sampled_from(((NodeIndex(0),), (NodeIndex(1),), None)))
    return Demand(
        ClaimKey("default", f"pod-{alternative}"),
        (claim,),
        weight=draw(st.integers(1, 2)),
        nodes=nodes,
    )


@REFEREE
@given(updates())
def test_what_first_fit_does_is_right(problem: Problem) -> None:
    solution = first_fit(problem)
    check(problem, solution)
    assert brute_force.feasible(problem, solution)


@REFEREE
@given(updates())
def test_the_optimum_is_what_the_referee_finds(problem: Problem) -> None:
    solution = solve(problem, hint=first_fit(problem))
    check(problem, solution)
    assert solution.status is Status.OPTIMAL
    assert tuple(tier.value for tier in solution.tiers) == brute_force.best(
        problem
    )


@REFEREE
@given(updates())
def test_the_checker_accepts_what_the_referee_accepts(problem: Problem) -> None:
    for solution in brute_force.solutions(problem):
        assert violations(problem, solution) == []


@REFEREE
@given(updates())
def test_no_more_of_a_group_is_placed_than_has_room_alone(
    problem: Problem,
) -> None:
    """Who would have none may share a device that others have opened by the other version."""
    sites = survey(problem).sites
    for group in cramped_groups(problem, sites, set(), Options(), Stop()):
        members = set(group.members)
        for solution in brute_force.solutions(problem):
            demands = {placement.demand for placement in solution.placements}
            assert len(demands & members) <= group.most


@REFEREE
@given(updates())
def test_what_is_proven_of_the_highest_level_holds_for_all(
    problem: Problem,
) -> None:
    """A demand of weight 2 is worth more than all of weight 1 here."""
    demands = tuple(
        replace(demand, weight=100 if demand.weight == 2 else 1)
        for demand in problem.demands
    )
    problem = replace(problem, demands=demands)
    sites = survey(problem).sites
    subset = DemandSubset(problem, sorted(sites), sites)
    tiers = placed_weight(problem)
    everything = Component(subset, tiers, ())
    levels = UpperLevels(subset, tiers, largest=1000)
    for component in levels.solved(everything, Options(), Stop()):
        for solution in brute_force.solutions(problem):
            cost = tiers[0].cost(subset, solution.placements)
            assert component.bounds[0] <= cost
