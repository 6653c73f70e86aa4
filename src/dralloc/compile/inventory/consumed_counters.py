"""The counters that devices consume.

A million devices have few ways to consume counters, so each is worked out once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import itemgetter
from typing import cast

from dralloc.objects.api import Counter as ApiCounter
from dralloc.objects.api import CounterSet, DeviceCounterConsumption
from dralloc.problem import CounterIndex

__all__ = ["ByRequest", "CounterGroup", "CounterLayout"]

Amount = tuple[CounterIndex, int]
"""A counter and nanos."""

Fixed = tuple[Amount, ...]

ByRequest = tuple[tuple[CounterIndex, str], ...]

Pick = Callable[[Sequence[Amount]], Fixed]


@dataclass(frozen=True, slots=True)
class _Known:
    """The meaning of a list of consumed counters. Keeps the list's object alive.

    ``fixed`` picks from a group's amounts, ``by_request`` has offsets from the group's first counter.
    """

    consumptions: Sequence[DeviceCounterConsumption]
    fixed: Pick
    by_request: Sequence[tuple[int, str]]


class CounterLayout:
    """The counter sets of a group of slices, and what devices consume of them.

    Equal counter sets, and equal lists of consumed counters, are one object after loading: by that they are known.
    What is consumed, and how much of it, are the columns ``offsets`` and ``nanos``.
    """

    def __init__(self, sets: Sequence[CounterSet]) -> None:
        self.sets = sets
        self.sets_of: list[str] = []
        self.names: list[str] = []
        self.counters: list[ApiCounter] = []
        for counter_set in sets:
            for name, counter in counter_set.counters.items():
                self.sets_of.append(counter_set.name)
                self.names.append(name)
                self.counters.append(counter)
        self.totals = [counter.value.nanos for counter in self.counters]
        self.offsets: list[int] = []
        self.nanos: list[int] = []
        self.by_request = False
        self._offsets = {
            name: offset
            for offset, name in enumerate(
                zip(self.sets_of, self.names, strict=True)
            )
        }
        self._places: dict[tuple[int, int], int] = {}
        self._known: dict[int, _Known] = {}
        self._lists: dict[int, tuple[object, Sequence[_Known]]] = {}

    def known(self, consumptions: Sequence[DeviceCounterConsumption]) -> _Known:
        """Return the amounts that a device with these consumptions takes."""
        consumption = self._known.get(id(consumptions))
        if consumption is None:
            consumption = self._known[id(consumptions)] = self._read(
                consumptions
            )
        return consumption

    def known_lists(
        self, consumers: Sequence[Sequence[DeviceCounterConsumption]]
    ) -> Sequence[_Known]:
        """Return the amounts that several devices take; the same list of devices is read once."""
        entry = self._lists.get(id(consumers))
        if entry is None:
            entry = self._lists[id(consumers)] = (
                consumers,
                [self.known(consumptions) for consumptions in consumers],
            )
        return entry[1]

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
                    by_request.append(
                        (offset, consumed.value_from.capacity_key)
                    )
        self.by_request |= bool(by_request)
        amounts = [amount for amount in fixed.items() if amount[1]]
        # Who consumes nothing of all its counters still consumes: an overdrawn counter closes it.
        amounts = amounts or list(fixed.items())[:1]
        return _Known(
            consumptions,
            _pick([self._place(amount) for amount in amounts]),
            tuple(by_request),
        )

    def _place(self, amount: tuple[int, int]) -> int:
        row = self._places.setdefault(amount, len(self._places))
        if row == len(self.offsets):
            offset, nanos = amount
            self.offsets.append(offset)
            self.nanos.append(nanos)
        return row


def _pick(rows: Sequence[int]) -> Pick:
    if len(rows) > 1:
        pick: Pick = itemgetter(*rows)
        return pick
    # For one row, `itemgetter` would return the amount instead of a tuple.
    return lambda amounts: tuple(amounts[row] for row in rows)


@dataclass(frozen=True, slots=True)
class CounterGroup:
    """The counters of a group of slices, numbered from ``first``."""

    first: int
    layout: CounterLayout
    _amounts: list[Amount] = field(default_factory=list)

    def taken(
        self, consumers: Sequence[Sequence[DeviceCounterConsumption]]
    ) -> tuple[list[Fixed], Iterable[ByRequest]]:
        """Return the amounts that devices take, as two columns, given the consumptions of each.

        The first has the index of each counter that a device always consumes, with nanos (KEP-4815). Counters of which
        it takes none never stand in its way: they are left out, all but one if there are no others. The second has the
        index of each counter that it consumes by request, with the key of the request's capacity (KEP-5941).
        """
        layout, first = self.layout, self.first
        consumptions = layout.known_lists(consumers)
        # The layout may have learnt of more amounts since this group last took some of them.
        new = slice(len(self._amounts), None)
        counters = map(first.__add__, layout.offsets[new])
        self._amounts.extend(
            zip(
                cast("Iterator[CounterIndex]", counters),
                layout.nanos[new],
                strict=True,
            )
        )
        fixed = [
            consumption.fixed(self._amounts) for consumption in consumptions
        ]
        if not layout.by_request:
            return fixed, repeat(())
        by_request = []
        for consumption in consumptions:
            shifted = [
                (CounterIndex(first + offset), key)
                for offset, key in consumption.by_request
            ]
            by_request.append(tuple(shifted))
        return fixed, by_request
