"""Rules about counters: the sets that slices share and what devices consume of them (KEP-4815, KEP-5963)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.api import CounterSet, Device, DeviceCounterConsumption, ResourceSliceSpec
from dralloc.validate.names import dns_label
from dralloc.validate.rule import Issue, Part, Scene, at_most, error, named, unique
from dralloc.validate.walk import devices, slices

__all__ = ["RULES", "counter_sets"]

MAX_SETS: Final = 8
MAX_COUNTERS: Final = 32
MAX_CONSUMPTIONS: Final = 2
MAX_GROUPS: Final = 2


def counter_sets(scene: Scene) -> Iterator[Part[CounterSet]]:
    """Every counter set of every slice."""
    for owner, path, spec in slices(scene):
        for index, one in enumerate(spec.shared_counters):
            yield Part(owner, f"{path}.sharedCounters[{index}]", one)


def _consumptions(scene: Scene) -> Iterator[Part[DeviceCounterConsumption]]:
    for owner, path, device in devices(scene):
        for index, one in enumerate(device.consumes_counters):
            yield Part(owner, f"{path}.consumesCounters[{index}]", one)


def _set_limit(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_SETS, spec.shared_counters, f"{at}.sharedCounters", "counter sets")


def _set_unique(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    yield from unique((one.name for one in spec.shared_counters), f"{at}.sharedCounters")


def _set_name(one: CounterSet, at: str) -> Iterator[Issue]:
    yield from named(one.name, f"{at}.name", dns_label)


def _counters(one: CounterSet | DeviceCounterConsumption, at: str) -> Iterator[Issue]:
    if not one.counters:
        yield Issue(f"{at}.counters", "is required")


def _counter_limit(one: CounterSet | DeviceCounterConsumption, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_COUNTERS, one.counters, f"{at}.counters", "counters")


def _counter_names(one: CounterSet | DeviceCounterConsumption, at: str) -> Iterator[Issue]:
    for name in one.counters:
        yield from named(name, f"{at}.counters", dns_label)


def _consumption_limit(device: Device, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_CONSUMPTIONS, device.consumes_counters, f"{at}.consumesCounters", "counter sets")


def _consumption_unique(device: Device, at: str) -> Iterator[Issue]:
    yield from unique((one.counter_set for one in device.consumes_counters), f"{at}.consumesCounters")


def _consumption_set(one: DeviceCounterConsumption, at: str) -> Iterator[Issue]:
    yield from named(one.counter_set, f"{at}.counterSet", dns_label)


def _group_limit(one: DeviceCounterConsumption, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_GROUPS, one.compatibility_groups, f"{at}.compatibilityGroups", "groups")


def _group_unique(one: DeviceCounterConsumption, at: str) -> Iterator[Issue]:
    yield from unique(one.compatibility_groups, f"{at}.compatibilityGroups")


def _group_names(one: DeviceCounterConsumption, at: str) -> Iterator[Issue]:
    for index, name in enumerate(one.compatibility_groups):
        yield from named(name, f"{at}.compatibilityGroups[{index}]", dns_label)


RULES: Final = (
    error("counter-set-limit", slices, _set_limit, "A slice has at most 8 counter sets."),
    error("counter-set-unique", slices, _set_unique, "The names of a slice's counter sets differ."),
    error("counter-set-name", counter_sets, _set_name, "A counter set's name is a DNS label."),
    error("counter-set-empty", counter_sets, _counters, "A counter set has counters."),
    error("counter-limit", counter_sets, _counter_limit, "A counter set has at most 32 counters."),
    error("counter-name", counter_sets, _counter_names, "A counter's name is a DNS label."),
    error("consumption-limit", devices, _consumption_limit, "A device consumes counters of at most 2 sets."),
    error("consumption-unique", devices, _consumption_unique, "A device names each counter set once."),
    error("consumption-set", _consumptions, _consumption_set, "A counter set's name is a DNS label."),
    error("consumption-empty", _consumptions, _counters, "A consumption names counters."),
    error("consumption-counter-limit", _consumptions, _counter_limit, "A consumption names at most 32 counters."),
    error("consumption-counter-name", _consumptions, _counter_names, "A counter's name is a DNS label."),
    error("compatibility-group-limit", _consumptions, _group_limit, "A consumption has at most 2 groups."),
    error("compatibility-group-unique", _consumptions, _group_unique, "A consumption lists each group once."),
    error("compatibility-group-name", _consumptions, _group_names, "A group's name is a DNS label."),
)
