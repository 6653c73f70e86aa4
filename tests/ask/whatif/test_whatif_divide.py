"""Nodes taken apart, and fronts put together from their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import strategies
from crowd_strategies import crowds
from dralloc.ask.whatif.copies import count_copies
from dralloc.ask.whatif.fronts import JointPacking, find_front
from dralloc.ask.whatif.headroom import (
    divide,
    isolated_first_fit,
    minkowski_sum,
)
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.cluster import Cluster
from dralloc.problem import Demand, Problem, numbered
from dralloc.solve.optimum import Options
from examples import examples
from whatif_apart import apart
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    consumes,
    counters,
    device,
    device_class,
    node,
    request,
    resource_slice,
)

EXAMPLES = examples(10)
MANY = 12
"""Fronts of the whole take long for more copies."""
THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def cards(*objects: Json, cards: int = 2, nodes: int = 2) -> Cluster:
    """Nodes with cards that are a whole or two halves."""
    manifests: list[Json] = []
    for name in (f"node-{index}" for index in range(nodes)):
        card_indices = range(cards)
        halves = [("half-0", "2Gi"), ("half-1", "2Gi"), ("whole", "4Gi")]
        devices = [
            device(
                f"card-{card}-{part}",
                {"part": part[:4]},
                consumesCounters=consumes(f"card-{card}", memory=size),
            )
            for card in card_indices
            for part, size in halves
        ]
        sets = [counters(f"card-{card}", memory="4Gi") for card in card_indices]
        manifests += [
            node(name),
            resource_slice(
                name=f"{name}-sets",
                pool=name,
                count=2,
                nodeName=name,
                sharedCounters=sets,
            ),
            resource_slice(
                devices, name=name, pool=name, count=2, nodeName=name
            ),
        ]
    return cluster(device_class(), manifests, *objects)


def part(name: str, of: str, **fields: Any) -> Json:
    return claim(
        name,
        request(
            "gpu",
            f"device.attributes['gpu.example.com'].part == '{of}'",
            **fields,
        ),
    )


def compiled(whole: Cluster) -> tuple[Problem, tuple[Demand, ...]]:
    problem = compile_cluster(whole).problem
    return problem, tuple(problem.demands)


def test_cards_are_nodes_of_their_own() -> None:
    problem, demands = compiled(
        cards(part("small", "half"), part("large", "whol"))
    )
    division = divide(problem, demands)
    parts = [
        [problem.devices[device].id.device for device in node.devices()]
        for node in division.problem.nodes
    ]
    names = ["half-0", "half-1", "whole"]
    assert parts == [
        [f"card-{card}-{name}" for name in names]
        for _ in range(2)
        for card in range(2)
    ]


def test_what_nobody_wants_is_left_out() -> None:
    problem, demands = compiled(cards(part("small", "half")))
    division = divide(problem, demands)
    assert [len(list(node.devices())) for node in division.problem.nodes] == [
        2,
        2,
        2,
        2,
    ]
    assert list(division.homes) == [0, 0, 1, 1]


def test_demands_for_several_devices_need_the_node_as_a_whole() -> None:
    problem, demands = compiled(
        cards(part("small", "half"), part("pair", "whol", count=2))
    )
    assert divide(problem, demands).problem is problem
    sums = minkowski_sum(problem, demands, (8, 2), Options())
    assert sums is not None
    assert sums.sets == {((4, 0), (0, 1)): 2}


def test_equal_cards_are_solved_once() -> None:
    held = allocated("held", {"device": "card-0-whole", "pool": "node-0"})
    problem, demands = compiled(
        cards(
            part("small", "half"), part("large", "whol"), held, cards=3, nodes=3
        )
    )
    sums = minkowski_sum(problem, demands, (16, 8), Options())
    assert sums is not None
    assert sums.sets == {((2, 0), (0, 1)): 8}


def agree(problem: Problem, demands: Sequence[Demand]) -> None:
    """Sums over nodes give what the whole gives, in the best case and by first fit."""
    alone = [count_copies(problem, demand).bound for demand in demands]
    most = tuple(bound for bound in alone if bound is not None)
    assume(len(most) == len(demands) > 1 and sum(most) <= MANY)
    packing, sums = (
        JointPacking(problem, demands, most),
        minkowski_sum(problem, demands, most, Options()),
    )
    assume(sums is not None)
    assert sums is not None
    points = find_front(most, sums.reach).points
    assert points == find_front(most, packing.reach).points
    isolated = isolated_first_fit(problem, demands, most)
    for counts in points if isolated is not None else ():
        greedy = isolated.first_fit(counts) if isolated is not None else None
        if greedy is not None:
            assert greedy == packing.first_fit(counts)


@THOROUGH
@given(strategies.problems(max_demands=3, max_devices=5))
def test_any_problem(problem: Problem) -> None:
    agree(
        problem,
        [
            apart(demand, demand_index)
            for demand_index, demand in numbered(problem.demands)
        ],
    )


@THOROUGH
@given(crowds(), st.integers(2, 3))
def test_equal_nodes(problem: Problem, demand_count: int) -> None:
    agree(
        problem,
        [
            apart(demand, demand_index)
            for demand_index, demand in enumerate(
                tuple(problem.demands)[:demand_count]
            )
        ],
    )
