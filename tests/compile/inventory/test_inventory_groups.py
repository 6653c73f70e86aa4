"""Compatibility groups (KEP-5963): what may be in use together, and what is left alone with the gate off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.features import ALL_FEATURES
from dralloc.problem import NO_GROUPS, NodeIndex
from dralloc.problem.ledger import Ledger
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
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


def part(name: str, counter_set: str, *groups: str) -> Json:
    (use,) = consumes(counter_set, memory="10")
    return device(
        name, consumesCounters=[{**use, "compatibilityGroups": list(groups)}]
    )


def compiled(*objects: Any, gate: bool = False) -> CompiledCluster:
    sets = [counters("first", memory="40"), counters("second", memory="40")]
    parts = [
        part("mig", "first", "mig"),
        part("plain", "first"),
        part("other", "second"),
        device("alone"),
    ]
    slices = [
        resource_slice(parts, name="parts", count=2),
        resource_slice(name="counters", count=2, sharedCounters=sets),
    ]
    features = replace(ALL_FEATURES, DeviceCompatibilityGroups=gate)
    return compile_cluster(cluster(node(), slices, *objects), features=features)


def offered(given: CompiledCluster) -> list[str]:
    return [
        given.problem.devices[index].id.device
        for index in given.problem.nodes[NodeIndex(0)].devices()
    ]


def test_a_device_with_groups_is_not_offered() -> None:
    given = compiled()
    assert offered(given) == ["plain", "other", "alone"]
    assert [str(finding) for finding in given.findings] == [
        "test: ResourceSlice parts: spec.devices[0].consumesCounters: "
        "DRADeviceCompatibilityGroups is off: devices with compatibility groups are not allocated"
    ]


def test_nor_is_one_on_the_counters_of_an_allocated_device_with_groups() -> (
    None
):
    given = compiled(allocated("c", {"device": "mig"}))
    assert offered(given) == ["other", "alone"]
    assert [counter.free // 10**9 for counter in given.problem.counters] == [
        30,
        40,
    ]


def test_groups_are_read_with_those_of_allocated_devices() -> None:
    given = compiled(allocated("c", {"device": "mig"}), gate=True)
    assert offered(given) == ["mig", "plain", "other", "alone"]
    assert list(given.findings) == []
    declared = {
        device.id.device: device.compatibility
        for device in given.problem.devices
    }
    assert declared == {
        "mig": ((0, frozenset({"mig"})),),
        "plain": ((0, frozenset({NO_GROUPS})),),
        "other": (),
        "alone": (),
    }
    assert Ledger(given.problem).common_groups() == {0: frozenset({"mig"})}


def placed(*parts: Json, wanted: str, holder: str = "") -> list[list[str]]:
    """What first fit and the optimum give to one claim for each of the wanted devices."""
    slices = [
        resource_slice(list(parts), name="parts", count=2),
        resource_slice(
            name="counters",
            count=2,
            sharedCounters=[counters("first", memory="40")],
        ),
    ]
    held = [allocated("holder", {"device": holder})] if holder else []
    claims = [claim(f"c{index}", request()) for index in range(len(wanted))]
    problem = compile_cluster(
        cluster(node(), device_class(), slices, held, claims)
    ).problem
    first = first_fit(problem)
    answers = (
        first,
        first_fit(problem, pruning=False),
        solve(problem, hint=first),
    )
    return [
        sorted(
            problem.devices[grant.device].id.device
            for placement in answer.placements
            for grants in placement.grants
            for grant in grants
        )
        for answer in answers
    ]


def test_what_is_in_use_together_has_a_group_in_common() -> None:
    parts = [
        part("a", "first", "x"),
        part("b", "first"),
        part("c", "first", "x", "y"),
        part("d", "first", "y"),
    ]
    assert placed(*parts, wanted="12") == [["a", "c"]] * 3
    assert placed(*parts, wanted="12", holder="d") == [["c"]] * 3
    assert placed(*parts, wanted="1", holder="b") == [[]] * 3


def test_devices_without_groups_are_compatible() -> None:
    parts = [part("a", "first"), part("b", "first"), part("c", "first", "x")]
    assert placed(*parts, wanted="123") == [["a", "b"]] * 3


def test_the_optimum_finds_the_larger_party() -> None:
    parts = [
        part("a", "first", "x"),
        part("b", "first", "y"),
        part("c", "first", "y"),
    ]
    first, plain, optimum = placed(*parts, wanted="12")
    assert first == plain == ["a"]
    assert optimum == ["b", "c"]
