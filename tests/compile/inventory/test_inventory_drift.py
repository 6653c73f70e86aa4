"""Allocated claims that contradict what is published (kubernetes/kubernetes#140802)."""

from __future__ import annotations

from typing import Any

import pytest

from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.features import ALL_FEATURES
from dralloc.problem import NodeIndex, PoolState
from dralloc.solve.first_fit import first_fit
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    consumes,
    counters,
    device,
    device_class,
    first_available,
    gpus,
    node,
    request,
    resource_slice,
    sub,
)

POOL = "gpu.example.com/pool-0"


def compiled(*objects: Any, strict: bool = False) -> CompiledCluster:
    return compile_cluster(
        cluster(node(), device_class(), *objects), strict=strict
    )


def remarks(*objects: Any) -> list[str]:
    """The findings without their common start."""
    start = "status.allocation.devices.results[0]."
    return [
        f"{finding.path.removeprefix(start)}: {finding.rule}"
        for finding in compiled(*objects).findings
    ]


def counter_slice(generation: int, amount: str = "40") -> Json:
    sets = [counters("set", memory=amount)]
    return resource_slice(
        name=f"c{generation}",
        generation=generation,
        count=2,
        sharedCounters=sets,
    )


def part_slice(generation: int, *parts: Json) -> Json:
    return resource_slice(
        parts, name=f"d{generation}", generation=generation, count=2
    )


def part(name: str, amount: str = "20", **fields: Any) -> Json:
    return device(
        name, consumesCounters=consumes("set", memory=amount), **fields
    )


def test_nothing_to_say_where_everything_agrees() -> None:
    assert (
        remarks(
            counter_slice(1),
            part_slice(1, part("a"), part("b")),
            allocated("c", {"device": "a"}),
        )
        == []
    )


def test_a_device_that_is_published_no_more() -> None:
    (finding,) = compiled(
        resource_slice(gpus(1), generation=7),
        allocated("c", {"device": "gpu-5"}),
    ).findings
    assert str(finding) == (
        "test: ResourceClaim default/c: status.allocation.devices.results[0].device: "
        f"{POOL}/gpu-5 is not in generation 7 of its pool any more; what it takes of counters is unknown"
    )


def test_a_pool_that_is_published_no_more() -> None:
    gone = "gpu.example.com/gone"
    assert remarks(
        resource_slice(gpus(1)),
        allocated("c", {"device": "gpu-0", "pool": "gone"}),
    ) == [
        f"pool: {gone} is not published; what device {gone}/gpu-0 takes of counters is unknown"
    ]


def test_other_counters_and_capacity_than_in_an_older_generation() -> None:
    old = [
        counter_slice(1),
        part_slice(1, part("a", "20", capacity={"memory": {"value": "20"}})),
    ]
    new = [
        counter_slice(2),
        part_slice(2, part("a", "10", capacity={"memory": {"value": "10"}})),
    ]
    assert remarks(old, new, allocated("c", {"device": "a"})) == [
        f"device: {POOL}/a consumes other counters in generation 2 than in generation 1",
        f"device: {POOL}/a has other capacity in generation 2 than in generation 1",
    ]


SHARED: Json = {
    "allowMultipleAllocations": True,
    "capacity": {"memory": {"value": "10Gi"}},
}


@pytest.mark.parametrize(
    ("fields", "result", "expected"),
    [
        (SHARED, {"shareID": "s", "consumedCapacity": {"memory": "4Gi"}}, []),
        (
            {},
            {"shareID": "s"},
            [
                f"shareID: device {POOL}/x does not allow multiple allocations any more"
            ],
        ),
        (
            SHARED,
            {},
            [
                f"device: {POOL}/x allows multiple allocations now, but this claim holds all of it"
            ],
        ),
        (
            SHARED,
            {"shareID": "s", "consumedCapacity": {"memory": "40Gi"}},
            [
                f"consumedCapacity[memory]: 40Gi is more than the 10Gi of device {POOL}/x"
            ],
        ),
        (
            SHARED,
            {
                "shareID": "s",
                "consumedCapacity": {"memory": "1Gi", "cores": "1"},
            },
            [
                f"consumedCapacity[cores]: device {POOL}/x has no such capacity any more"
            ],
        ),
        (
            SHARED,
            {"shareID": "s"},
            [
                f"consumedCapacity: does not say how much of memory is consumed of device {POOL}/x"
            ],
        ),
        (SHARED, {"adminAccess": True}, []),
    ],
)
def test_shares(fields: Json, result: Json, expected: list[str]) -> None:
    assert (
        remarks(
            resource_slice([device("x", **fields)]),
            allocated("c", {"device": "x", **result}),
        )
        == expected
    )


def test_shares_that_are_too_much_together() -> None:
    holders = [
        allocated(
            name,
            {
                "device": "x",
                "shareID": name,
                "consumedCapacity": {"memory": "6Gi"},
            },
        )
        for name in "ab"
    ]
    assert remarks(resource_slice([device("x", **SHARED)]), holders) == [
        f"consumedCapacity[memory]: 12Gi together with other claims is more than the 10Gi of device {POOL}/x"
    ]


def by_request(name: str) -> Json:
    use = {
        "counterSet": "set",
        "counters": {"memory": {"valueFrom": {"capacityKey": "mem"}}},
    }
    return device(name, consumesCounters=[use])


@pytest.mark.parametrize(
    ("consumed", "expected"),
    [
        ({"mem": "30"}, []),
        (
            {"mem": "50"},
            [
                f"consumedCapacity[mem]: 50 is more than the 40 of the counter that device {POOL}/v consumes"
            ],
        ),
        (
            {},
            [
                f"consumedCapacity: does not say how much of mem is consumed of device {POOL}/v"
            ],
        ),
    ],
)
def test_counters_by_request(consumed: Json, expected: list[str]) -> None:
    slices = [counter_slice(1), part_slice(1, by_request("v"))]
    assert (
        remarks(
            slices,
            allocated("c", {"device": "v", "consumedCapacity": consumed}),
        )
        == expected
    )


def test_without_the_gate_a_counter_by_request_is_no_capacity() -> None:
    slices = [counter_slice(1), part_slice(1, by_request("v"))]
    off = ALL_FEATURES.switched({"SharedConsumableCapacity": False})
    for amounts, fits in (({"mem": "1"}, False), (None, True)):
        wanted = (
            request(capacity={"requests": amounts}) if amounts else request()
        )
        given = cluster(node(), device_class(), slices, claim("a", wanted))
        for features, answer in ((off, fits), (ALL_FEATURES, True)):
            assert (
                bool(
                    first_fit(
                        compile_cluster(given, features=features).problem
                    ).placements
                )
                is answer
            )
    held = cluster(
        node(),
        slices,
        allocated("c", {"device": "v", "consumedCapacity": {"mem": "30"}}),
    )
    assert [
        counter.free == counter.total
        for counter in compile_cluster(held, features=off).problem.counters
    ] == [True]


def test_strictly_a_pool_with_drift_gives_no_more_devices() -> None:
    """Without the lost device's counters the pool would look free, and be over-committed."""
    objects = [
        counter_slice(2),
        part_slice(2, part("b", "40")),
        allocated("c", {"device": "a"}),
        claim("d", request()),
    ]
    assert len(first_fit(compiled(objects).problem).placements) == 1
    strict = compiled(objects, strict=True)
    assert first_fit(strict.problem).placements == ()
    (pool,) = strict.problem.nodes[NodeIndex(0)].pools
    assert pool.state is PoolState.INVALID
    assert pool.reason.startswith(
        "ResourceClaim default/c: status.allocation.devices.results[0].device: "
    )


def test_strictly_other_pools_still_give_devices() -> None:
    lost = allocated("c", {"device": "gpu-9"})
    other = resource_slice([device("nic-0")], name="slice-1", pool="pool-1")
    wanted = claim("d", first_available("x", sub("all", count=2), sub("one")))
    strict = compiled(resource_slice(gpus(2)), other, lost, wanted, strict=True)
    solution = first_fit(strict.problem)
    assert [
        strict.problem.devices[grant.device].id.device
        for grant in solution.placements[0].grants[0]
    ] == ["nic-0"]
