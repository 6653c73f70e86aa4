"""The bin packing problem of a component: items of demand classes, and bins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dralloc.problem.grouping import summed
from dralloc.solve.optimum.classes.bin_keys import BinClass
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    ItemGroup,
    Requirement,
    ServingMode,
)
from dralloc.solve.optimum.classes.state_space import StateSpace
from dralloc.solve.optimum.classes.usable import Profile
from dralloc.solve.optimum.packing.bundles import Bundles
from dralloc.solve.optimum.packing.charged_counters import (
    ChargedCounters,
    apart,
    uncharged,
)
from dralloc.solve.optimum.packing.unit_classes import ClassifiedUnit, UnitClassifier
from dralloc.solve.optimum.packing.unit_types import UnitType
from dralloc.solve.optimum.stopping import Stop
from dralloc.solve.optimum.weight_tiers import ALL_WEIGHTS, WeightTier

__all__ = [
    "AssignmentOption",
    "BinInstance",
    "BinType",
    "Item",
    "PackingInstance",
    "as_packing_instance",
]

ItemGroups = tuple[ItemGroup, ...]


class Item(NamedTuple):
    """What one unit gives: the devices for these item groups (by place in the requirement).

    ``type``: that of the one device; or beyond those, a *bundle* of devices that attribute rules bind together, or what
    the counters give that are charged by request, which is no device.
    """

    type: int
    item_groups: tuple[int, ...]


class AssignmentOption(NamedTuple):
    """A serving mode of a demand class (an index), and the items that it takes."""

    cls: int
    mode: ServingMode
    requirement: Requirement
    items: tuple[Item, ...]


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
    tiers
        The tiers of the missed weight.
    """

    classes: tuple[DemandClass, ...]
    options: tuple[AssignmentOption, ...]
    unit_types: tuple[UnitType, ...]
    bin_types: tuple[BinType, ...]
    areas: tuple[frozenset[int], ...]
    demand: tuple[int, ...]
    tiers: tuple[WeightTier, ...] = (ALL_WEIGHTS,)

    @property
    def weights(self) -> list[list[int]]:
        """By tier, what a missed joint demand of each class costs."""
        return [
            [each.missed_weight(tier) for each in self.classes] for tier in self.tiers
        ]

    @property
    def option_costs(self) -> list[list[int]]:
        """By tier, what each option costs: the weight of what it does not place, and in the end its rank."""
        classes = [self.classes[option.cls] for option in self.options]
        return [
            *(
                [
                    each.missed_weight(tier, option.mode)
                    for each, option in zip(classes, self.options, strict=True)
                ]
                for tier in self.tiers
            ),
            [option.mode.rank for option in self.options],
        ]

    def options_of(self, area: int) -> Iterator[int]:
        """The options that candidate nodes allow in an area."""
        for number, option in enumerate(self.options):
            if option.requirement.nodes in self.areas[area]:
                yield number

    @property
    def demands(self) -> list[int]:
        """All demands, in order."""
        return sorted(member for each in self.classes for member in each.members)

    @property
    def types(self) -> list[int]:
        """The types of all items, in order."""
        return sorted({item.type for option in self.options for item in option.items})


def as_packing_instance(
    classes: Sequence[DemandClass],
    spaces: Sequence[StateSpace],
    requirements: Sequence[Requirement],
    listed_amounts: int,
    stop: Stop,
) -> PackingInstance | None:
    """The bin packing problem of a component.

    Parameters
    ----------
    classes
        The demands, in classes of equals.
    spaces
        Of the bins that can serve them.
    requirements
        What the modes of the classes refer to.
    listed_amounts
        See `dralloc.objects.choices.Thresholds`.

    Returns
    -------
    None if there are budgets, gangs with a quorum or in a domain, a rule compares several attributes (KEP-6080), a node
    of a bin does not reach all of it, a unit has too many states, or an item group of several devices could get one
    shared device several times.

    Raises
    ------
    Stopped
        It is time to stop.
    """
    modes = [requirements[mode.requirement] for each in classes for mode in each.modes]
    derive = any(
        len({name for _, name in rule.attributes}) > 1
        for each in modes
        for rule in each.rules
    )
    if derive or any(
        each.namespace or each.topology or (each.gang and each.gang.quorum)
        for each in classes
    ):
        return None
    inventory = _Inventory.of(spaces, stop)
    bundles = Bundles(modes, inventory.profiles)
    charging = inventory.charging(modes, len(bundles.items))
    options = [
        AssignmentOption(number, mode, needed, _items(needed, bundles, charging))
        for number, each in enumerate(classes)
        for mode in each.modes
        for needed in [requirements[mode.requirement]]
    ]
    wanted = summed(
        (item.type, classes[option.cls].size)
        for option in options
        for item in option.items
        if item.item_groups
    )
    classifier = UnitClassifier(inventory.profiles, bundles, wanted, listed_amounts)
    bins = _typed_bins(spaces, inventory, classifier, charging, stop)
    unit_types = tuple(classifier.unit_types)
    if bins is None or _may_repeat_devices(options, unit_types):
        return None
    return PackingInstance(
        tuple(classes),
        tuple(options),
        unit_types,
        *bins,
        tuple(each.size for each in classes),
    )


class _Inventory(NamedTuple):
    """Classes of bins, what the profiles of their devices stand for, and counters that are charged by request."""

    bin_classes: Sequence[BinClass]
    profiles: Sequence[Profile]
    counters: Sequence[ChargedCounters]

    @staticmethod
    def of(spaces: Sequence[StateSpace], stop: Stop) -> _Inventory:
        """The bins of some spaces, without these counters if they can be told apart everywhere."""
        bin_classes, profiles = (
            [space.bin_class for space in spaces],
            spaces[0].profiles,
        )
        charges = any(charge.counters for profile in profiles for _, charge in profile)
        some = stop.each(bin_classes if charges else ())
        found = [each for bin_class in some if (each := apart(bin_class, profiles))]
        counters = [each for _, each in found]
        if len(found) < len(spaces) or not any(each.left for each in counters):
            return _Inventory(
                bin_classes, profiles, [ChargedCounters((), {})] * len(spaces)
            )
        return _Inventory([each for each, _ in found], uncharged(profiles), counters)

    def charging(
        self, modes: Iterable[Requirement], first: int
    ) -> Mapping[ItemGroups, int]:
        """By item groups, the type of the item that counters give to them: numbers from the first on."""
        asked = (
            dict.fromkeys(each.item_groups for each in modes)
            if any(each.left for each in self.counters)
            else ()
        )
        return {item_groups: number for number, item_groups in enumerate(asked, first)}


def _typed_bins(
    spaces: Sequence[StateSpace],
    inventory: _Inventory,
    classifier: UnitClassifier,
    charging: Mapping[ItemGroups, int],
    stop: Stop,
) -> tuple[tuple[BinType, ...], tuple[frozenset[int], ...]] | None:
    """The bins by type, and the areas; None if a node does not reach all of a bin, or a unit has too many states."""
    areas: dict[frozenset[int], int] = {}
    bin_types: dict[tuple[tuple[int, ...], int], BinType] = {}
    parts = zip(spaces, inventory.bin_classes, inventory.counters, strict=True)
    for space, bin_class, counters in stop.each(parts):
        units = classifier.units(bin_class)
        if units is None or any(
            len(node.reach) < space.size for node in bin_class.nodes
        ):
            return None
        units += [((), classifier.counters(counters, charging))] if charging else []
        area = areas.setdefault(frozenset().union(*space.node_sets), len(areas))
        key = tuple(unit.unit_type for _, unit in units), area
        bin_type = bin_types.setdefault(key, BinType(*key))
        bin_type.instances.extend(
            [BinInstance(bin_, units, space.node_sets) for bin_ in bin_class.bins]
        )
    return tuple(bin_types.values()), tuple(areas)


def _may_repeat_devices(
    options: Sequence[AssignmentOption], unit_types: Sequence[UnitType]
) -> bool:
    """Whether an item group of several devices could get one shared device several times."""
    several = {
        item.type
        for option in options
        for item in option.items
        if len(item.item_groups) == 1
        and option.requirement.item_groups[item.item_groups[0]].number > 1
    }
    return any(
        unit_type.shared and unit_type.most(type_) > 1
        for unit_type in unit_types
        for type_ in several.intersection(unit_type.types)
    )


def _items(
    requirement: Requirement, bundles: Bundles, charging: Mapping[ItemGroups, int]
) -> tuple[Item, ...]:
    bound = bundles.of(requirement)
    bundled = {place for places, _ in bound for place in places}
    return (
        *(Item(type_, places) for places, type_ in bound),
        *(
            Item(group.type, (number,))
            for number, group in enumerate(requirement.item_groups)
            for _ in range(group.number)
            if number not in bundled
        ),
        *(
            Item(type_, ())
            for type_ in [charging.get(requirement.item_groups)]
            if type_ is not None
        ),
    )
