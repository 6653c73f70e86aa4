"""Devices are told apart by the nodes that can use them, and by what they have to do with each other."""

from __future__ import annotations

from hypothesis import given

from common_pools import common_pools, seen
from dralloc.problem import Problem
from dralloc.problem.common import common_devices
from solve.optimum.problem_builder import ProblemBuilder


def by_nodes(problem: Problem) -> dict[frozenset[int], set[frozenset[int]]]:
    """The supplies that common devices are in, by the nodes that can use them."""
    return {
        shared.nodes: set(shared.supplies) for shared in common_devices(problem)
    }


def test_devices_of_one_node_are_not_common() -> None:
    builder = ProblemBuilder(nodes=3)
    builder.device(0)
    first, second = builder.device(None), builder.device(None)
    assert by_nodes(builder.problem()) == {
        frozenset({0, 1, 2}): {frozenset({first}), frozenset({second})}
    }


def test_a_pool_is_not_common_where_each_node_can_use_others_of_its_devices() -> (
    None
):
    """Its slices, or its devices, name their nodes."""
    builder = ProblemBuilder(nodes=4)
    devices = [builder.device(None) for _ in range(4)]
    problem = builder.problem()
    alone = [[device] for device in devices]
    assert not by_nodes(seen(problem, alone))
    in_pairs = [devices[:2], devices[:2], devices[1:3], devices[3:]]
    assert by_nodes(seen(problem, in_pairs)) == {
        frozenset({0, 1}): {frozenset({devices[0]})},
        frozenset({0, 1, 2}): {frozenset({devices[1]})},
    }


def test_devices_that_may_draw_on_the_same_counters_are_one_supply() -> None:
    builder = ProblemBuilder(nodes=2)
    counter = builder.counter(3)
    devices = [builder.device(None, {counter: 1}) for _ in range(2)]
    problem = builder.problem()
    both = frozenset({0, 1})
    assert by_nodes(problem) == {both: {frozenset(devices)}}
    # What one node takes, the other one lacks, whoever can use which of the devices.
    alone = [[device] for device in devices]
    assert by_nodes(seen(problem, alone)) == {both: {frozenset(devices)}}


def test_a_pool_of_which_two_generations_are_published_is_one_supply() -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(None)
    builder.device(None)
    builder.device(None, slot=0)
    assert by_nodes(builder.problem()) == {
        frozenset({0, 1}): {frozenset({0, 1})}
    }


@given(common_pools())
def test_every_device_that_two_nodes_can_use_is_common_once(
    problem: Problem,
) -> None:
    common = common_devices(problem)
    listed = [device for shared in common for device in shared.devices]
    assert len(listed) == len(set(listed))
    for device in set(listed):
        [shared] = [it for it in common if device in it.devices]
        assert problem.devices[device].slot in shared.slots
    users = {
        device: {
            node_index
            for node_index, node in enumerate(problem.nodes)
            if device in list(node.devices())
        }
        for device in range(len(problem.devices))
    }
    common_to_two = {
        device for device, nodes in users.items() if len(nodes) > 1
    }
    assert common_to_two <= set(listed)
