"""Counters that are charged by request, as a unit of their own.

Such a counter makes one unit of all devices that charge it: of all of a node, if it is the node's memory (KEP-5517).
But if each device that can be an item of a type charges the same, it does not matter to the counters which one it is.
Then an assignment option is known to charge so much in each bin: the counters are a unit that gives one more item to
each option, and the other units are what they were without counters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from dralloc.problem.eligibility import renumbered
from dralloc.solve.optimum.classes.bin_keys import BinClass, UnitView
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.demand_classes import ItemGroup
from dralloc.solve.optimum.classes.disjoint_sets import DisjointSets
from dralloc.solve.optimum.classes.usable import Profile

__all__ = ["ChargedCounters", "apart", "uncharged"]

Amounts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChargedCounters:
    """The counters of equal bins: what is left of each, and by type of item what it charges to each."""

    left: Amounts
    amounts: Mapping[int, Amounts]

    def of(self, item_groups: Sequence[ItemGroup]) -> Amounts | None:
        """What serving item groups charges; None if the bins cannot serve them."""
        if not all(group.type in self.amounts for group in item_groups):
            return None
        charged = [
            [group.number * amount for amount in self.amounts[group.type]]
            for group in item_groups
        ]
        return tuple(map(sum, zip(*charged, strict=True)))


def uncharged(profiles: Sequence[Profile]) -> list[Profile]:
    """The profiles without counters."""
    return [
        tuple([(type_, replace(charge, counters=())) for type_, charge in profile])
        for profile in profiles
    ]


def apart(
    bin_class: BinClass, profiles: Sequence[Profile]
) -> tuple[BinClass, ChargedCounters] | None:
    """The bins without counters that are charged by request, and these; None if they cannot be told apart.

    They cannot if items of a type charge not the same on all devices, or devices consume something of the counters.
    """
    devices = [
        (unit, device)
        for unit, view in enumerate(bin_class.units)
        for device in view.devices
    ]
    drawn = dict.fromkeys(
        (unit, counter) for unit, device in devices for counter in device.charged
    )
    places = {counter: place for place, counter in enumerate(drawn)}
    if any(
        (unit, counter) in places
        for unit, device in devices
        for counter, _ in device.consumes
    ):
        return None
    amounts: dict[int, Amounts] = {}
    for unit, device in devices:
        for type_, charge in profiles[device.profile]:
            charged = [0] * len(places)
            for place, amount in charge.counters:
                charged[places[unit, device.charged[place]]] += amount
            if amounts.setdefault(type_, tuple(charged)) != tuple(charged):
                return None
    left = tuple(bin_class.units[unit].free[number] for unit, number in places)
    return _without(bin_class), ChargedCounters(left, amounts)


def _without(bin_class: BinClass) -> BinClass:
    """The bins with smaller units: those of devices that consume something of one counter."""
    parts = [
        (unit, part)
        for unit, view in enumerate(bin_class.units)
        for part in _parts(view)
    ]
    starts = list(
        accumulate((len(view.devices) for view in bin_class.units), initial=0)
    )
    order = [starts[unit] + place for unit, part in parts for place in part]
    return BinClass(
        tuple(_view(bin_class.units[unit], part) for unit, part in parts),
        bin_class.attributes,
        tuple(bin_class.values[position] for position in order),
        bin_class.nodes,
        [
            Bin(
                tuple(
                    tuple(bin_.units[unit][place] for place in part)
                    for unit, part in parts
                ),
                bin_.nodes,
            )
            for bin_ in bin_class.bins
        ],
    )


def _parts(view: UnitView) -> Collection[list[int]]:
    """The devices of a unit, by place, that consume something of one counter."""
    sets, first = DisjointSets(len(view.devices)), dict[int, int]()
    for place, device in enumerate(view.devices):
        for counter, _ in device.consumes:
            sets.unite(first.setdefault(counter, place), place)
    return sets.groups(range(len(view.devices)))


def _view(view: UnitView, part: Sequence[int]) -> UnitView:
    devices = [view.devices[place] for place in part]
    counters = dict.fromkeys(
        counter for device in devices for counter, _ in device.consumes
    )
    numbers = {counter: number for number, counter in enumerate(counters)}
    return UnitView(
        tuple(
            device._replace(consumes=renumbered(device.consumes, numbers), charged=())
            for device in devices
        ),
        tuple(view.free[counter] for counter in counters),
    )
