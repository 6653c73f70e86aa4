"""Which nodes are looked at, and in which order."""

from __future__ import annotations

import pytest

from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler import Profile
from dralloc.solve.scheduler.filters import feasible_nodes_to_find
from scheduling_wire import feasible, node, pod, scheduler


@pytest.mark.parametrize(
    ("percentage", "nodes", "enough"),
    [
        (0, 99, 99),
        (0, 100, 100),
        (0, 400, 188),
        (0, 5000, 500),
        (0, 10000, 500),
        (100, 5000, 5000),
        (30, 500, 150),
    ],
)
def test_enough_nodes(percentage: int, nodes: int, enough: int) -> None:
    assert feasible_nodes_to_find(percentage, nodes) == enough


def test_zones_take_turns() -> None:
    zones = {"a": "1", "b": "1", "c": "2", "d": "1", "e": "2"}
    nodes = [
        node(name, labels={"topology.kubernetes.io/zone": zone})
        for name, zone in zones.items()
    ]
    assert [host.name for host in scheduler(nodes).snapshot.nodes] == [
        "a",
        "c",
        "b",
        "e",
        "d",
    ]


def test_the_search_goes_on_where_it_ended() -> None:
    nodes = [
        node(f"n{index:03}", unschedulable=index == 1) for index in range(150)
    ]
    asked = scheduler(
        nodes,
        [pod(f"p{index}") for index in range(3)],
        profile=Profile(percentage=1),
    )
    rounds = [
        feasible(asked.attempt(ClaimKey("default", f"p{index}")))
        for index in range(3)
    ]
    assert rounds[0] == ["n000", *(f"n{index:03}" for index in range(2, 101))]
    assert rounds[1][0] == "n101"
    assert len(rounds[1]) == 100
    assert rounds[2][0] == "n052"
