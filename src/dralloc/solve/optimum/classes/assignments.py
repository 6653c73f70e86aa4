"""Assignments of the devices of a bin to a requirement: all that differ, found depth first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple, assert_never

from dralloc.problem import ConstraintKind
from dralloc.solve.optimum.classes.demand_classes import Requirement
from dralloc.solve.optimum.classes.unit_layouts import (
    Block,
    EqualDevices,
    UnitLayout,
    after_use,
)

__all__ = ["AssignmentSearch", "DeviceUse", "Effort", "State", "TooMuchEffort"]

State = tuple[Block, ...]
"""Of a bin: what is left of its units."""


class DeviceUse(NamedTuple):
    """A device serving an item group: the unit's place in the state, and the group in it."""

    item_group: int
    unit: int
    group: int


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


class AssignmentSearch:
    """A depth-first search for all assignments of devices that serve a requirement on a node.

    Parameters
    ----------
    layouts
        Those of the bin's units.
    attributes
        The constrained attributes, in the order of their values.
    node
        The position of the node in the bin.
    effort
        How many devices may still be looked at.
    """

    def __init__(
        self,
        layouts: Sequence[UnitLayout],
        attributes: Sequence[str],
        requirement: Requirement,
        node: int,
        effort: Effort,
    ) -> None:
        self.effort = effort
        self.layouts = layouts
        self.types = [group.type for group in requirement.item_groups]
        self.picks = [
            item_group_index
            for item_group_index, group in enumerate(requirement.item_groups)
            for _ in range(group.number)
        ]
        self.options: list[list[tuple[int, int, EqualDevices]]] = []
        for item_group in requirement.item_groups:
            options = [
                (unit, group_index, group)
                for unit, layout in enumerate(layouts)
                for group_index, group in enumerate(layout.groups)
                if item_group.type in group.uses and node in group.nodes
            ]
            self.options.append(options)
        # By kind: for each item group under the rule, the index of the attribute.
        self.rules: list[tuple[ConstraintKind, dict[int, int]]] = []
        for rule in requirement.rules:
            attribute_indices = {
                group: attributes.index(name) for group, name in rule.attributes
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
        # A slice: behind the last pick there is none.
        is_last = self.picks[pick + 1 : pick + 2] != [item_group]
        self.effort.spend(len(self.options[item_group]))
        tried: set[tuple[int, Block, int]] = set()
        for option_index in range(first, len(self.options[item_group])):
            unit, group_index, group = self.options[item_group][option_index]
            block = state[unit]
            if not block[group_index]:
                continue
            key = self.layouts[unit].key, block, group_index
            if key in tried:
                continue
            tried.add(key)
            block_after = after_use(
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
            # A group of dedicated devices can give another one; a shareable device is alone in its group.
            next_first = 0 if is_last else option_index + group.shareable
            yield from self.run(pick + 1, next_first, after, uses_after)

    def _agrees(
        self,
        item_group: int,
        group: EqualDevices,
        device_uses: Sequence[DeviceUse],
    ) -> bool:
        """Whether the constraints allow one more device."""
        for kind, attributes in self.rules:
            if item_group not in attributes:
                continue
            values = group.values[attributes[item_group]] or frozenset()
            earlier_values = []
            for use in device_uses:
                if use.item_group in attributes:
                    of_device = self.layouts[use.unit].groups[use.group].values
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
