"""Bundles: the devices of claims that attribute rules bind together. One unit gives all of them.

So the parts of a bin from which a bundle could take devices together are one unit: those with a common value of the
attribute, if a ``matchAttribute`` constraint covers all of the bundle, and else all that have such devices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from dralloc.solve.optimum.classes.bin_keys import BinClass
from dralloc.solve.optimum.classes.bins import common_attributes
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
        every, self._profiles = list(requirements), profiles
        asked = (group.type for each in every for group in each.item_groups)
        types = 1 + max(
            chain(asked, (type_ for profile in profiles for type_, _ in profile)),
            default=-1,
        )
        self.items = Listed(
            Requirement((ItemGroup(0, type_, 1),), (), 0) for type_ in range(types)
        )
        self._first = types
        for each in every:
            self.of(each)

    def of(self, requirement: Requirement) -> list[tuple[tuple[int, ...], int]]:
        """The bundles of a requirement: the places of their item groups, and their number."""
        claims = [group.claim for group in requirement.item_groups]
        joined = DisjointSets(1 + max(claims, default=0))
        for rule in requirement.rules:
            joined.unite_all(claims[place] for place, _ in rule.attributes)
        bundles: dict[int, dict[int, None]] = defaultdict(dict)
        for rule in requirement.rules:
            for place, _ in rule.attributes:
                bundles[joined.find(claims[place])][place] = None
        return [
            (tuple(sorted(places)), self._number(requirement, sorted(places)))
            for places in bundles.values()
        ]

    def _number(self, requirement: Requirement, places: Sequence[int]) -> int:
        new = {place: number for number, place in enumerate(places)}
        bundle = Requirement(
            tuple(requirement.item_groups[place]._replace(claim=0) for place in places),
            tuple(
                AttributeRule(
                    rule.kind,
                    tuple((new[place], name) for place, name in rule.attributes),
                )
                for rule in requirement.rules
                if new.keys() >= {place for place, _ in rule.attributes}
            ),
            0,
        )
        return self.items.number(bundle)

    def units(self, bin_class: BinClass) -> list[tuple[int, ...]]:
        """The parts of a bin (units of its class, by number) that belong together."""
        sets = DisjointSets(len(bin_class.units))
        for bundle in self.items[self._first :]:
            for parts in _candidates(bundle, bin_class, self._profiles):
                sets.unite_all(parts)
        return [tuple(parts) for parts in sets.groups(range(len(bin_class.units)))]


def _candidates(
    bundle: Requirement, bin_class: BinClass, profiles: Sequence[Profile]
) -> Iterator[list[int]]:
    """Parts of the bin from which the bundle could take devices together."""
    types = {group.type for group in bundle.item_groups}
    common = common_attributes(bundle)
    by_value: dict[object, list[int]] = defaultdict(list)
    position = 0
    for part, view in enumerate(bin_class.units):
        for device in view.devices:
            own = types.intersection(type_ for type_, _ in profiles[device.profile])
            if own and not common:
                by_value[None].append(part)
            values = dict(
                zip(bin_class.attributes, bin_class.values[position], strict=True)
            )
            for name in {name for type_, name in common if type_ in own}:
                for value in values[name] or ():
                    by_value[value].append(part)
            position += 1
    yield from by_value.values()
