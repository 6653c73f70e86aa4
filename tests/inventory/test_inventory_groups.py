"""Compatibility groups (KEP-5963) count as a gate that is off: devices with groups are left alone."""

from __future__ import annotations

from typing import Any

from dralloc.compiler import Compiled, compile_cluster
from wire import Json, allocated, cluster, consumes, counters, device, node, resource_slice


def part(name: str, counter_set: str, *groups: str) -> Json:
    (use,) = consumes(counter_set, memory="10")
    return device(name, consumesCounters=[{**use, "compatibilityGroups": list(groups)}])


def compiled(*objects: Any) -> Compiled:
    sets = [counters("first", memory="40"), counters("second", memory="40")]
    parts = [part("mig", "first", "mig"), part("plain", "first"), part("other", "second"), device("alone")]
    slices = [
        resource_slice(parts, name="parts", count=2),
        resource_slice(name="counters", count=2, sharedCounters=sets),
    ]
    return compile_cluster(cluster(node(), slices, *objects))


def offered(given: Compiled) -> list[str]:
    return [given.problem.devices[index].id.device for index in given.problem.nodes[0].devices()]


def test_a_device_with_groups_is_not_offered() -> None:
    given = compiled()
    assert offered(given) == ["plain", "other", "alone"]
    assert [str(one) for one in given.findings] == [
        "test: ResourceSlice parts: spec.devices[0].consumesCounters: "
        "devices with compatibility groups are not allocated yet, nor others on the same counters"
    ]


def test_nor_is_one_on_the_counters_of_an_allocated_device_with_groups() -> None:
    given = compiled(allocated("c", {"device": "mig"}))
    assert offered(given) == ["other", "alone"]
    assert [counter.free // 10**9 for counter in given.problem.counters] == [30, 40]
