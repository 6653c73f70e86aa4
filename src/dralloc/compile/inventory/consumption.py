"""Which counters devices consume. A million devices have few ways to, so each is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import itemgetter

from dralloc.objects.api import CounterSet, DeviceCounterConsumption

__all__ = ["CounterGroup", "CounterLayout"]

Amount = tuple[int, int]
"""A counter and nanos."""

Fixed = tuple[Amount, ...]

ByRequest = tuple[tuple[int, str], ...]

Pick = Callable[[Sequence[Amount]], Fixed]


@dataclass(frozen=True, slots=True)
class _Known:
    """What a list of consumed counters means. Keeps alive what says so.

    ``fixed`` picks from a group's amounts, ``by_request`` has offsets from the group's first counter.
    """

    consumptions: Sequence[DeviceCounterConsumption]
    fixed: Pick
    by_request: ByRequest


class CounterLayout:
    """The counter sets of a group of slices, and what devices consume of them.

    Equal counter sets, and equal lists of consumed counters, are one object after loading: by that they are known.
    What is consumed, and how much of it, are the columns ``offsets`` and ``nanos``.
    """

    def __init__(self, sets: Sequence[CounterSet]) -> None:
        self.sets = sets
        self.sets_of = [one.name for one in sets for _ in one.counters]
        self.names = [name for one in sets for name in one.counters]
        self.counters = [counter for one in sets for counter in one.counters.values()]
        self.totals = [counter.value.nanos for counter in self.counters]
        self.offsets: list[int] = []
        self.nanos: list[int] = []
        self.by_request = False
        self._offsets = {
            name: offset
            for offset, name in enumerate(zip(self.sets_of, self.names, strict=True))
        }
        self._places: dict[Amount, int] = {}
        self._known: dict[int, _Known] = {}
        self._lists: dict[int, tuple[object, Sequence[_Known]]] = {}

    def known(self, consumptions: Sequence[DeviceCounterConsumption]) -> _Known:
        """What a device with these consumptions takes."""
        found = self._known.get(id(consumptions))
        if found is None:
            found = self._known[id(consumptions)] = self._read(consumptions)
        return found

    def known_lists(
        self, consumers: Sequence[Sequence[DeviceCounterConsumption]]
    ) -> Sequence[_Known]:
        """What several devices take; the same list of them is read once."""
        found = self._lists.get(id(consumers))
        if found is None:
            found = self._lists[id(consumers)] = (
                consumers,
                [self.known(each) for each in consumers],
            )
        return found[1]

    def _read(self, consumptions: Sequence[DeviceCounterConsumption]) -> _Known:
        fixed: dict[int, int] = {}
        by_request = []
        for consumption in consumptions:
            for name, consumed in consumption.counters.items():
                offset = self._offsets.get((consumption.counter_set, name))
                if offset is None:
                    continue
                if consumed.value is not None:
                    fixed[offset] = fixed.get(offset, 0) + consumed.value.nanos
                if consumed.value_from is not None:
                    by_request.append((offset, consumed.value_from.capacity_key))
        self.by_request |= bool(by_request)
        kept = [amount for amount in fixed.items() if amount[1]] or list(fixed.items())[
            :1
        ]
        return _Known(
            consumptions,
            _pick([self._place(amount) for amount in kept]),
            tuple(by_request),
        )

    def _place(self, amount: Amount) -> int:
        place = self._places.setdefault(amount, len(self._places))
        if place == len(self.offsets):
            offset, nanos = amount
            self.offsets.append(offset)
            self.nanos.append(nanos)
        return place


def _pick(places: Sequence[int]) -> Pick:
    if len(places) > 1:
        several: Pick = itemgetter(*places)
        return several
    return lambda amounts: tuple(amounts[place] for place in places)


@dataclass(frozen=True, slots=True)
class CounterGroup:
    """The counters of a group of slices, numbered from ``first``."""

    first: int
    layout: CounterLayout
    _amounts: list[Amount] = field(default_factory=list)

    def taken(
        self, consumers: Sequence[Sequence[DeviceCounterConsumption]]
    ) -> tuple[list[Fixed], Iterable[ByRequest]]:
        """What devices take, given what each of them says that it consumes: two columns.

        The first has the index of each counter that a device always consumes, with nanos (KEP-4815). Counters of which
        it takes none never stand in its way: they are left out, all but one if there are no others. The second has the
        index of each counter that it consumes by request, with the key of the request's capacity (KEP-5941).
        """
        layout, first = self.layout, self.first
        known = layout.known_lists(consumers)
        new = slice(len(self._amounts), None)
        self._amounts.extend(
            zip(map(first.__add__, layout.offsets[new]), layout.nanos[new], strict=True)
        )
        fixed = [one.fixed(self._amounts) for one in known]
        if not layout.by_request:
            return fixed, repeat(())
        return fixed, [
            tuple((first + offset, key) for offset, key in one.by_request)
            for one in known
        ]
