"""Which counters devices consume. A million devices have few ways to, so each is worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dralloc.api import DeviceCounterConsumption

__all__ = ["Consumption", "CounterGroup"]

Key = tuple[str, str]
"""Counter set and counter."""


@dataclass(frozen=True, slots=True)
class _Relative:
    """What a device consumes, by offset from the first counter of its group. Keeps alive what says so."""

    consumptions: Sequence[DeviceCounterConsumption]
    fixed: tuple[tuple[int, int], ...]
    by_request: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class CounterGroup:
    """The counters of a group of slices.

    Equal lists of consumed counters are one object after loading, by which `known` finds what they mean. Groups whose
    counters have the same names share it.
    """

    first: int
    offsets: Mapping[Key, int]
    known: dict[int, _Relative]

    def fixed(self, consumptions: Sequence[DeviceCounterConsumption]) -> tuple[tuple[int, int], ...]:
        """Index of each counter that a device always consumes, with nanos (KEP-4815).

        Counters of which it takes none never stand in its way. They are left out, all but one if there are no others.
        """
        first = self.first
        return tuple([(first + offset, nanos) for offset, nanos in self._relative(consumptions).fixed])

    def by_request(self, consumptions: Sequence[DeviceCounterConsumption]) -> tuple[tuple[int, str], ...]:
        """Index of each counter that is consumed by request, with the key of the request's capacity (KEP-5941)."""
        first = self.first
        return tuple([(first + offset, key) for offset, key in self._relative(consumptions).by_request])

    def _relative(self, consumptions: Sequence[DeviceCounterConsumption]) -> _Relative:
        found = self.known.get(id(consumptions))
        if found is None:
            found = self.known[id(consumptions)] = self._read(consumptions)
        return found

    def _read(self, consumptions: Sequence[DeviceCounterConsumption]) -> _Relative:
        fixed: dict[int, int] = {}
        by_request = []
        for consumption in consumptions:
            for name, consumed in consumption.counters.items():
                offset = self.offsets.get((consumption.counter_set, name))
                if offset is None:
                    continue
                if consumed.value is not None:
                    fixed[offset] = fixed.get(offset, 0) + consumed.value.nanos
                if consumed.value_from is not None:
                    by_request.append((offset, consumed.value_from.capacity_key))
        kept = tuple((offset, nanos) for offset, nanos in fixed.items() if nanos)
        return _Relative(consumptions, kept or tuple(fixed.items())[:1], tuple(by_request))


@dataclass(slots=True)
class Consumption:
    """Makes counter groups."""

    _groups: dict[tuple[Key, ...], CounterGroup] = field(default_factory=dict)

    def group(self, first: int, keys: Sequence[Key]) -> CounterGroup:
        """The counters from this index on, by their names."""
        names = tuple(keys)
        if names not in self._groups:
            self._groups[names] = CounterGroup(0, {key: offset for offset, key in enumerate(names)}, {})
        like = self._groups[names]
        return CounterGroup(first, like.offsets, like.known)
