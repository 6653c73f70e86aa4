"""What capacity is counted in: counters of pools, capacities of shareable devices, or devices."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from dralloc.compiler import Compiled
from dralloc.explain.books import Books
from dralloc.names import PoolID
from dralloc.problem import Device, Problem
from dralloc.quantity import NANOS

__all__ = ["Measure", "MeasureKind", "Measures", "Unit"]

_NUMBERED: Final = re.compile(r"(.*?[^0-9])[0-9]+")
DEVICES: Final = "devices"


class MeasureKind(StrEnum):
    """Where an amount is kept."""

    COUNTER = "counter"
    CAPACITY = "capacity"
    DEVICES = "devices"


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """A measure of one pool.

    Parameters
    ----------
    name
        The name of the counter or capacity. ``slice-*`` stands for all counters ``slice-0``, ``slice-1``, ...
    positional
        Whether it counts places: numbered counters of which a device takes all or nothing, like the memory slices of
        a GPU with MIG.
    """

    pool: PoolID
    kind: MeasureKind
    name: str
    positional: bool = False

    @property
    def title(self) -> str:
        """What is counted, as tables show it."""
        return self.name if self.kind is MeasureKind.DEVICES else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Unit:
    """What a measure is kept in: a counter set, or one device. Amounts in nanos; ``counters`` by their index."""

    name: str
    total: int
    free: int
    counters: frozenset[int] = frozenset()
    slot: int = -1


class Measures:
    """Finds what the pools of a problem are measured in.

    Devices that draw on counters are measured by these, other shareable devices by their capacities, and all others by
    their number. A counter that shareable devices draw on by a fixed amount is no measure: what one more share takes of
    it depends on who else has a share.
    """

    def __init__(self, compiled: Compiled, books: Books) -> None:
        self._problem: Problem = compiled.problem
        self._sources = compiled.inventory.sources
        self._books = books

    @cached_property
    def units(self) -> Mapping[Measure, list[Unit]]:
        """All measures with their units, in the order of pools."""
        found: dict[Measure, list[Unit]] = defaultdict(list)
        for measure, unit in (*self._counters(), *self._of_devices()):
            found[measure].append(unit)
        return {measure: found[measure] for measure in sorted(found) if any(unit.total for unit in found[measure])}

    def counters(self, measure: Measure) -> frozenset[int]:
        """The counters that a measure is kept in."""
        return frozenset().union(*(unit.counters for unit in self.units[measure]))

    def kind_of(self, number: int) -> MeasureKind:
        """What a device is measured by."""
        device = self._problem.devices[number]
        if device.consumes or self._sources[number].requested_counters:
            return MeasureKind.COUNTER
        return MeasureKind.CAPACITY if device.shareable else MeasureKind.DEVICES

    # Counters.

    def _counters(self) -> Iterator[tuple[Measure, Unit]]:
        sets: dict[tuple[Measure, int, str], set[int]] = defaultdict(set)
        for number, counter in enumerate(self._problem.counters):
            if number not in self._shared:
                id_ = counter.id
                family = self.family(number)
                measure = Measure(
                    PoolID(id_.driver, id_.pool), MeasureKind.COUNTER, family or id_.counter, bool(family)
                )
                sets[measure, counter.group, id_.counter_set].add(number)
        for (measure, _, counter_set), numbers in sets.items():
            total = sum(self._problem.counters[number].total for number in numbers)
            free = sum(max(0, self._books.free[number]) for number in numbers)
            yield measure, Unit(counter_set, total, free, frozenset(numbers))

    @cached_property
    def _shared(self) -> set[int]:
        """Counters that shareable devices draw on by a fixed amount."""
        return {number for device in self._problem.devices if device.shareable for number, _ in device.consumes}

    @cached_property
    def positional(self) -> frozenset[int]:
        """The counters that stand for places."""
        return frozenset(number for number in range(len(self._problem.counters)) if self.family(number))

    def family(self, number: int) -> str:
        """The name of a counter without its number if it stands for a place; empty if not."""
        counter = self._problem.counters[number]
        siblings = self._siblings[counter.group, counter.id.counter_set, _stem(counter.id.counter)]
        return f"{_stem(counter.id.counter)}*" if siblings > 1 and number not in self._divided else ""

    @cached_property
    def _siblings(self) -> Mapping[tuple[int, str, str], int]:
        """How many counters of a set are called alike but for their number."""
        found: dict[tuple[int, str, str], int] = defaultdict(int)
        for number, counter in enumerate(self._problem.counters):
            stem = _stem(counter.id.counter)
            if stem and number not in self._divided:
                found[counter.group, counter.id.counter_set, stem] += 1
        return found

    @cached_property
    def _divided(self) -> set[int]:
        """The counters of which some device takes a part, or takes what a claim asks for."""
        counters = self._problem.counters
        by_request = {number for source in self._sources for number, _ in source.requested_counters}
        parts = (
            number
            for device in self._problem.devices
            for number, amount in device.consumes
            if amount != counters[number].total
        )
        return by_request.union(parts)

    # Devices without counters.

    def _of_devices(self) -> Iterator[tuple[Measure, Unit]]:
        for slot, versions in self._problem.versions.items():
            number = versions[-1]
            device = self._problem.devices[number]
            kind = self.kind_of(number)
            if kind is MeasureKind.DEVICES:
                free = 0 if slot in self._books.held or slot in self._books.shares else NANOS
                measure = Measure(device.id.pool_id, MeasureKind.DEVICES, DEVICES)
                yield measure, Unit(device.id.device, NANOS, free, slot=slot)
            elif kind is MeasureKind.CAPACITY:
                yield from self._capacities(device)

    def _capacities(self, device: Device) -> Iterator[tuple[Measure, Unit]]:
        consumed = self._books.consumed.get(device.slot, {})
        for name, capacity in device.capacity.items():
            if capacity.consumable:
                left = 0 if device.slot in self._books.held else capacity.total - consumed.get(name, 0)
                measure = Measure(device.id.pool_id, MeasureKind.CAPACITY, name)
                yield measure, Unit(device.id.device, capacity.total, max(0, left), slot=device.slot)


def _stem(name: str) -> str:
    """A counter's name without its number; empty if it has none."""
    match = _NUMBERED.fullmatch(name)
    return match[1] if match else ""
