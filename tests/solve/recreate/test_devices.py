"""Devices that are picked by amounts are those that first fit's search would admit, and leave most to others."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import weighted
from common_pools import common_pools
from dralloc.check.problem import violations
from dralloc.problem import (
    Constraint,
    ConstraintKind,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
)
from dralloc.problem.solution import Grant, Solution
from dralloc.solve.first_fit import first_fit
from dralloc.solve.recreate.answer import WorkingAnswer
from dralloc.solve.recreate.device_search import DeviceSearch
from dralloc.solve.recreate.devices import NodeDevices, Site
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder


@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(weighted() | common_pools(), st.randoms(use_true_random=False))
def test_nobody_is_turned_away_whom_first_fit_admits(
    problem: Problem, random: Random
) -> None:
    """For demands with one request: of more, picking one after the other may miss what a search finds.

    Caps and rules between pods turn somebody away as well; they are about more than devices.
    """
    problem = replace(problem, budgets=())
    answer = WorkingAnswer(problem, (), random)
    units = list(dict.fromkeys(answer.unit_of.values()))
    random.shuffle(units)
    for unit in units:
        if unit.is_single:
            answer.enter(unit, problem.all_nodes, elsewhere=False)
    placed = answer.placements()
    assert violations(problem, Solution(tuple(placed))) == []
    search = DeviceSearch(problem)
    for placement in placed:
        search.admit(placement)
    for unit in units:
        demand_index = unit.members[0]
        demand = problem.demands[demand_index]
        asks_once = sum(len(claim.requests) for claim in demand.claims) <= 1
        may_stand_alone = unit.is_single and not unit.rules
        if demand_index in answer or not (may_stand_alone and asks_once):
            continue
        claim_class = search.class_of(demand.claims)
        assert claim_class is not None
        for node in problem.candidate_nodes(demand):
            assert search.find(claim_class, demand.claims, node) is None


def shared_devices(used: dict[int, int]) -> tuple[NodeDevices, Problem]:
    """Three devices of 10 each, of which so much is in use, and a demand for 1."""
    builder = ProblemBuilder()
    for _ in range(3):
        builder.device(0, capacity={"memory": 10})
    for amount in (1, *used.values()):
        builder.pod(builder.claim(AlternativeSpec(capacity={"memory": amount})))
    problem = builder.problem()
    devices = NodeDevices(problem, DeviceSearch(problem), Random(0))
    devices.begin(())
    for demand, device in zip(map(DemandIndex, count(1)), used, strict=False):
        wish = devices.class_of(problem.demands[demand].claims)
        assert wish is not None
        way = devices.way(
            wish, NodeIndex(0), ((Grant(0, 0, DeviceIndex(device)),),)
        )
        devices.take(demand, Site(NodeIndex(0), way))
    return devices, problem


@pytest.mark.parametrize(
    ("used", "usual"), [({1: 4, 2: 7}, 2), ({0: 3, 1: 5}, 1)]
)
def test_the_fullest_shared_device_comes_first_and_others_now_and_then(
    used: dict[int, int], usual: int
) -> None:
    devices, problem = shared_devices(used)
    claims = problem.demands[DemandIndex(0)].claims
    wish = devices.class_of(claims)
    assert wish is not None
    ways = [devices.choose(wish, claims, NodeIndex(0)) for _ in range(200)]
    drawn: list[int] = [
        way.grants[0][0].device for way in ways if way is not None
    ]
    assert drawn.count(usual) > 100
    assert set(drawn) == {0, 1, 2}


def entered(problem: Problem) -> list[DemandIndex]:
    """Who is placed if all enter, one after the other."""
    answer = WorkingAnswer(problem, (), Random(0))
    for unit in dict.fromkeys(answer.unit_of.values()):
        answer.enter(unit, problem.all_nodes, elsewhere=False)
    placements = answer.placements()
    assert violations(problem, Solution(tuple(placements))) == []
    return [placement.demand for placement in placements]


def test_counters_of_a_node_count_beside_what_all_nodes_can_use() -> None:
    builder = ProblemBuilder(nodes=2)
    memory = builder.counter(2**40, group=1)
    partitions = [builder.device(0, {memory: 2**39}) for _ in range(3)]
    common = builder.device(None)
    for partition in partitions:
        builder.devices[partition] = replace(
            builder.devices[partition], group=1
        )
    for wanted in (partitions, partitions, [common], [common], partitions):
        builder.pod(builder.claim(AlternativeSpec(only=wanted)))
    assert entered(builder.problem()) == [0, 1, 2]


def test_what_a_search_gives_on_one_node_is_gone_on_others() -> None:
    """Here a device with compatibility groups leaves the first node to first fit's search."""
    builder = ProblemBuilder(nodes=2)
    incompatible = builder.device(0)
    common = builder.device(None)
    builder.devices[incompatible] = replace(
        builder.devices[incompatible], compatibility=((0, frozenset("a")),)
    )
    for node in (NodeIndex(0), NodeIndex(1)):
        claim = builder.claim(AlternativeSpec(only=[common]))
        builder.pod(claim, nodes=(node,))
    assert entered(builder.problem()) == [0]


@pytest.mark.parametrize(
    ("colours", "counts", "is_served"),
    [
        ([[]], [1], True),
        ([[], []], [2], False),
        ([[], []], [1, 1], False),
        ([[0], [0]], [1, 1], True),
        ([None], [1], False),
    ],
)
def test_an_empty_list_agrees_with_itself_and_with_nothing_else(
    colours: list[list[int] | None], counts: list[int], is_served: bool
) -> None:
    builder = ProblemBuilder()
    for colour in colours:
        attributes = None if colour is None else {"colour": colour}
        builder.device(0, attributes=attributes)
    requests = [AlternativeSpec(count) for count in counts]
    same = Constraint(ConstraintKind.MATCH, "colour")
    builder.pod(builder.claim(*requests, constraints=[same]))
    problem = builder.problem()
    assert entered(problem) == [0] * is_served
    assert len(first_fit(problem).placements) == is_served
