"""The state space of a bin: what is left in it.

A state says what is left of every unit of a bin class. Equal devices of a unit are counted, equal units are sorted, and
what cannot be taken any more counts as taken, so that states with the same future are mostly one state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final, NamedTuple

from dralloc.problem.indices import grouped, summed
from dralloc.solve.optimum.classes.assignments import (
    AssignmentSearch,
    DeviceUse,
    Effort,
    State,
    TooMuchEffort,
)
from dralloc.solve.optimum.classes.bins import BinClass
from dralloc.solve.optimum.classes.demand_classes import Requirement
from dralloc.solve.optimum.classes.unit_layouts import (
    Block,
    LaidOutUnits,
    UnitLayout,
    without_unusable,
)
from dralloc.solve.optimum.classes.usable_devices import Profile

__all__ = ["StateSpace", "Transition"]

_EFFORT_TO_SERVE: Final = 20_000
"""So many devices are looked at to find out whether a requirement can be served at all."""


class Transition(NamedTuple):
    """A requirement served on a node (its place in the bin); then the units are put in the order given."""

    requirement: int
    node: int
    device_uses: tuple[DeviceUse, ...]
    order: tuple[int, ...]


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
        self.layouts = LaidOutUnits(bin_class, profiles).in_order()
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
                search = AssignmentSearch(
                    self.layouts,
                    self.bin_class.attributes,
                    requirement,
                    node,
                    effort,
                )
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
            self._known[key] = without_unusable(layout, block)
        return self._known[key]
