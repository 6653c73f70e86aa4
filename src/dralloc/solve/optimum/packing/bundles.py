"""Bundles of one unit: devices, and counters charged by request, that have to come from it together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from dralloc.problem.problem import renumbered
from dralloc.solve.optimum.classes.bins import (
    Bin,
    BinClass,
    UnitView,
    common_attributes,
)
from dralloc.solve.optimum.classes.demand_classes import (
    AttributeRule,
    ItemGroup,
    Requirement,
)
from dralloc.solve.optimum.classes.numbering import DisjointSets, Listed
from dralloc.solve.optimum.classes.usable_devices import Profile

__all__ = ["Bundles", "ChargedCounters", "apart", "uncharged"]

# ----------------------------------------------------------------------------
# Bundles: the devices of claims that attribute rules bind together. One unit gives all
# of them.
#
# So the parts of a bin from which a bundle could take devices together are one unit:
# those with a common value of the attribute, if a ``matchAttribute`` constraint covers
# all of the bundle, and else all that have such devices.


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
        joined_claims = DisjointSets(range(1 + max(claims, default=0)))
        for rule in requirement.rules:
            joined_claims.unite_all(
                claims[position] for position, _ in rule.attributes
            )
        bundles: dict[int, set[int]] = defaultdict(set)
        for rule in requirement.rules:
            for position, _ in rule.attributes:
                bundles[joined_claims.find(claims[position])].add(position)
        return [
            (tuple(positions), self._number(requirement, positions))
            for positions in map(sorted, bundles.values())
        ]

    def _number(
        self, requirement: Requirement, positions: Sequence[int]
    ) -> int:
        """Return the number of a bundle: it is a requirement of its own, of one claim on any node."""
        # By position in the requirement, the position in the bundle.
        bundle_positions = {
            position: bundle_position
            for bundle_position, position in enumerate(positions)
        }
        item_groups = [
            requirement.item_groups[position]._replace(claim=0)
            for position in positions
        ]
        rules = []
        for rule in requirement.rules:
            covered = {position for position, _ in rule.attributes}
            if covered <= bundle_positions.keys():
                attributes = tuple(
                    (bundle_positions[position], name)
                    for position, name in rule.attributes
                )
                rules.append(AttributeRule(rule.kind, attributes))
        bundle = Requirement(tuple(item_groups), tuple(rules), 0)
        return self.items.number(bundle)

    def units(self, bin_class: BinClass) -> list[tuple[int, ...]]:
        """Return the parts of a bin (units of its class, by number) that belong together."""
        part_count = len(bin_class.units)
        sets = DisjointSets(range(part_count))
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
    # Values are listed by device of the whole bin, part after part.
    position = 0
    for part, view in enumerate(bin_class.units):
        for device in view.devices:
            served_types = {
                item_type for item_type, _ in profiles[device.profile]
            }
            types = bundle_types & served_types
            # Without a value in common, all parts with such devices belong together.
            if types and not common:
                parts_by_value[None].append(part)
            values = dict(
                zip(
                    bin_class.attributes,
                    bin_class.values[position],
                    strict=True,
                )
            )
            names = {name for item_type, name in common if item_type in types}
            for name in names:
                for value in values[name] or ():
                    parts_by_value[value].append(part)
            position += 1
    yield from parts_by_value.values()


# ----------------------------------------------------------------------------
# Counters that are charged by request, as a unit of their own.
#
# Such a counter makes one unit of all devices that charge it: of all of a node, if it
# is the node's memory (KEP-5517). But if each device that can be an item of a type
# charges the same, it does not matter to the counters which one it is. Then an
# assignment option is known to charge so much in each bin: the counters are a unit that
# gives one more item to each option, and the other units are what they were without
# counters.

Amounts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChargedCounters:
    """The counters of equal bins: how much of each is free, and by type of item what it charges to each."""

    free: Amounts
    amounts: Mapping[int, Amounts]

    def of(self, item_groups: Sequence[ItemGroup]) -> Amounts | None:
        """Return what serving item groups charges; None if the bins cannot serve them."""
        total = [0] * len(self.free)
        for group in item_groups:
            if group.type not in self.amounts:
                return None
            for counter, amount in enumerate(self.amounts[group.type]):
                total[counter] += group.number * amount
        return tuple(total)


def uncharged(profiles: Sequence[Profile]) -> list[Profile]:
    """Return the profiles without counters."""
    without_counters = []
    for profile in profiles:
        charges = [
            (item_type, replace(charge, counters=()))
            for item_type, charge in profile
        ]
        without_counters.append(tuple(charges))
    return without_counters


def apart(
    bin_class: BinClass, profiles: Sequence[Profile]
) -> tuple[BinClass, ChargedCounters] | None:
    """Return the bins without counters that are charged by request, and these; None if they cannot be told apart.

    They cannot if items of a type charge not the same on all devices, or devices consume something of the counters.
    """
    devices = [
        (unit, device)
        for unit, view in enumerate(bin_class.units)
        for device in view.devices
    ]
    # A counter is known by its unit and its number there; here it gets a position.
    positions: dict[tuple[int, int], int] = {}
    for unit, device in devices:
        for counter in device.charged:
            positions.setdefault((unit, counter), len(positions))
    for unit, device in devices:
        if any((unit, counter) in positions for counter, _ in device.consumes):
            return None
    amounts: dict[int, Amounts] = {}
    for unit, device in devices:
        for item_type, charge in profiles[device.profile]:
            charged = [0] * len(positions)
            for charge_position, amount in charge.counters:
                counter = device.charged[charge_position]
                charged[positions[unit, counter]] += amount
            first_charge = amounts.setdefault(item_type, tuple(charged))
            if first_charge != tuple(charged):
                return None
    available = tuple(
        bin_class.units[unit].free[counter] for unit, counter in positions
    )
    return _without_counters(bin_class), ChargedCounters(available, amounts)


def _without_counters(bin_class: BinClass) -> BinClass:
    """Return the bins with smaller units: those of devices that consume something of one counter."""
    parts = [
        (unit, part)
        for unit, view in enumerate(bin_class.units)
        for part in _parts(view)
    ]
    # Devices get another order, part by part: values, and the units of each bin, have to follow.
    starts = list(
        accumulate((len(view.devices) for view in bin_class.units), initial=0)
    )
    views = []
    values = []
    for unit, part in parts:
        views.append(_view(bin_class.units[unit], part))
        values += [
            bin_class.values[starts[unit] + position] for position in part
        ]
    bins = []
    for bin_ in bin_class.bins:
        units = []
        for unit, part in parts:
            units.append(tuple(bin_.units[unit][position] for position in part))
        bins.append(Bin(tuple(units), bin_.nodes))
    # Nodes keep their positions of the old order: bins are only packed where each node reaches all devices.
    return BinClass(
        tuple(views), bin_class.attributes, tuple(values), bin_class.nodes, bins
    )


def _parts(view: UnitView) -> Collection[list[int]]:
    """Return the devices of a unit, by position, that consume something of one counter."""
    sets = DisjointSets(range(len(view.devices)))
    first_consumer: dict[int, int] = {}
    for position, device in enumerate(view.devices):
        for counter, _ in device.consumes:
            first = first_consumer.setdefault(counter, position)
            sets.unite(first, position)
    return sets.groups(range(len(view.devices)))


def _view(view: UnitView, part: Sequence[int]) -> UnitView:
    """Return the view of a part of a unit, with counters numbered as they appear there, and none charged."""
    devices = [view.devices[position] for position in part]
    counter_positions: dict[int, int] = {}
    for device in devices:
        for counter, _ in device.consumes:
            counter_positions.setdefault(counter, len(counter_positions))
    reduced = []
    for device in devices:
        consumes = renumbered(device.consumes, counter_positions)
        reduced.append(device._replace(consumes=consumes, charged=()))
    free = tuple(view.free[counter] for counter in counter_positions)
    return UnitView(tuple(reduced), free)
