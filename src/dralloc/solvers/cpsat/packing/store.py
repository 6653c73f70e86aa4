"""The inventory and the wishes of a component, as fillings and the master see them."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dralloc.solvers.cpsat.classes.bins import Bin
from dralloc.solvers.cpsat.classes.demand_classes import DemandClass, Requirement, ServingMode
from dralloc.solvers.cpsat.classes.state_space import StateSpace
from dralloc.solvers.cpsat.packing.kinds import Kind
from dralloc.solvers.cpsat.packing.units import Unit, UnitReader

__all__ = ["Bay", "Piece", "Slot", "Store", "Way", "as_store"]


class Piece(NamedTuple):
    """One device of a type, for an ask (its place in the need)."""

    type: int
    item_group: int


class Way(NamedTuple):
    """A way to serve a demand class (an index): one of its modes, and the pieces that it takes."""

    cls: int
    mode: ServingMode
    requirement: Requirement
    pieces: tuple[Piece, ...]


class Slot(NamedTuple):
    """A bin in a bay: its units by their place in the bay, as numbers in the bin and as what they look like."""

    bin_: Bin
    order: tuple[int, ...]
    units: tuple[Unit, ...]
    sets: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class Bay:
    """Bins that can be filled in the same ways: the kinds of their units in order, and the area that they are in."""

    kinds: tuple[int, ...]
    area: int
    slots: list[Slot] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Store:
    """All there is, and all that is wanted.

    Parameters
    ----------
    classes, ways
        The demand classes, and the ways to serve them.
    kinds
        The kinds of units.
    bays
        The bins.
    areas
        By number: the sets of candidate nodes that some node of a bin belongs to.
    """

    classes: tuple[DemandClass, ...]
    ways: tuple[Way, ...]
    kinds: tuple[Kind, ...]
    bays: tuple[Bay, ...]
    areas: tuple[frozenset[int], ...]

    def ways_of(self, area: int) -> Iterator[int]:
        """The ways that candidate nodes allow in an area."""
        for number, way in enumerate(self.ways):
            if way.requirement.nodes in self.areas[area]:
                yield number

    @property
    def demands(self) -> list[int]:
        """All demands, in order."""
        return sorted(member for each in self.classes for member in each.members)

    @property
    def types(self) -> list[int]:
        """The types of all pieces, in order."""
        return sorted({piece.type for way in self.ways for piece in way.pieces})


def as_store(
    classes: Sequence[DemandClass], spaces: Sequence[StateSpace], requirements: Sequence[Requirement]
) -> Store | None:
    """See a component as a store.

    Returns
    -------
    None if a need has constraints, a node of a bin does not reach all of it, a unit has too many states, or an ask for
    several devices could get one shared device several times.
    """
    ways = [
        Way(number, mode, requirements[mode.requirement], _pieces(requirements[mode.requirement]))
        for number, each in enumerate(classes)
        for mode in each.modes
    ]
    if any(way.requirement.rules for way in ways):
        return None
    wanted: Tally[int] = Tally()
    for way in ways:
        for piece in way.pieces:
            wanted[piece.type] += len(classes[way.cls].members)
    reader = UnitReader(spaces[0].profiles, wanted)
    areas: dict[frozenset[int], int] = {}
    bays: dict[tuple[tuple[int, ...], int], Bay] = {}
    for space in spaces:
        units = [reader.read(view) for view in space.bin_class.units]
        known = [unit for unit in units if unit is not None]
        devices = sum(len(view.devices) for view in space.bin_class.units)
        if len(known) < len(units) or any(len(place.reach) < devices for place in space.bin_class.nodes):
            return None
        order = tuple(sorted(range(len(known)), key=lambda unit: known[unit].kind))
        area = areas.setdefault(frozenset().union(*space.node_sets), len(areas))
        key = tuple(known[unit].kind for unit in order), area
        bay = bays.setdefault(key, Bay(*key))
        sets = tuple(space.node_sets)
        looks = tuple(known[unit] for unit in order)
        bay.slots.extend([Slot(bin_, order, looks, sets) for bin_ in space.bin_class.bins])
    several = {item_group.type for way in ways for item_group in way.requirement.item_groups if item_group.number > 1}
    if any(kind.shared and kind.most(type_) > 1 for kind in reader.kinds for type_ in several.intersection(kind.types)):
        return None
    return Store(tuple(classes), tuple(ways), tuple(reader.kinds), tuple(bays.values()), tuple(areas))


def _pieces(requirement: Requirement) -> tuple[Piece, ...]:
    return tuple(
        Piece(item_group.type, number)
        for number, item_group in enumerate(requirement.item_groups)
        for _ in range(item_group.number)
    )
