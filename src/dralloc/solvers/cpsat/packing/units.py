"""The units of the inventory: of what kind they are, and which devices they give for pieces."""

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
from dralloc.solvers.cpsat.packing.bins import BinKind
from dralloc.solvers.cpsat.packing.kinds import Kind, PatternKind

__all__ = ["Unit", "UnitReader"]

_MOST_EFFORT: Final = 60_000
"""More devices are not looked at for the patterns of one unit."""

_FEW_AMOUNTS: Final = 8
"""So many different amounts, or fewer, make patterns that can be listed."""


class Giver(Protocol):
    """How a unit gives devices."""

    def devices(self, types: Sequence[int]) -> list[int]:
        """The devices, by position in the unit, for pieces of these types; they must fit together."""


class SingleGiver:
    """A unit that is one shared device."""

    def devices(self, types: Sequence[int]) -> list[int]:
        """The device, for every piece."""
        return [0] * len(types)


@dataclass(frozen=True, slots=True)
class PatternGiver:
    """How a unit with known patterns gives devices."""

    space: StateSpace
    patterns: Sequence[Pattern]
    _known: dict[tuple[int, ...], list[int]] = field(default_factory=dict)

    def devices(self, types: Sequence[int]) -> list[int]:
        """The devices, by position in the unit, for pieces of these types; they must fit together."""
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
    """What of the asked pieces the pattern has."""
    return {type_: min(count, asked[type_]) for type_, count in pattern.counts if type_ in asked}


@dataclass(frozen=True, slots=True)
class Unit:
    """What a unit looks like: the index of its kind, and how it gives devices."""

    kind: int
    giver: Giver


class UnitReader:
    """Sorts units into kinds.

    Parameters
    ----------
    profiles
        What the devices' profiles stand for.
    supply
        By type, how many pieces are wanted in all.
    """

    def __init__(self, profiles: Sequence[Profile], supply: Mapping[int, int]) -> None:
        self.profiles = profiles
        self.supply = supply
        self.pieces = [Requirement((ItemGroup(0, type_, 1),), (), 0) for type_ in range(max(supply, default=-1) + 1)]
        self.kinds: list[Kind] = []
        self._numbers: dict[Kind, int] = {}
        self._units: dict[UnitView, Unit | None] = {}

    def read(self, view: UnitView) -> Unit | None:
        """The unit; None if it has too many states."""
        if view not in self._units:
            self._units[view] = self._enter(view)
        return self._units[view]

    def _enter(self, view: UnitView) -> Unit | None:
        everywhere = NodeView(0, tuple(range(len(view.devices))))
        space = StateSpace(BinClass((view,), (), (everywhere,)), self.profiles, (frozenset({0}),))
        offered = {type_ for device in view.devices for type_, _ in self.profiles[device.profile]}
        supply = {type_: count for type_, count in self.supply.items() if type_ in offered}
        bin_ = _as_capacity_units(space, supply)
        if bin_ is not None:
            return Unit(self._number(bin_), SingleGiver())
        patterns = maximal_patterns(space, self.pieces, supply, _MOST_EFFORT)
        if patterns is None:
            return None
        types = tuple(sorted({type_ for pattern in patterns for type_, _ in pattern.counts}))
        counts = [dict(pattern.counts) for pattern in patterns]
        rows = sorted({tuple(each.get(type_, 0) for type_ in types) for each in counts})
        kind = PatternKind(types, tuple(rows), any(device.shareable for device in view.devices))
        return Unit(self._number(kind), PatternGiver(space, patterns))

    def _number(self, kind: Kind) -> int:
        if kind not in self._numbers:
            self._numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
        return self._numbers[kind]


def _as_capacity_units(space: StateSpace, wanted: Collection[int]) -> BinKind | None:
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
    if len(set(uses.values())) <= _FEW_AMOUNTS or not all(map(any, uses.values())):
        return None
    return BinKind(tuple(uses), tuple(uses.values()), left)
