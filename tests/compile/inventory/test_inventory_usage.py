"""What allocated claims hold."""

from __future__ import annotations

from dralloc.compile.inventory import Inventory, take_inventory
from dralloc.objects.features import ALL_FEATURES, Features
from dralloc.objects.quantity import parse_quantity
from wire import (
    Json,
    allocated,
    cluster,
    consumes,
    counters,
    device,
    node,
    resource_slice,
)


def inventory(*objects: Json, features: Features = ALL_FEATURES) -> Inventory:
    given = cluster(node(), *objects)
    return take_inventory(
        given.slices, given.nodes, given.claims, frozenset(), features
    )


def free(cluster_inventory: Inventory) -> dict[str, int]:
    return {
        counter.id.counter: counter.free // 10**9
        for counter in cluster_inventory.counters
    }


COUNTERS = resource_slice(
    name="s0", count=2, sharedCounters=[counters("set", memory="40", cores="7")]
)
PARTS = resource_slice(
    [
        device(
            "half", consumesCounters=consumes("set", memory="20", cores="3")
        ),
        device(
            "shared",
            consumesCounters=consumes("set", memory="10"),
            allowMultipleAllocations=True,
        ),
    ],
    name="s1",
    count=2,
)


def test_a_device_in_use_charges_its_counters() -> None:
    cluster_inventory = inventory(
        COUNTERS, PARTS, allocated("c", {"device": "half"})
    )
    assert cluster_inventory.usage.held == {0}
    assert free(cluster_inventory) == {"memory": 20, "cores": 4}


def test_a_shared_device_charges_its_counters_once() -> None:
    shares = [
        {"device": "shared", "shareID": f"s{index}"} for index in range(3)
    ]
    cluster_inventory = inventory(COUNTERS, PARTS, allocated("c", *shares))
    assert cluster_inventory.usage.held == frozenset()
    assert cluster_inventory.usage.shares == {1: 3}
    assert free(cluster_inventory) == {"memory": 30, "cores": 7}


def test_admin_access_holds_nothing() -> None:
    cluster_inventory = inventory(
        COUNTERS, PARTS, allocated("c", {"device": "half", "adminAccess": True})
    )
    assert cluster_inventory.usage.held == frozenset()
    assert free(cluster_inventory) == {"memory": 40, "cores": 7}


def test_without_consumable_capacity_a_share_holds_the_device() -> None:
    off = ALL_FEATURES.switched({"ConsumableCapacity": False})
    cluster_inventory = inventory(
        COUNTERS,
        PARTS,
        allocated("c", {"device": "shared", "shareID": "s"}),
        features=off,
    )
    assert cluster_inventory.usage.held == {1}


def test_pools_of_the_same_name_are_told_apart_by_driver() -> None:
    cluster_inventory = inventory(
        COUNTERS,
        PARTS,
        allocated("c", {"device": "half", "driver": "other.example.com"}),
    )
    assert cluster_inventory.usage.held == frozenset()


def test_consumed_capacity_adds_up() -> None:
    shares = [
        {
            "device": "shared",
            "shareID": "a",
            "consumedCapacity": {"memory": "1Gi"},
        },
        {
            "device": "shared",
            "shareID": "b",
            "consumedCapacity": {"memory": "2Gi"},
        },
    ]
    cluster_inventory = inventory(COUNTERS, PARTS, allocated("c", *shares))
    assert cluster_inventory.usage.consumed == {
        1: {"memory": parse_quantity("3Gi").nanos}
    }


def test_counters_can_be_overdrawn_by_what_is_in_use() -> None:
    small = resource_slice(
        name="s0",
        count=2,
        sharedCounters=[counters("set", memory="10", cores="7")],
    )
    cluster_inventory = inventory(
        small, PARTS, allocated("c", {"device": "half"})
    )
    assert free(cluster_inventory) == {"memory": -10, "cores": 4}


def test_counters_by_request_are_rebuilt_from_the_record() -> None:
    policy = {"default": "1", "validRange": {"min": "1", "step": "1"}}
    sets = {
        "name": "set",
        "counters": {"bandwidth": {"value": "100", "requestPolicy": policy}},
    }
    use = [
        {
            "counterSet": "set",
            "counters": {"bandwidth": {"valueFrom": {"capacityKey": "bw"}}},
        }
    ]
    cluster_inventory = inventory(
        resource_slice(name="s0", count=2, sharedCounters=[sets]),
        resource_slice(
            [
                device("vf-0", consumesCounters=use),
                device("vf-1", consumesCounters=use),
            ],
            name="s1",
            count=2,
        ),
        allocated("a", {"device": "vf-0", "consumedCapacity": {"bw": "10"}}),
        allocated("b", {"device": "vf-1", "consumedCapacity": {"bw": "25"}}),
    )
    assert free(cluster_inventory) == {"bandwidth": 65}


def test_a_device_that_binds_is_used_from_its_node_only() -> None:
    bound = resource_slice(
        [device("a", bindsToNode=True), device("b")], allNodes=True
    )
    assert [
        published_device.binds_to_node
        for published_device in inventory(bound).devices
    ] == [
        True,
        False,
    ]
