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


def free(found: Inventory) -> dict[str, int]:
    return {
        counter.id.counter: counter.free // 10**9 for counter in found.counters
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
    found = inventory(COUNTERS, PARTS, allocated("c", {"device": "half"}))
    assert found.usage.held == {0}
    assert free(found) == {"memory": 20, "cores": 4}


def test_a_shared_device_charges_its_counters_once() -> None:
    shares = [
        {"device": "shared", "shareID": f"s{number}"} for number in range(3)
    ]
    found = inventory(COUNTERS, PARTS, allocated("c", *shares))
    assert found.usage.held == frozenset()
    assert found.usage.shares == {1: 3}
    assert free(found) == {"memory": 30, "cores": 7}


def test_admin_access_holds_nothing() -> None:
    found = inventory(
        COUNTERS, PARTS, allocated("c", {"device": "half", "adminAccess": True})
    )
    assert found.usage.held == frozenset()
    assert free(found) == {"memory": 40, "cores": 7}


def test_without_consumable_capacity_a_share_holds_the_device() -> None:
    off = ALL_FEATURES.switched({"ConsumableCapacity": False})
    found = inventory(
        COUNTERS,
        PARTS,
        allocated("c", {"device": "shared", "shareID": "s"}),
        features=off,
    )
    assert found.usage.held == {1}


def test_pools_of_the_same_name_are_told_apart_by_driver() -> None:
    found = inventory(
        COUNTERS,
        PARTS,
        allocated("c", {"device": "half", "driver": "other.example.com"}),
    )
    assert found.usage.held == frozenset()


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
    found = inventory(COUNTERS, PARTS, allocated("c", *shares))
    assert found.usage.consumed == {1: {"memory": parse_quantity("3Gi").nanos}}


def test_counters_can_be_overdrawn_by_what_is_in_use() -> None:
    small = resource_slice(
        name="s0",
        count=2,
        sharedCounters=[counters("set", memory="10", cores="7")],
    )
    found = inventory(small, PARTS, allocated("c", {"device": "half"}))
    assert free(found) == {"memory": -10, "cores": 4}


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
    found = inventory(
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
    assert free(found) == {"bandwidth": 65}


def test_a_device_that_binds_is_used_from_its_node_only() -> None:
    bound = resource_slice(
        [device("a", bindsToNode=True), device("b")], allNodes=True
    )
    assert [one.binds_to_node for one in inventory(bound).devices] == [
        True,
        False,
    ]
