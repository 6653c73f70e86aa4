"""Bin classes: the equivalence classes of bins, up to the names of devices, counters, values and nodes.

The canonical key of a bin lists everything that a decision in it depends on, in a canonical order in which counters and
attribute values are numbered as they first appear: per device its profile, what is left of its capacities, whether it
is shared already, what it consumes of which counter, and which values it has under constrained attributes; per counter
what is left; per node which sets of candidate nodes it belongs to and which devices it reaches. So if two bins have
one key, mapping the n-th device of the one to the n-th of the other turns every choice in the one into a choice
in the other of the same worth. The converse does not hold, and need not: a pair of equal bins whose canonical orders
differ only makes two classes of one.

This is coarser than `dralloc.problem.equivalence.inventory_key`, which holds for any demand with the same alternatives:
here only what the requirements of this problem can tell apart counts, as fewer classes make smaller models.

Numbers that cannot matter are left out: a counter that cannot run out even if all usable devices draw on it is none,
and amounts are divided by their common factor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import gcd
from typing import NamedTuple

from dralloc.problem import Problem
from dralloc.problem.equivalence import Recurrence
from dralloc.problem.grouping import grouped
from dralloc.problem.supply import Scalar
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.demand_classes import DemandClasses, Listed
from dralloc.solve.optimum.classes.usable import Profile, UsableDevices

__all__ = ["BinClass", "BinClassifier", "DeviceView", "NodeView", "UnitView", "Values"]


Values = tuple[tuple[frozenset[int] | None, ...], ...]


class DeviceView(NamedTuple):
    """A device in the numbers of its unit.

    ``capacity`` is what is left of each capacity that some profile charges, by name, in nanos; ``shared`` whether it is
    in use by sharers already; ``consumes`` what the first use of it takes of which counter; ``charged`` the counters
    that each use charges, by their place in the profile.
    """

    profile: int
    shareable: bool
    capacity: tuple[tuple[str, int], ...]
    shared: bool
    consumes: tuple[tuple[int, int], ...]
    charged: tuple[int, ...] = ()


class UnitView(NamedTuple):
    """A unit: its devices in search order, and what is left of its counters."""

    devices: tuple[DeviceView, ...]
    free: tuple[int, ...]


class NodeView(NamedTuple):
    """A node: the region that it is in (see `BinClassifier`), and the devices, by position, that it reaches."""

    region: int
    reach: tuple[int, ...]


@dataclass(slots=True)
class BinClass:
    """Equal bins, each with its units in canonical order.

    Parameters
    ----------
    units
        The units' views, by position.
    attributes, values
        The constrained attributes; by device, its values of each as numbers, None if they do not matter.
    nodes
        For each node of a bin its region, and the devices that it reaches.
    bins
        The bins, in search order.
    """

    units: tuple[UnitView, ...]
    attributes: tuple[str, ...]
    values: Values
    nodes: tuple[NodeView, ...]
    bins: list[Bin] = field(default_factory=list)


class BinClassifier:
    """Sorts bins into classes.

    ``regions`` has, by number, the sets of candidate nodes that the nodes of a region belong to.
    """

    def __init__(
        self, problem: Problem, demand_classes: DemandClasses, usable: UsableDevices
    ) -> None:
        self.problem = problem
        self.usable = usable
        self.classes: dict[Hashable, BinClass] = {}
        self.views: Listed[UnitView] = Listed()
        self.known: dict[Hashable, int] = {}
        self.free = [counter.free for counter in problem.counters]
        self.regions: Listed[frozenset[int]] = Listed()
        node_sets = list(enumerate(demand_classes.node_sets))
        self.region_of = [
            self.regions.number(
                frozenset(
                    number
                    for number, nodes in node_sets
                    if nodes is None or node in nodes
                )
            )
            for node in problem.all_nodes
        ]
        self.compared = _compared(demand_classes)
        self.summaries = [_summary(profile) for profile in usable.profiles]

    def enter(self, bin_: Bin) -> BinClass:
        """Put a bin into its class."""
        views = [self._unit(unit) for unit in bin_.units]
        order = self._order(bin_, views) if len(views) > 1 else [0]
        units = tuple(bin_.units[position] for position in order)
        devices = [device for unit in units for device in unit]
        values = self._values(devices)
        nodes = sorted(
            (NodeView(self.region_of[node], self._reach(devices, node)), node)
            for node in bin_.nodes
        )
        key = (
            tuple(views[each] for each in order),
            values,
            tuple(view for view, _ in nodes),
        )
        found = self.classes.get(key)
        if found is None:
            listed = tuple(self.views[number] for number in key[0])
            found = self.classes[key] = BinClass(
                listed, tuple(self.compared), values, key[2]
            )
        found.bins.append(Bin(units, tuple(node for _, node in nodes)))
        return found

    def _reach(self, devices: Sequence[int], node: int) -> tuple[int, ...]:
        nodes_of = self.usable.nodes_of
        return tuple(
            [
                position
                for position, device in enumerate(devices)
                if node in nodes_of[device]
            ]
        )

    def _unit(self, unit: Sequence[int]) -> int:
        """The number of the unit's view."""
        key = self._as_published(unit)
        if key in self.known:
            return self.known[key]
        number = self.views.number(self._view(unit))
        if key is not None:
            self.known[key] = number
        return number

    def _as_published(self, unit: Sequence[int]) -> Hashable | None:
        """A key that is quick to find and determines the unit's view, for dedicated devices; None for others."""
        devices, free, first = self.problem.devices, self.free, unit[0]
        if len(unit) == 1 and not (
            devices[first].shareable
            or devices[first].consumes
            or self.usable.charged[first]
        ):
            return self.usable.profile_of[first]
        drawn = [devices[device].consumes for device in unit]
        profiles = tuple([self.usable.profile_of[device] for device in unit])
        if not all(drawn) or any(
            self.summaries[profile].capacity or self.summaries[profile].counters
            for profile in dict.fromkeys(profiles)
        ):
            return None
        counters, amounts = zip(*chain.from_iterable(drawn), strict=True)
        start = min(counters)
        left = tuple(free[start : max(counters) + 1])
        return (
            profiles,
            tuple(map(len, drawn)),
            tuple([counter - start for counter in counters]),
            amounts,
            left,
        )

    def _view(self, unit: Sequence[int]) -> UnitView:
        devices, shares = self.problem.devices, self.problem.usage.shares
        needed: dict[int, list[int]] = defaultdict(list)
        steps: dict[int, int] = {}
        for device in unit:
            if devices[device].slot not in shares:
                for counter, amount in devices[device].consumes:
                    needed[counter].append(amount)
            if charged := self.usable.charged[device]:
                for counter, step in zip(
                    charged,
                    self.summaries[self.usable.profile_of[device]].counters,
                    strict=True,
                ):
                    steps[counter] = gcd(steps.get(counter, 0), step)
        free = {
            counter: self.free[counter] for counter in dict.fromkeys((*needed, *steps))
        }
        free = {
            each: left
            for each, left in free.items()
            if each in steps or sum(needed[each]) > left
        }
        # What a use charges is known by profile: only what is left is rounded, and nothing divided.
        units = {
            counter: 1 if counter in steps else gcd(*needed[counter])
            for counter in free
        }
        wholes = {
            counter: gcd(step, *needed.get(counter, ())) or 1
            for counter, step in steps.items()
        }
        numbers = {counter: number for number, counter in enumerate(free)}
        return UnitView(
            tuple(self._device(device, numbers, units) for device in unit),
            tuple(
                left // units[each] // (whole := wholes.get(each, 1)) * whole
                for each, left in free.items()
            ),
        )

    def _device(
        self, device: int, numbers: Mapping[int, int], units: Mapping[int, int]
    ) -> DeviceView:
        view, profile = self.problem.devices[device], self.usable.profile_of[device]
        shared = view.slot in self.problem.usage.shares
        drawn = (
            (counter, amount)
            for counter, amount in view.consumes
            if counter in units and not shared
        )
        consumes = tuple(
            [(numbers[counter], amount // units[counter]) for counter, amount in drawn]
        )
        charged = tuple([numbers[counter] for counter in self.usable.charged[device]])
        consumed = self.problem.usage.consumed.get(view.slot, {})
        capacity = self.summaries[profile].capacity if view.shareable else ()
        left = (
            (name, view.capacity[name].total - consumed.get(name, 0), step)
            for name, step in capacity
        )
        rounded = tuple([(name, amount // step * step) for name, amount, step in left])
        return DeviceView(profile, view.shareable, rounded, shared, consumes, charged)

    def _values(self, devices: Sequence[int]) -> Values:
        """The values of devices in canonical order, numbered as they appear."""
        if not self.compared:
            return ((),) * len(devices)
        recurrence = Recurrence(tuple(self.compared))
        return tuple(
            [recurrence.of(self._compared_values(device)) for device in devices]
        )

    def _order(self, bin_: Bin, views: Sequence[int]) -> list[int]:
        """Sort units by their views, and by the units that carry the same attribute values."""
        compared = [[self._labels(device) for device in unit] for unit in bin_.units]
        owners = grouped(
            (value, (view, position))
            for view, unit in zip(views, compared, strict=True)
            for position, values in enumerate(unit)
            for value in values
        )
        marks = {value: tuple(sorted(each)) for value, each in owners.items()}
        first = {value: number for number, value in enumerate(owners)}
        keys = []
        for view, unit in zip(views, compared, strict=True):
            marked = tuple(
                tuple(sorted(marks[value] for value in values)) for values in unit
            )
            # Units with a common value are put side by side.
            keys.append(
                (
                    view,
                    marked,
                    min(
                        (first[value] for values in unit for value in values), default=0
                    ),
                )
            )
        return sorted(range(len(views)), key=keys.__getitem__)

    def _labels(self, device: int) -> list[tuple[str, Scalar]]:
        compared = self._compared_values(device)
        return [
            (name, value)
            for name, values in compared.items()
            for value in sorted(values, key=repr)
        ]

    def _compared_values(self, device: int) -> Mapping[str, frozenset[Scalar]]:
        types = self.summaries[self.usable.profile_of[device]].types
        attributes = self.problem.devices[device].attributes
        return {
            name: attributes[name]
            for name, comparing in self.compared.items()
            if not comparing.isdisjoint(types)
        }


class _ProfileSummary(NamedTuple):
    """Of a profile: its types, and the greatest common factor of all amounts per charged capacity and counter."""

    types: frozenset[int]
    capacity: tuple[tuple[str, int], ...]
    counters: tuple[int, ...]


def _summary(profile: Profile) -> _ProfileSummary:
    capacity = grouped(each for _, charge in profile for each in charge.capacity)
    counters = grouped(each for _, charge in profile for each in charge.counters)
    return _ProfileSummary(
        frozenset(type_ for type_, _ in profile),
        tuple((name, gcd(*amounts) or 1) for name, amounts in capacity.items()),
        tuple(gcd(*counters[place]) for place in range(len(counters))),
    )


def _compared(demand_classes: DemandClasses) -> dict[str, frozenset[int]]:
    """By attribute that some requirement compares: the types of item groups whose devices it compares."""
    found = grouped(
        (attribute, requirement.item_groups[position].type)
        for requirement in demand_classes.requirements
        for rule in requirement.rules
        for position, attribute in rule.attributes
    )
    return {name: frozenset(types) for name, types in sorted(found.items())}
