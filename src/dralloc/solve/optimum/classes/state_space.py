"""The state space of a bin: what is left in it.

A state says what is left of every unit of a bin class. Equal devices of a unit are counted, equal units are sorted, and
what cannot be taken any more counts as taken, so that states with the same future are mostly one state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple, assert_never

from dralloc.problem import ConstraintKind
from dralloc.problem.indices import grouped, summed
from dralloc.solve.optimum.classes.bins import BinClass, UnitView
from dralloc.solve.optimum.classes.demand_classes import Requirement
from dralloc.solve.optimum.classes.usable_devices import Profile

__all__ = [
    "Effort",
    "State",
    "StateSpace",
    "TooMuchEffort",
    "Transition",
    "UnitLayout",
]

Block = tuple[int, ...]
"""Of a unit: devices left per group (see `_EqualDevices`), then what is left of counters, then of capacities."""

Amounts = tuple[tuple[int, int], ...]
"""What is taken from a block, by position."""

State = tuple[Block, ...]
"""Of a bin: its units."""


_EFFORT_TO_SERVE: Final = 20_000
"""So many devices are looked at to find out whether a requirement can be served at all."""


class DeviceUse(NamedTuple):
    """A device serving an item group: the unit's place in the state, and the group in it."""

    item_group: int
    unit: int
    group: int


class Transition(NamedTuple):
    """A requirement served on a node (its place in the bin); then the units are put in the order given."""

    requirement: int
    node: int
    device_uses: tuple[DeviceUse, ...]
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _EqualDevices:
    """Equal devices of a unit; a shareable one is alone. Amounts are listed with their positions in the block.

    ``opens``: what the first use consumes; ``uses``: by type, what each use takes; ``first``: both together.
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

    groups: tuple[_EqualDevices, ...]
    block: Block
    key: int


class TooMuchEffort(Exception):  # noqa: N818 - no error: a sign to go another way
    """A search looked at more devices than it was allowed to."""


class Effort:
    """The number of devices that a search may still look at."""

    def __init__(self, limit: float = inf) -> None:
        self.left = limit

    def spend(self, devices: int) -> None:
        """Look at so many."""
        self.left -= devices
        if self.left < 0:
            raise TooMuchEffort


class StateSpace:
    """The state space of a bin class, of which one bin stands for all.

    ``regions``: by number, the sets of candidate nodes that a region's nodes belong to.
    """

    def __init__(
        self,
        bin_class: BinClass,
        profiles: Sequence[Profile],
        regions: Sequence[frozenset[int]],
    ) -> None:
        self.bin_class = bin_class
        self.profiles = profiles
        self.node_sets = [regions[node.region] for node in bin_class.nodes]
        self.layouts: list[UnitLayout] = []
        self._layout_keys: dict[Hashable, int] = {}
        start = 0
        for unit in bin_class.units:
            self.layouts.append(self._layout(unit, start))
            start += len(unit.devices)
        by_key = grouped(
            (layout.key, unit_index)
            for unit_index, layout in enumerate(self.layouts)
        )
        self.equal_units = [
            members for members in by_key.values() if len(members) > 1
        ]
        self._known: dict[tuple[int, Block], Block] = {}
        blocks = tuple(layout.block for layout in self.layouts)
        self.start: State
        self.start, _ = self._canonical(blocks)

    def _layout(self, unit: UnitView, start: int) -> UnitLayout:
        members_of: dict[Hashable, list[int]] = defaultdict(list)
        for position, device in enumerate(unit.devices):
            values = self.bin_class.values[start + position]
            nodes = frozenset(
                node_index
                for node_index, node in enumerate(self.bin_class.nodes)
                if start + position in node.reach
            )
            alone = position if device.shareable else -1
            members_of[device, values, nodes, alone].append(position)
        # The block: devices by group, counters, then of each group its capacities and,
        # if its first use consumes something, whether it is still closed.
        block = [len(members) for members in members_of.values()]
        counters = range(len(block), len(block) + len(unit.free))
        block += unit.free
        groups = []
        for (device, values, nodes, _), members in members_of.items():  # type: ignore[misc]
            capacity_at: dict[str, int] = {}
            for name, amount in device.capacity:
                capacity_at[name] = len(block)
                block.append(amount)
            flag = None
            if device.shareable and device.consumes:
                flag = len(block)
                block.append(1)
            takes: dict[int, list[tuple[int, int]]] = {}
            for type_, charge in self.profiles[device.profile]:
                amounts = [
                    (capacity_at[name], amount)
                    for name, amount in charge.capacity
                ]
                for charge_position, amount in charge.counters:
                    amounts.append(
                        (counters[device.charged[charge_position]], amount)
                    )
                takes[type_] = amounts
            opens = tuple(
                (counters[counter], amount)
                for counter, amount in device.consumes
            )
            first = {
                type_: tuple(summed((*opens, *amounts)).items())
                for type_, amounts in takes.items()
            }
            uses = {
                type_: tuple(summed(amounts).items())
                for type_, amounts in takes.items()
            }
            positions = tuple(start + member for member in members)
            group = _EqualDevices(
                positions,
                device.shareable,
                opens,
                uses,
                first,
                values,
                nodes,
                flag,
            )
            groups.append(group)
        key = unit, tuple((group.values, group.nodes) for group in groups)
        layout_key = self._layout_keys.setdefault(key, len(self._layout_keys))
        return UnitLayout(tuple(groups), tuple(block), layout_key)

    @property
    def size(self) -> int:
        """The number of devices of a bin."""
        return sum(len(unit.devices) for unit in self.bin_class.units)

    def transitions(
        self,
        requirement_index: int,
        requirement: Requirement,
        state: State,
        effort: Effort | None = None,
    ) -> Iterator[tuple[State, Transition]]:
        """The transitions that serve a requirement, up to symmetry, each with the state that it leads to.

        Raises
        ------
        TooMuchEffort
            They are too many to look at.
        """
        seen: set[State] = set()
        for node, blocks, device_uses in self._assignments(
            requirement, state, effort or Effort()
        ):
            after, order = self._canonical(blocks)
            if after not in seen:
                seen.add(after)
                yield (
                    after,
                    Transition(requirement_index, node, device_uses, order),
                )

    def may_serve(self, requirement: Requirement) -> bool:
        """Whether a requirement can be served while all is there; True also if it takes long to find out."""
        if not self._has_enough(requirement):
            return False
        effort = Effort(_EFFORT_TO_SERVE)
        try:
            return any(
                True for _ in self._assignments(requirement, self.start, effort)
            )
        except TooMuchEffort:
            return True

    def _has_enough(self, requirement: Requirement) -> bool:
        """Whether there are as many devices of each type as are needed, as far as each serves once.

        Two claims for 8 of 15 devices are refused here: a search would try all ways to choose the first 8.
        """
        needed = summed(
            (item_group.type, item_group.number)
            for item_group in requirement.item_groups
        )
        return all(
            count <= self._most_uses(type_) for type_, count in needed.items()
        )

    def _most_uses(self, type_: int) -> float:
        """How many devices there are of a type; no end of them if one can be shared."""
        groups = [
            group
            for layout in self.layouts
            for group in layout.groups
            if type_ in group.uses
        ]
        if any(group.shareable for group in groups):
            return inf
        return sum(len(group.members) for group in groups)

    def _assignments(
        self, requirement: Requirement, state: State, effort: Effort
    ) -> Iterator[tuple[int, State, tuple[DeviceUse, ...]]]:
        """Every assignment of devices that serves a requirement: the node, what is left, and the devices."""
        for node, sets in enumerate(self.node_sets):
            if requirement.nodes in sets:
                search = _TransitionSearch(self, requirement, node, effort)
                for blocks, device_uses in search.run(0, 0, state, ()):
                    yield node, blocks, device_uses

    def _canonical(self, blocks: State) -> tuple[State, tuple[int, ...]]:
        """Count what cannot be taken as taken, and sort equal units."""
        canonical = [
            self._canonical_block(layout, block)
            for layout, block in zip(self.layouts, blocks, strict=True)
        ]
        if not self.equal_units:
            return tuple(canonical), ()
        order = list(range(len(canonical)))
        for members in self.equal_units:
            by_state = sorted(members, key=canonical.__getitem__)
            for position, unit in zip(members, by_state, strict=True):
                order[position] = unit
        return tuple(canonical[unit] for unit in order), tuple(order)

    def _canonical_block(self, layout: UnitLayout, block: Block) -> Block:
        key = layout.key, block
        if key not in self._known:
            self._known[key] = _without_unusable(layout, block)
        return self._known[key]


def _without_unusable(layout: UnitLayout, block: Block) -> Block:
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


def _fits(block: Block, amounts: Amounts) -> bool:
    for position, amount in amounts:  # noqa: SIM110 - as a loop, for it is the hottest place of the package
        if block[position] < amount:
            return False
    return True


class _TransitionSearch:
    """A depth-first search for all assignments of devices that serve a requirement on a node."""

    def __init__(
        self,
        space: StateSpace,
        requirement: Requirement,
        node: int,
        effort: Effort,
    ) -> None:
        self.effort = effort
        self.space = space
        self.types = [group.type for group in requirement.item_groups]
        self.picks = [
            item_group_index
            for item_group_index, group in enumerate(requirement.item_groups)
            for _ in range(group.number)
        ]
        self.options: list[list[tuple[int, int, _EqualDevices]]] = []
        for item_group in requirement.item_groups:
            options = [
                (unit, group_index, group)
                for unit, layout in enumerate(space.layouts)
                for group_index, group in enumerate(layout.groups)
                if item_group.type in group.uses and node in group.nodes
            ]
            self.options.append(options)
        # By kind: for each item group under the rule, the index of the attribute.
        self.rules: list[tuple[ConstraintKind, dict[int, int]]] = []
        names = space.bin_class.attributes
        for rule in requirement.rules:
            attribute_indices = {
                group: names.index(name) for group, name in rule.attributes
            }
            self.rules.append((rule.kind, attribute_indices))

    def run(
        self,
        pick: int,
        first: int,
        state: State,
        device_uses: tuple[DeviceUse, ...],
    ) -> Iterator[tuple[State, tuple[DeviceUse, ...]]]:
        """Every assignment from a pick on: what is left, and the devices.

        Devices are of groups from the first on: combinations, a shareable device at most once per item group. Of equal
        units in equal state the first is tried: what is left of the others is the same again.
        """
        if pick == len(self.picks):
            yield state, device_uses
            return
        item_group = self.picks[pick]
        is_last = self.picks[pick + 1 : pick + 2] != [item_group]
        self.effort.spend(len(self.options[item_group]))
        tried: set[tuple[int, Block, int]] = set()
        for option_index in range(first, len(self.options[item_group])):
            unit, group_index, group = self.options[item_group][option_index]
            block = state[unit]
            if not block[group_index]:
                continue
            key = self.space.layouts[unit].key, block, group_index
            if key in tried:
                continue
            tried.add(key)
            block_after = _use(
                block, group_index, group, self.types[item_group]
            )
            if block_after is None or not self._agrees(
                item_group, group, device_uses
            ):
                continue
            after = (*state[:unit], block_after, *state[unit + 1 :])
            uses_after = (
                *device_uses,
                DeviceUse(item_group, unit, group_index),
            )
            next_first = 0 if is_last else option_index + group.shareable
            yield from self.run(pick + 1, next_first, after, uses_after)

    def _agrees(
        self,
        item_group: int,
        group: _EqualDevices,
        device_uses: Sequence[DeviceUse],
    ) -> bool:
        """Whether the constraints allow one more device."""
        layouts = self.space.layouts
        for kind, attributes in self.rules:
            if item_group not in attributes:
                continue
            values = group.values[attributes[item_group]] or frozenset()
            earlier_values = []
            for use in device_uses:
                if use.item_group in attributes:
                    of_device = layouts[use.unit].groups[use.group].values
                    earlier = (
                        of_device[attributes[use.item_group]] or frozenset()
                    )
                    earlier_values.append(earlier)
            match kind:
                case ConstraintKind.MATCH:
                    if earlier_values and not values.intersection(
                        *earlier_values
                    ):
                        return False
                case ConstraintKind.DISTINCT:
                    for earlier in earlier_values:
                        # Two devices without comparable value are not known to differ.
                        both_incomparable = not values and not earlier
                        if both_incomparable or not values.isdisjoint(earlier):
                            return False
                case _:
                    assert_never(kind)
        return True


def _use(
    block: Block, group_index: int, group: _EqualDevices, type_: int
) -> Block | None:
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
