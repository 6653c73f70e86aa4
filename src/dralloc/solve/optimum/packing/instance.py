"""The bin packing problem of a component: items of demand classes, and bins."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dralloc.problem.indices import DemandIndex, summed
from dralloc.solve.optimum.classes.bins import Bin, BinClass
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    ItemGroup,
    Requirement,
    ServingMode,
)
from dralloc.solve.optimum.classes.state_space import StateSpace
from dralloc.solve.optimum.classes.usable_devices import Profile
from dralloc.solve.optimum.packing.bundles import (
    Bundles,
    ChargedCounters,
    apart,
    uncharged,
)
from dralloc.solve.optimum.packing.units import (
    ClassifiedUnit,
    UnitClassifier,
    UnitType,
)
from dralloc.solve.optimum.rows import ALL_WEIGHTS, WeightTier
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "AssignmentOption",
    "BinInstance",
    "BinType",
    "Item",
    "PackingInstance",
    "Prices",
    "SeveralDevices",
    "as_packing_instance",
]

ItemGroups = tuple[ItemGroup, ...]

Prices = Mapping[tuple[int, int], float]
"""What an item is worth, by area and type, in the unit of the weights."""


class Item(NamedTuple):
    """The devices that one unit gives for these item groups (by place in the requirement).

    ``type``: that of the one device; or beyond those, a *bundle* of devices that attribute rules bind together, or what
    the counters give that are charged by request, which is no device.
    """

    type: int
    item_groups: tuple[int, ...]


class SeveralDevices(NamedTuple):
    """An item group that takes this number of different devices, each an item of this type."""

    type: int
    number: int


class AssignmentOption(NamedTuple):
    """A serving mode of a demand class (an index), and the items that it takes."""

    cls: int
    mode: ServingMode
    requirement: Requirement
    items: tuple[Item, ...]

    @property
    def several_devices(self) -> list[SeveralDevices]:
        """Each item group that takes several devices by themselves."""
        return [
            SeveralDevices(item.type, count)
            for item, count in Tally(self.items).items()
            if count > 1
        ]


class BinInstance(NamedTuple):
    """A bin of a bin type: the units by their place in the type, each as parts of the bin and with its unit type."""

    bin: Bin
    units: Sequence[tuple[tuple[int, ...], ClassifiedUnit]]
    sets: Sequence[frozenset[int]]


@dataclass(frozen=True, slots=True)
class BinType:
    """Bins that can be packed alike: the types of their units in order, and the area that they are in."""

    unit_types: tuple[int, ...]
    area: int
    instances: list[BinInstance] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PackingInstance:
    """Demand classes to be packed, and bins to pack them into.

    Parameters
    ----------
    classes, options
        The demand classes, and the assignment options of each.
    unit_types
        The sorts of equal units that bins consist of, by number.
    bin_types
        Where they can go, equal bins counted together.
    areas
        By number: the sets of candidate nodes that some node of a bin belongs to.
    demand
        By class, how many joint demands there are to be placed.
    kept_apart
        The types of items of which an item group takes several, where a shared device could give more than one.
    tiers
        The tiers of the missed weight.
    """

    classes: tuple[DemandClass, ...]
    options: tuple[AssignmentOption, ...]
    unit_types: tuple[UnitType, ...]
    bin_types: tuple[BinType, ...]
    areas: tuple[frozenset[int], ...]
    demand: tuple[int, ...]
    kept_apart: frozenset[int] = frozenset()
    tiers: tuple[WeightTier, ...] = (ALL_WEIGHTS,)

    @property
    def weights(self) -> list[list[int]]:
        """By tier, what a missed joint demand of each class costs."""
        return [self._missed_weights(tier) for tier in self.tiers]

    def _missed_weights(self, tier: WeightTier) -> list[int]:
        return [
            demand_class.missed_weight(tier) for demand_class in self.classes
        ]

    @property
    def option_costs(self) -> list[list[int]]:
        """By tier, what each option costs: the weight of what it does not place, and in the end its rank."""
        costs = []
        for tier in self.tiers:
            missed_weights = []
            for option in self.options:
                demand_class = self.classes[option.cls]
                missed_weights.append(
                    demand_class.missed_weight(tier, option.mode)
                )
            costs.append(missed_weights)
        ranks = [option.mode.rank for option in self.options]
        return [*costs, ranks]

    def options_of(self, area: int) -> Iterator[int]:
        """Yield the options that candidate nodes allow in an area."""
        for option_index, option in enumerate(self.options):
            if option.requirement.nodes in self.areas[area]:
                yield option_index

    @property
    def demands(self) -> list[DemandIndex]:
        """All demands, in order."""
        members: list[DemandIndex] = []
        for demand_class in self.classes:
            members += demand_class.members
        return sorted(members)

    @property
    def types(self) -> list[int]:
        """The types of all items, in order."""
        return sorted(
            {item.type for option in self.options for item in option.items}
        )


def as_packing_instance(
    classes: Sequence[DemandClass],
    spaces: Sequence[StateSpace],
    requirements: Sequence[Requirement],
    listed_patterns: int,
    stop: Stop,
) -> PackingInstance | None:
    """Return the bin packing problem of a component.

    Parameters
    ----------
    classes
        The demands, in classes of equals.
    spaces
        Of the bins that can serve them.
    requirements
        What the modes of the classes refer to.
    listed_patterns
        See `dralloc.objects.choices.Thresholds`.

    Returns
    -------
    None if there are budgets, gangs with a quorum or in a domain, a rule compares several attributes (KEP-6080), a node
    of a bin does not reach all of it, a unit has too many states, or an item group of several devices could get one
    shared device several times that is not a unit by itself, or has too many patterns.

    Raises
    ------
    Stopped
        It is time to stop.
    """
    if not all(map(_can_be_packed, classes)):
        return None
    required: list[Requirement] = []
    for demand_class in classes:
        required += [
            requirements[mode.requirement] for mode in demand_class.modes
        ]
    if any(map(_compares_several_attributes, required)):
        return None
    inventory = _Inventory.of(spaces, stop)
    bundles = Bundles(required, inventory.profiles)
    charge_types = inventory.charge_types(required, len(bundles.items))
    options = []
    for cls, demand_class in enumerate(classes):
        for mode in demand_class.modes:
            requirement = requirements[mode.requirement]
            items = _items(requirement, bundles, charge_types)
            options.append(AssignmentOption(cls, mode, requirement, items))
    item_counts = summed(
        (item.type, classes[option.cls].size)
        for option in options
        for item in option.items
        if item.item_groups
    )
    classifier = UnitClassifier(
        inventory.profiles, bundles, item_counts, listed_patterns
    )
    typed_bins = _typed_bins(spaces, inventory, classifier, charge_types, stop)
    if typed_bins is None:
        return None
    bin_types, areas = typed_bins
    unit_counts = summed(
        (unit_type, len(bin_type.instances))
        for bin_type in bin_types
        for unit_type in bin_type.unit_types
    )
    unit_types = classifier.listed(unit_counts)
    repeating = _units_that_may_repeat(options, unit_types)
    # Where hardly two devices are equal, so that sums stand for their patterns, a search by device does better.
    if not all(
        unit_type.is_one_device and unit_type.together
        for unit_type in repeating
    ):
        return None
    demand = tuple(demand_class.size for demand_class in classes)
    return PackingInstance(
        tuple(classes),
        tuple(options),
        unit_types,
        bin_types,
        areas,
        demand,
        frozenset().union(*repeating.values()),
    )


def _can_be_packed(demand_class: DemandClass) -> bool:
    """Whether a class has neither a budget nor a gang with a quorum or in a domain."""
    if demand_class.namespace or demand_class.topology:
        return False
    return demand_class.gang is None or demand_class.gang.quorum is None


def _compares_several_attributes(requirement: Requirement) -> bool:
    """Whether one rule compares different attributes of its item groups (KEP-6080)."""
    for rule in requirement.rules:
        names = {name for _, name in rule.attributes}
        if len(names) > 1:
            return True
    return False


class _Inventory(NamedTuple):
    """Classes of bins, what the profiles of their devices stand for, and counters that are charged by request."""

    bin_classes: Sequence[BinClass]
    profiles: Sequence[Profile]
    counters: Sequence[ChargedCounters]

    @staticmethod
    def of(spaces: Sequence[StateSpace], stop: Stop) -> _Inventory:
        """Return the bins of some spaces, without these counters if they can be told apart everywhere."""
        bin_classes = [space.bin_class for space in spaces]
        profiles = spaces[0].profiles
        as_they_are = _Inventory(
            bin_classes, profiles, [ChargedCounters((), {})] * len(spaces)
        )
        charges_counters = any(
            charge.counters for profile in profiles for _, charge in profile
        )
        if not charges_counters:
            return as_they_are
        reduced_classes = []
        counters = []
        for bin_class in stop.each(bin_classes):
            split = apart(bin_class, profiles)
            if split is None:
                # All bins must be looked at in the same way, but time to stop comes first.
                continue
            reduced_classes.append(split[0])
            counters.append(split[1])
        if len(reduced_classes) < len(spaces) or not any(
            charged.free for charged in counters
        ):
            return as_they_are
        return _Inventory(reduced_classes, uncharged(profiles), counters)

    def charge_types(
        self, required: Iterable[Requirement], first: int
    ) -> Mapping[ItemGroups, int]:
        """Return by item groups the type of the item that counters give to them: numbers from the first on."""
        if not any(charged.free for charged in self.counters):
            return {}
        distinct = dict.fromkeys(
            requirement.item_groups for requirement in required
        )
        return {
            item_groups: item_type
            for item_type, item_groups in enumerate(distinct, first)
        }


def _typed_bins(
    spaces: Sequence[StateSpace],
    inventory: _Inventory,
    classifier: UnitClassifier,
    charge_types: Mapping[ItemGroups, int],
    stop: Stop,
) -> tuple[tuple[BinType, ...], tuple[frozenset[int], ...]] | None:
    """Return the bins by type, and the areas.

    None if a node does not reach all of a bin, or a unit has too many states.
    """
    areas: dict[frozenset[int], int] = {}
    bin_types: dict[tuple[tuple[int, ...], int], BinType] = {}
    parts = zip(spaces, inventory.bin_classes, inventory.counters, strict=True)
    for space, bin_class, counters in stop.each(parts):
        units = classifier.units(bin_class)
        if units is None:
            return None
        # An item may come from any unit of a bin, and so every node has to reach all of it.
        if any(len(node.reach) < space.size for node in bin_class.nodes):
            return None
        if charge_types:
            units.append(((), classifier.counters(counters, charge_types)))
        node_sets = frozenset().union(*space.node_sets)
        area = areas.setdefault(node_sets, len(areas))
        unit_types = tuple(unit.unit_type for _, unit in units)
        key = unit_types, area
        if key not in bin_types:
            bin_types[key] = BinType(unit_types, area)
        for bin_ in bin_class.bins:
            bin_types[key].instances.append(
                BinInstance(bin_, units, space.node_sets)
            )
    return tuple(bin_types.values()), tuple(areas)


def _units_that_may_repeat(
    options: Sequence[AssignmentOption], unit_types: Sequence[UnitType]
) -> Mapping[UnitType, frozenset[int]]:
    """Return the units whose shared device an item group of several could get several times, with those types."""
    of_several_devices = {
        group.type for option in options for group in option.several_devices
    }
    repeating: dict[UnitType, frozenset[int]] = {}
    for unit_type in unit_types:
        if unit_type.shared:
            repeated = frozenset(
                item_type
                for item_type in of_several_devices.intersection(
                    unit_type.types
                )
                if unit_type.most(item_type) > 1
            )
            if repeated:
                repeating[unit_type] = repeated
    return repeating


def _items(
    requirement: Requirement,
    bundles: Bundles,
    charge_types: Mapping[ItemGroups, int],
) -> tuple[Item, ...]:
    """Return the items of a requirement: its bundles, its single devices, and what it charges to counters."""
    items: list[Item] = []
    bundled: set[int] = set()
    for positions, item_type in bundles.of(requirement):
        items.append(Item(item_type, positions))
        bundled.update(positions)
    for position, item_group in enumerate(requirement.item_groups):
        if position not in bundled:
            items += [Item(item_group.type, (position,))] * item_group.number
    charge_type = charge_types.get(requirement.item_groups)
    if charge_type is not None:
        items.append(Item(charge_type, ()))
    return tuple(items)
