"""Bundles: the devices of claims that attribute rules bind together. One unit gives all of them.

So the parts of a bin from which a bundle could take devices together are one unit: those with a common value of the
attribute, if a ``matchAttribute`` constraint covers all of the bundle, and else all that have such devices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from dralloc.solve.optimum.classes.bins import BinClass, common_attributes
from dralloc.solve.optimum.classes.demand_classes import (
    AttributeRule,
    ItemGroup,
    Listed,
    Requirement,
)
from dralloc.solve.optimum.classes.disjoint_sets import DisjointSets
from dralloc.solve.optimum.classes.usable import Profile

__all__ = ["Bundles"]


class Bundles:
    """The bundles of requirements, with numbers behind all types of single devices: asked for here, or in any profile.

    ``items``: what an item of each type asks of the unit that gives it, as a requirement.
    """

    def __init__(
        self, requirements: Iterable[Requirement], profiles: Sequence[Profile]
    ) -> None:
        required = list(requirements)
        self._profiles = profiles
        device_types = {-1}
        for requirement in required:
            device_types.update(group.type for group in requirement.item_groups)
        for profile in profiles:
            device_types.update(item_type for item_type, _ in profile)
        self._first = max(device_types) + 1
        self.items: Listed[Requirement] = Listed(
            Requirement((ItemGroup(0, item_type, 1),), (), 0)
            for item_type in range(self._first)
        )
        for requirement in required:
            self.of(requirement)

    def of(self, requirement: Requirement) -> list[tuple[tuple[int, ...], int]]:
        """Return the bundles of a requirement: the places of their item groups, and their number."""
        claims = [group.claim for group in requirement.item_groups]
        joined_claims = DisjointSets(1 + max(claims, default=0))
        for rule in requirement.rules:
            joined_claims.unite_all(claims[position] for position, _ in rule.attributes)
        bundles: dict[int, set[int]] = defaultdict(set)
        for rule in requirement.rules:
            for position, _ in rule.attributes:
                bundles[joined_claims.find(claims[position])].add(position)
        return [
            (tuple(positions), self._number(requirement, positions))
            for positions in map(sorted, bundles.values())
        ]

    def _number(self, requirement: Requirement, positions: Sequence[int]) -> int:
        """Return the number of a bundle: it is a requirement of its own, of one claim on any node."""
        renumbered = {position: number for number, position in enumerate(positions)}
        item_groups = [
            requirement.item_groups[position]._replace(claim=0)
            for position in positions
        ]
        rules = []
        for rule in requirement.rules:
            covered = {position for position, _ in rule.attributes}
            if covered <= renumbered.keys():
                attributes = tuple(
                    (renumbered[position], name) for position, name in rule.attributes
                )
                rules.append(AttributeRule(rule.kind, attributes))
        bundle = Requirement(tuple(item_groups), tuple(rules), 0)
        return self.items.number(bundle)

    def units(self, bin_class: BinClass) -> list[tuple[int, ...]]:
        """Return the parts of a bin (units of its class, by number) that belong together."""
        part_count = len(bin_class.units)
        sets = DisjointSets(part_count)
        for bundle in self.items[self._first :]:
            for parts in _candidates(bundle, bin_class, self._profiles):
                sets.unite_all(parts)
        return [tuple(parts) for parts in sets.groups(range(part_count))]


def _candidates(
    bundle: Requirement, bin_class: BinClass, profiles: Sequence[Profile]
) -> Iterator[list[int]]:
    """Yield parts of the bin from which the bundle could take devices together."""
    bundle_types = {group.type for group in bundle.item_groups}
    common = common_attributes(bundle)
    parts_by_value: dict[object, list[int]] = defaultdict(list)
    position = 0
    for part, view in enumerate(bin_class.units):
        for device in view.devices:
            served_types = {item_type for item_type, _ in profiles[device.profile]}
            types = bundle_types & served_types
            if types and not common:
                parts_by_value[None].append(part)
            values = dict(
                zip(bin_class.attributes, bin_class.values[position], strict=True)
            )
            names = {name for item_type, name in common if item_type in types}
            for name in names:
                for value in values[name] or ():
                    parts_by_value[value].append(part)
            position += 1
    yield from parts_by_value.values()
