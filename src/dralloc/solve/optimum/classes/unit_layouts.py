"""Layouts of units: which of their devices are equal, and where in a block what is left of what stands.

A block is what is left of a unit, as numbers in a row: of each group of equal devices, how many; then of its counters;
then, group by group, of capacities, and whether a device is still closed whose first use consumes something.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dralloc.problem import Charge
from dralloc.problem.indices import grouped, summed
from dralloc.solve.optimum.classes.bins import BinClass, DeviceView, UnitView
from dralloc.solve.optimum.classes.usable_devices import Profile

__all__ = [
    "Block",
    "EqualDevices",
    "LaidOutUnits",
    "UnitLayout",
    "after_use",
    "without_unusable",
]

Block = tuple[int, ...]
"""Of a unit: what is left; see the module."""

Amounts = tuple[tuple[int, int], ...]
"""What is taken from a block, by position."""


@dataclass(frozen=True, slots=True)
class EqualDevices:
    """Equal devices of a unit; a shareable one is alone. Amounts are listed with their positions in the block.

    Parameters
    ----------
    members
        Their positions in the bin.
    shareable
        Whether it is one that several can use at once.
    opens
        What the first use consumes.
    uses, first
        By type, what each use takes; and what the first use does, ``opens`` included.
    values
        By constrained attribute, the values as numbers; None if they do not matter.
    nodes
        The positions of the nodes that reach them.
    flag
        Where in the block it stands whether the device is still closed; None if opening it consumes nothing.
    """

    members: tuple[int, ...]
    shareable: bool
    opens: Amounts
    uses: Mapping[int, Amounts]
    first: Mapping[int, Amounts]
    values: tuple[frozenset[int] | None, ...]
    nodes: frozenset[int]
    flag: int | None = None

    def next_use(self, block: Block) -> Mapping[int, Amounts]:
        """By type, what one more use takes."""
        if self.flag is None or block[self.flag]:
            return self.first
        return self.uses


@dataclass(frozen=True, slots=True)
class UnitLayout:
    """The equal devices of a unit, with its block while all is there; units with the same key are equal."""

    groups: tuple[EqualDevices, ...]
    block: Block
    key: int


class _Traits(NamedTuple):
    """What devices have to have in common to be equal; ``alone`` is the position of one that can be shared, else -1."""

    device: DeviceView
    values: tuple[frozenset[int] | None, ...]
    nodes: frozenset[int]
    alone: int


class LaidOutUnits:
    """The units of a bin class, laid out.

    Parameters
    ----------
    profiles
        What each profile of devices can serve.
    """

    def __init__(
        self, bin_class: BinClass, profiles: Sequence[Profile]
    ) -> None:
        self._bin_class = bin_class
        self._profiles = profiles
        self._keys: dict[Hashable, int] = {}

    def in_order(self) -> list[UnitLayout]:
        """Return the layouts of all units, by position."""
        layouts = []
        start = 0
        for unit in self._bin_class.units:
            layouts.append(self._layout(unit, start))
            start += len(unit.devices)
        return layouts

    def _layout(self, unit: UnitView, start: int) -> UnitLayout:
        """Lay out a unit whose devices begin at a position of the bin."""
        members_of = grouped(
            (self._traits(start + position, device), start + position)
            for position, device in enumerate(unit.devices)
        )
        block = [len(members) for members in members_of.values()]
        counters = range(len(block), len(block) + len(unit.free))
        block += unit.free
        groups = []
        for traits, members in members_of.items():
            device = traits.device
            capacity_at = {
                name: position
                for position, (name, _) in enumerate(
                    device.capacity, start=len(block)
                )
            }
            block += [amount for _, amount in device.capacity]
            flag = None
            if device.shareable and device.consumes:
                flag = len(block)
                block.append(1)
            group = self._group(traits, members, counters, capacity_at, flag)
            groups.append(group)
        # The view of a unit does not say which values its devices have, and which nodes reach them.
        key = unit, tuple((group.values, group.nodes) for group in groups)
        unit_key = self._keys.setdefault(key, len(self._keys))
        return UnitLayout(tuple(groups), tuple(block), unit_key)

    def _traits(self, position: int, device: DeviceView) -> _Traits:
        nodes = frozenset(
            node_index
            for node_index, node in enumerate(self._bin_class.nodes)
            if position in node.reach
        )
        alone = position if device.shareable else -1
        return _Traits(device, self._bin_class.values[position], nodes, alone)

    def _group(
        self,
        traits: _Traits,
        members: Sequence[int],
        counters: Sequence[int],
        capacity_at: Mapping[str, int],
        flag: int | None,
    ) -> EqualDevices:
        """Make a group of devices, with the positions in the block of the unit's counters and of its capacities."""
        device = traits.device
        opens = tuple(
            (counters[counter], amount) for counter, amount in device.consumes
        )
        charged = [counters[counter] for counter in device.charged]
        takes = {
            type_: tuple(_taken(charge, capacity_at, charged))
            for type_, charge in self._profiles[device.profile]
        }
        return EqualDevices(
            tuple(members),
            device.shareable,
            opens,
            {type_: _added(amounts) for type_, amounts in takes.items()},
            {
                type_: _added((*opens, *amounts))
                for type_, amounts in takes.items()
            },
            traits.values,
            traits.nodes,
            flag,
        )


def _taken(
    charge: Charge, capacity_at: Mapping[str, int], charged: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Give out what a use takes: of capacities, and of the counters that the device charges by request."""
    for name, amount in charge.capacity:
        yield capacity_at[name], amount
    for charge_position, amount in charge.counters:
        yield charged[charge_position], amount


def _added(amounts: Iterable[tuple[int, int]]) -> Amounts:
    """Add up what is taken at the same position."""
    return tuple(summed(amounts).items())


def without_unusable(layout: UnitLayout, block: Block) -> Block:
    """Nothing left of a group that cannot be opened or used, and of what no group that is left could use."""
    canonical = [0] * len(block)
    for group_index, group in enumerate(layout.groups):
        if not block[group_index]:
            continue
        usable = [
            amounts
            for amounts in group.next_use(block).values()
            if _fits(block, amounts)
        ]
        if not usable:
            continue
        canonical[group_index] = block[group_index]
        if group.flag is not None:
            canonical[group.flag] = block[group.flag]
        for amounts in usable:
            for position, _ in amounts:
                canonical[position] = block[position]
    return tuple(canonical)


def after_use(
    block: Block, group_index: int, group: EqualDevices, type_: int
) -> Block | None:
    """Return what is left when one more device of a group serves a type; None if that does not fit."""
    amounts = group.next_use(block)[type_]
    if not _fits(block, amounts):
        return None
    after = list(block)
    for at, amount in amounts:
        after[at] -= amount
    if not group.shareable:
        after[group_index] -= 1
    elif group.flag is not None:
        after[group.flag] = 0
    return tuple(after)


def _fits(block: Block, amounts: Amounts) -> bool:
    for position, amount in amounts:  # noqa: SIM110 - as a loop, for it is the hottest place of the package
        if block[position] < amount:
            return False
    return True
