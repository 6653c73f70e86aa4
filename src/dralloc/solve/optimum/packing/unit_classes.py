"""The classes of units: of what type they are, and which devices they pick for items."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple

from dralloc.problem.grouping import grouped
from dralloc.solve.optimum.classes.bin_keys import BinClass, NodeView, UnitView, Values
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.demand_classes import ItemGroup, Listed
from dralloc.solve.optimum.classes.patterns import Pattern, maximal_patterns
from dralloc.solve.optimum.classes.state_space import StateSpace
from dralloc.solve.optimum.classes.supply import follow
from dralloc.solve.optimum.classes.usable import Profile
from dralloc.solve.optimum.packing.bundles import Bundles
from dralloc.solve.optimum.packing.capacity_units import (
    CapacityUnitType,
    capacity_units,
)
from dralloc.solve.optimum.packing.charged_counters import ChargedCounters
from dralloc.solve.optimum.packing.unit_types import PatternUnitType, UnitType

__all__ = ["ClassifiedUnit", "UnitClassifier"]

_MOST_EFFORT: Final = 60_000
"""More devices are not looked at for the patterns of one unit."""


Devices = tuple[tuple[int, ...], ...]
"""What serves an item: for each of its item groups the devices, by position in the unit."""


class ClassifiedUnit(NamedTuple):
    """The unit type (an index), and which devices serve items of some types that fit together."""

    unit_type: int
    devices: Callable[[Sequence[int]], list[Devices]]


@dataclass(frozen=True, slots=True)
class _AlwaysTheSame:
    """Picks for a unit of which every item has the same devices: the shared one, or none."""

    each: Devices

    def __call__(self, types: Sequence[int]) -> list[Devices]:
        return [self.each] * len(types)


@dataclass(frozen=True, slots=True)
class _ByPattern:
    """Picks for a unit with known patterns."""

    space: StateSpace
    patterns: Sequence[Pattern]
    _known: dict[tuple[int, ...], list[Devices]] = field(default_factory=dict)

    def __call__(self, types: Sequence[int]) -> list[Devices]:
        key = tuple(types)
        if key not in self._known:
            self._known[key] = self._find(types)
        return self._known[key]

    def _find(self, types: Sequence[int]) -> list[Devices]:
        asked = Tally(types)
        pattern = next(
            each for each in self.patterns if asked <= Tally(dict(each.counts))
        )
        itself = Bin((tuple(range(self.space.size)),), (0,))
        found = grouped(
            (type_, served.devices)
            for type_, served in follow(self.space, itself, pattern.transitions)
        )
        given = {type_: iter(sorted(devices)) for type_, devices in found.items()}
        return [next(given[type_]) for type_ in types]


class UnitClassifier:
    """Sorts units into types, which it numbers.

    ``supply``: by type, how many items are wanted in all. ``listed_amounts``: see `dralloc.objects.choices.Thresholds`.
    """

    def __init__(
        self,
        profiles: Sequence[Profile],
        bundles: Bundles,
        supply: Mapping[int, int],
        listed_amounts: int,
    ) -> None:
        self.profiles = profiles
        self.bundles = bundles
        self.listed_amounts = listed_amounts
        self.supply = supply
        self.unit_types: Listed[UnitType] = Listed()
        self._units: dict[Hashable, ClassifiedUnit | None] = {}

    def units(
        self, bin_class: BinClass
    ) -> list[tuple[tuple[int, ...], ClassifiedUnit]] | None:
        """The units of a bin, by unit type, each with its parts; None if one of them has too many states."""
        found = []
        for parts in self.bundles.units(bin_class):
            key = (
                tuple(bin_class.units[part] for part in parts),
                _values(bin_class, parts),
            )
            if key not in self._units:
                self._units[key] = self._enter(key[0], bin_class.attributes, key[1])
            unit = self._units[key]
            if unit is None:
                return None
            found.append((parts, unit))
        return sorted(found, key=lambda each: each[1].unit_type)

    def counters(
        self, counters: ChargedCounters, types: Mapping[tuple[ItemGroup, ...], int]
    ) -> ClassifiedUnit:
        """The unit of counters that are charged by request, which gives an item of a type to each of item groups."""
        charged = {
            type_: counters.of(item_groups) for item_groups, type_ in types.items()
        }
        uses = {
            type_: amounts for type_, amounts in charged.items() if amounts is not None
        }
        unit_type = capacity_units(uses, counters.left, sum(self.supply.values()))
        return ClassifiedUnit(self.unit_types.number(unit_type), _AlwaysTheSame(()))

    def _enter(
        self, views: tuple[UnitView, ...], attributes: tuple[str, ...], values: Values
    ) -> ClassifiedUnit | None:
        devices = [device for view in views for device in view.devices]
        everywhere = NodeView(0, tuple(range(len(devices))))
        space = StateSpace(
            BinClass(views, attributes, values, (everywhere,)),
            self.profiles,
            (frozenset({0}),),
        )
        offered = {
            type_ for device in devices for type_, _ in self.profiles[device.profile]
        }
        supply = {
            type_: number
            for type_, number in self.supply.items()
            if offered.issuperset(
                group.type for group in self.bundles.items[type_].item_groups
            )
        }
        capacity_units = _as_capacity_units(space, supply, self.listed_amounts)
        if capacity_units is not None:
            return ClassifiedUnit(
                self.unit_types.number(capacity_units), _AlwaysTheSame(((0,),))
            )
        patterns = maximal_patterns(space, self.bundles.items, supply, _MOST_EFFORT)
        if patterns is None:
            return None
        types = tuple(
            sorted({type_ for pattern in patterns for type_, _ in pattern.counts})
        )
        rows = sorted(
            {
                tuple(map(Tally(dict(pattern.counts)).__getitem__, types))
                for pattern in patterns
            }
        )
        unit_type = PatternUnitType(
            types, tuple(rows), any(device.shareable for device in devices)
        )
        return ClassifiedUnit(
            self.unit_types.number(unit_type), _ByPattern(space, patterns)
        )


def _as_capacity_units(
    space: StateSpace, wanted: Mapping[int, int], few: int
) -> CapacityUnitType | None:
    """See a unit as one shared device with many amounts; None if it is not."""
    layout, *more = space.layouts
    group, *others = layout.groups
    if (
        more
        or others
        or not group.shareable
        or group.opens
        or not group.uses.keys() >= set(wanted)
    ):
        return None
    left = layout.block[1:]
    uses = {}
    for type_ in sorted(wanted):
        amounts = dict(group.uses[type_])
        uses[type_] = tuple(amounts.get(at, 0) for at in range(1, 1 + len(left)))
    fit = capacity_units(uses, left, sum(wanted.values()))
    return None if len(fit.start) == len(left) and len(set(fit.uses)) <= few else fit


def _values(bin_class: BinClass, parts: Sequence[int]) -> Values:
    """The values of the devices in some parts of a bin, numbered as they appear there."""
    starts = list(
        accumulate((len(view.devices) for view in bin_class.units), initial=0)
    )
    numbers: dict[int, int] = {}
    return tuple(
        tuple(
            None
            if own is None
            else frozenset(
                numbers.setdefault(value, len(numbers)) for value in sorted(own)
            )
            for own in bin_class.values[place]
        )
        for part in parts
        for place in range(starts[part], starts[part + 1])
    )
