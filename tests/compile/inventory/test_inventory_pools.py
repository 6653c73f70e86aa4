"""Which slices count, and when a pool can be used (KEP-4381 "Resource pools", KEP-4815)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cluster_strategies import DRIVERS, pools
from dralloc.compile.inventory import Inventory, take_inventory
from dralloc.objects.features import ALL_FEATURES, Features
from dralloc.problem import PoolState
from examples import examples
from wire import (
    Json,
    cluster,
    consumes,
    counters,
    device,
    gpus,
    node,
    resource_slice,
)


def inventory(
    *objects: Json | list[Json], features: Features = ALL_FEATURES
) -> Inventory:
    given = cluster(*objects)
    return take_inventory(
        given.slices, given.nodes, given.claims, frozenset(), features
    )


def offered(cluster_inventory: Inventory, name: str) -> list[str]:
    """Names of the devices that a node can search, in order."""
    seen = next(node for node in cluster_inventory.nodes if node.name == name)
    return [
        cluster_inventory.devices[index].id.device for index in seen.devices()
    ]


def states(cluster_inventory: Inventory, name: str) -> dict[str, PoolState]:
    seen = next(node for node in cluster_inventory.nodes if node.name == name)
    return {pool.id.pool: pool.state for pool in seen.pools}


def test_slices_are_searched_by_name_and_devices_as_listed() -> None:
    cluster_inventory = inventory(
        node(),
        resource_slice([device("b"), device("a")], name="slice-2", count=2),
        resource_slice([device("z")], name="slice-1", count=2),
    )
    assert offered(cluster_inventory, "node-0") == ["z", "b", "a"]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("named", "shared", "state"),
    [(2, 3, PoolState.USABLE), (3, 2, PoolState.INCOMPLETE)],
)
@pytest.mark.parametrize("what", ["counters", "devices"])
def test_slices_that_name_the_node_say_how_many_there_have_to_be(
    what: str, named: int, shared: int, state: PoolState, *, turned: bool
) -> None:
    """Upstream puts them before all others of the pool, however they are listed."""
    rest = resource_slice(
        [device("b")], name="all", count=shared, allNodes=True
    )
    if what == "counters":
        rest = resource_slice(
            name="all",
            count=shared,
            sharedCounters=[counters("set", slots="1")],
        )
    slices = [rest, resource_slice([device("a")], name="own", count=named)]
    cluster_inventory = inventory(node(), slices[::-1] if turned else slices)
    assert states(cluster_inventory, "node-0") == {"pool-0": state}


def test_pools_are_searched_by_driver_and_name() -> None:
    cluster_inventory = inventory(
        node(),
        resource_slice([device("late")], name="s1", pool="b"),
        resource_slice(
            [device("first")], name="s2", pool="z", driver="a.example.com"
        ),
        resource_slice([device("early")], name="s3", pool="a"),
    )
    assert offered(cluster_inventory, "node-0") == ["first", "early", "late"]


def test_pools_with_binding_conditions_come_last_even_with_an_empty_list() -> (
    None
):
    cluster_inventory = inventory(
        node(),
        resource_slice(
            [device("a", bindingConditions=[])], name="s1", pool="a"
        ),
        resource_slice([device("b")], name="s2", pool="b"),
    )
    assert offered(cluster_inventory, "node-0") == ["b", "a"]


def test_only_the_newest_generation_counts() -> None:
    cluster_inventory = inventory(
        node(),
        resource_slice([device("old")], name="s1", generation=1),
        resource_slice([device("new")], name="s2", generation=2),
    )
    assert offered(cluster_inventory, "node-0") == ["new"]


def test_a_newer_generation_elsewhere_makes_an_incomplete_view_obsolete() -> (
    None
):
    cluster_inventory = inventory(
        node("node-0"),
        node("node-1"),
        resource_slice([device("old")], name="s1", generation=1, count=2),
        resource_slice(
            [device("new")], name="s2", generation=2, nodeName="node-1"
        ),
    )
    assert states(cluster_inventory, "node-0") == {}
    assert offered(cluster_inventory, "node-1") == ["new"]


def test_a_complete_view_is_used_although_a_newer_generation_is_elsewhere() -> (
    None
):
    cluster_inventory = inventory(
        node("node-0"),
        node("node-1"),
        resource_slice([device("old")], name="s1", generation=1),
        resource_slice(
            [device("new")], name="s2", generation=2, nodeName="node-1"
        ),
    )
    assert offered(cluster_inventory, "node-0") == ["old"]


def test_two_generations_of_one_device_are_one_slot() -> None:
    cluster_inventory = inventory(
        node("node-0"),
        node("node-1"),
        resource_slice([device("gpu")], name="s1", generation=1),
        resource_slice(
            [device("gpu")], name="s2", generation=2, nodeName="node-1"
        ),
    )
    assert [
        published_device.slot for published_device in cluster_inventory.devices
    ] == [0, 0]


def test_slices_of_other_nodes_complete_a_pool() -> None:
    cluster_inventory = inventory(
        node("node-0"),
        node("node-1"),
        resource_slice([device("here")], name="s1", count=2),
        resource_slice(
            [device("there")], name="s2", count=2, nodeName="node-1"
        ),
    )
    assert states(cluster_inventory, "node-0") == {"pool-0": PoolState.USABLE}
    assert offered(cluster_inventory, "node-0") == ["here"]


def test_a_pool_with_a_missing_slice_is_incomplete() -> None:
    cluster_inventory = inventory(
        node(), resource_slice([device("gpu")], count=2)
    )
    assert states(cluster_inventory, "node-0") == {
        "pool-0": PoolState.INCOMPLETE
    }
    assert offered(cluster_inventory, "node-0") == []


def invalid_reason(*slices: Json) -> str:
    cluster_inventory = inventory(node(), *slices)
    (pool,) = cluster_inventory.nodes[0].pools
    assert pool.state is PoolState.INVALID
    return pool.reason


def test_invalid_pools() -> None:
    first = resource_slice([device("gpu")], name="s1", count=2)
    assert (
        invalid_reason(
            first, resource_slice([device("gpu")], name="s2", count=2)
        )
        == "duplicate device name gpu"
    )
    sets = resource_slice(
        name="s1", count=2, sharedCounters=[counters("set", memory="1Gi")]
    )
    assert (
        invalid_reason(sets, {**sets, "metadata": {"name": "s2"}})
        == "duplicate counter set name set"
    )
    wrong_set = resource_slice(
        [device("gpu", consumesCounters=consumes("other", memory="1"))],
        name="s2",
        count=2,
    )
    assert invalid_reason(sets, wrong_set) == "counter set other not found"
    wrong_counter = resource_slice(
        [device("gpu", consumesCounters=consumes("set", cores="1"))],
        name="s2",
        count=2,
    )
    assert (
        invalid_reason(sets, wrong_counter)
        == "counter cores not found in counter set set"
    )


def test_a_consumption_on_another_node_can_make_the_pool_invalid_here() -> None:
    cluster_inventory = inventory(
        node("node-0"),
        node("node-1"),
        resource_slice(
            name="s0", count=3, sharedCounters=[counters("set", memory="1Gi")]
        ),
        resource_slice([device("here")], name="s1", count=3),
        resource_slice(
            [device("there", consumesCounters=consumes("none", memory="1"))],
            name="s2",
            count=3,
            nodeName="node-1",
        ),
    )
    assert states(cluster_inventory, "node-0") == {"pool-0": PoolState.INVALID}


def test_a_node_knows_of_unusable_pools_of_which_it_only_sees_counters() -> (
    None
):
    cluster_inventory = inventory(
        node("node-0"),
        resource_slice(
            name="s0", count=2, sharedCounters=[counters("set", memory="1Gi")]
        ),
        resource_slice([device("gpu")], name="s1", pool="own"),
    )
    assert states(cluster_inventory, "node-0") == {
        "own": PoolState.USABLE,
        "pool-0": PoolState.INCOMPLETE,
    }


def test_a_usable_pool_of_which_a_node_only_sees_counters_is_left_out() -> None:
    cluster_inventory = inventory(
        node("node-0"),
        node("node-1"),
        resource_slice(
            name="s0", count=2, sharedCounters=[counters("set", memory="1Gi")]
        ),
        resource_slice(
            [device("gpu", consumesCounters=consumes("set", memory="1Gi"))],
            name="s1",
            count=2,
        ),
    )
    assert states(cluster_inventory, "node-1") == {}
    assert states(cluster_inventory, "node-0") == {"pool-0": PoolState.USABLE}


def test_slices_with_node_selector_all_nodes_and_selection_per_device() -> None:
    zone = {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["a"]}
                ]
            }
        ]
    }
    cluster_inventory = inventory(
        node("node-0", zone="a"),
        node("node-1", zone="b"),
        resource_slice(
            [device("zonal")], name="s1", pool="a", nodeSelector=zone
        ),
        resource_slice([device("global")], name="s2", pool="b", allNodes=True),
        resource_slice(
            [device("one", nodeName="node-1"), device("any", allNodes=True)],
            name="s3",
            pool="c",
            perDeviceNodeSelection=True,
        ),
    )
    assert offered(cluster_inventory, "node-0") == [
        "zonal",
        "global",
        "one",
        "any",
    ]
    assert offered(cluster_inventory, "node-1") == ["global", "one", "any"]
    by_name = {
        published_device.id.device: published_device.nodes
        for published_device in cluster_inventory.devices
    }
    assert by_name == {
        "zonal": None,
        "global": None,
        "one": frozenset({1}),
        "any": frozenset({0, 1}),
    }


def test_a_slice_without_any_node_selection_is_for_nobody() -> None:
    cluster_inventory = inventory(node(), resource_slice(gpus(1), nodeName=""))
    assert cluster_inventory.nodes[0].pools == ()


def test_partitionable_slices_are_ignored_when_the_feature_is_off() -> None:
    off = ALL_FEATURES.switched({"DRAPartitionableDevices": False})
    cluster_inventory = inventory(
        node(),
        resource_slice(
            [device("one", nodeName="node-0")],
            name="s1",
            pool="a",
            perDeviceNodeSelection=True,
        ),
        resource_slice([device("two")], name="s2", pool="b"),
        features=off,
    )
    assert offered(cluster_inventory, "node-0") == ["two"]


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_at_most_one_generation_of_a_device_draws_on_counters(
    data: st.DataObject,
) -> None:
    """Slices with counters matter to every node, so nobody is offered an older generation than theirs."""
    objects: list[Json] = [node(f"node-{index}") for index in range(3)]
    for node_index in range(3):
        generation = data.draw(st.integers(1, 3))
        slices = data.draw(
            pools(
                DRIVERS[0],
                "both",
                {"nodeName": f"node-{node_index}"},
                generation,
            )
        )
        objects += [
            slice_object
            | {
                "metadata": {
                    "name": f"{slice_object['metadata']['name']}-{node_index}"
                }
            }
            for slice_object in slices
        ]
    for manifest in objects:
        if manifest["kind"] == "ResourceSlice" and data.draw(st.booleans()):
            manifest["spec"]["pool"]["resourceSliceCount"] = data.draw(
                st.integers(1, 4)
            )
    cluster_inventory = inventory(*objects)
    versions = Counter(device.slot for device in cluster_inventory.devices)
    drawing = Counter(
        device.slot for device in cluster_inventory.devices if device.consumes
    )
    event(
        f"{max(versions.values(), default=0)} versions, {max(drawing.values(), default=0)} with counters"
    )
    assert max(drawing.values(), default=0) <= 1
