"""The classes of units: of what type they are, and which devices they pick for items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from dralloc.solvers.cpsat.classes.bin_keys import BinClass, NodeView, UnitView
from dralloc.solvers.cpsat.classes.demand_classes import ItemGroup, Requirement
from dralloc.solvers.cpsat.classes.patterns import Pattern, maximal_patterns
from dralloc.solvers.cpsat.classes.state_space import StateSpace
from dralloc.solvers.cpsat.classes.usable import Profile
from dralloc.solvers.cpsat.packing.capacity_units import CapacityUnitType
from dralloc.solvers.cpsat.packing.unit_types import PatternUnitType, UnitType

__all__ = ["ClassifiedUnit", "UnitClassifier"]

_MOST_EFFORT: Final = 60_000
"""More devices are not looked at for the patterns of one unit."""


class DevicePicker(Protocol):
    """Decides which devices of a unit serve items."""

    def devices(self, types: Sequence[int]) -> list[int]:
        """The devices, by position in the unit, for items of these types; they must fit together."""


class SharedDevicePicker:
    """A unit that is one shared device."""

    def devices(self, types: Sequence[int]) -> list[int]:
        """The device, for every item."""
        return [0] * len(types)


@dataclass(frozen=True, slots=True)
class PatternDevicePicker:
    """A unit with known patterns."""

    space: StateSpace
    patterns: Sequence[Pattern]
    _known: dict[tuple[int, ...], list[int]] = field(default_factory=dict)

    def devices(self, types: Sequence[int]) -> list[int]:
        """The devices, by position in the unit, for items of these types; they must fit together."""
        key = tuple(types)
        if key not in self._known:
            self._known[key] = self._find(types)
        return self._known[key]

    def _find(self, types: Sequence[int]) -> list[int]:
        asked: dict[int, int] = defaultdict(int)
        for type_ in types:
            asked[type_] += 1
        pattern = next(each for each in self.patterns if asked.items() <= _covered(each, asked).items())
        groups = self.space.layouts[0].groups
        left = [list(reversed(group.members)) for group in groups]
        found: dict[int, list[int]] = defaultdict(list)
        for transition in pattern.transitions:
            [use] = transition.device_uses
            members = left[use.group]
            found[transition.requirement].append(members[-1] if groups[use.group].shareable else members.pop())
        given = {type_: iter(sorted(devices)) for type_, devices in found.items()}
        return [next(given[type_]) for type_ in types]


def _covered(pattern: Pattern, asked: Mapping[int, int]) -> dict[int, int]:
    """The asked items that the pattern has."""
    return {type_: min(count, asked[type_]) for type_, count in pattern.counts if type_ in asked}


@dataclass(frozen=True, slots=True)
class ClassifiedUnit:
    """The unit type (an index), and how devices are picked."""

    unit_type: int
    picker: DevicePicker


class UnitClassifier:
    """Sorts units into types.

    Parameters
    ----------
    profiles
        What the devices' profiles stand for.
    supply
        By type, how many items are wanted in all.
    listed_amounts
        See `dralloc.choices.Thresholds`.
    """

    def __init__(self, profiles: Sequence[Profile], supply: Mapping[int, int], listed_amounts: int) -> None:
        self.profiles = profiles
        self.listed_amounts = listed_amounts
        self.supply = supply
        self.items = [Requirement((ItemGroup(0, type_, 1),), (), 0) for type_ in range(max(supply, default=-1) + 1)]
        self.unit_types: list[UnitType] = []
        self._numbers: dict[UnitType, int] = {}
        self._units: dict[UnitView, ClassifiedUnit | None] = {}

    def read(self, view: UnitView) -> ClassifiedUnit | None:
        """The unit; None if it has too many states."""
        if view not in self._units:
            self._units[view] = self._enter(view)
        return self._units[view]

    def _enter(self, view: UnitView) -> ClassifiedUnit | None:
        everywhere = NodeView(0, tuple(range(len(view.devices))))
        space = StateSpace(BinClass((view,), (), (everywhere,)), self.profiles, (frozenset({0}),))
        offered = {type_ for device in view.devices for type_, _ in self.profiles[device.profile]}
        supply = {type_: count for type_, count in self.supply.items() if type_ in offered}
        capacity_units = _as_capacity_units(space, supply, self.listed_amounts)
        if capacity_units is not None:
            return ClassifiedUnit(self._number(capacity_units), SharedDevicePicker())
        patterns = maximal_patterns(space, self.items, supply, _MOST_EFFORT)
        if patterns is None:
            return None
        types = tuple(sorted({type_ for pattern in patterns for type_, _ in pattern.counts}))
        counts = [dict(pattern.counts) for pattern in patterns]
        rows = sorted({tuple(each.get(type_, 0) for type_ in types) for each in counts})
        unit_type = PatternUnitType(types, tuple(rows), any(device.shareable for device in view.devices))
        return ClassifiedUnit(self._number(unit_type), PatternDevicePicker(space, patterns))

    def _number(self, unit_type: UnitType) -> int:
        if unit_type not in self._numbers:
            self._numbers[unit_type] = len(self.unit_types)
            self.unit_types.append(unit_type)
        return self._numbers[unit_type]


def _as_capacity_units(space: StateSpace, wanted: Collection[int], few: int) -> CapacityUnitType | None:
    """See a unit as one shared device with many amounts; None if it is not."""
    [layout] = space.layouts
    group, *others = layout.groups
    if others or not group.shareable or group.opens:
        return None
    left = layout.block[1:]
    uses = {}
    for type_ in sorted(set(group.uses).intersection(wanted)):
        amounts = [0] * len(left)
        for at, amount in group.uses[type_]:
            amounts[at - 1] += amount
        if all(map(int.__le__, amounts, left)):
            uses[type_] = tuple(amounts)
    if len(set(uses.values())) <= few or not all(map(any, uses.values())):
        return None
    return CapacityUnitType(tuple(uses), tuple(uses.values()), left)
