"""Bins, into which demands are packed, and their classes: bins that are equal up to names.

No serving of a demand reaches across two bins. Two usable devices are in one bin if

- both draw on a counter (a GPU with its partitions, or devices that charge a node): they are in one *unit*;
- or one requirement could take both at once: it is for several devices, and a node reaches both. If a
  ``matchAttribute`` constraint covers all of it, it can only take both if they carry a common value.

So every serving lies within one bin, and what is served in one bin takes nothing away from another: an answer is any
choice, bin by bin, of demands that fit together there.

*Bin classes* are the equivalence classes of bins, up to the names of devices, counters, values and nodes. The canonical
key of a bin lists everything that a decision in it depends on, in a canonical order in which counters and
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
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import gcd
from typing import NamedTuple, assert_never

from dralloc.problem import (
    ConstraintKind,
    CounterIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    indices,
)
from dralloc.problem.equivalence import Recurrence
from dralloc.problem.indices import grouped
from dralloc.problem.supply import Scalar
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClasses,
    Requirement,
)
from dralloc.solve.optimum.classes.numbering import DisjointSets, Listed
from dralloc.solve.optimum.classes.usable_devices import Profile, UsableDevices
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "Bin",
    "BinClass",
    "BinClassifier",
    "DeviceView",
    "NodeView",
    "UnitView",
    "Values",
    "common_attributes",
    "find_bins",
]


class Bin(NamedTuple):
    """The devices of a bin by unit, in search order, and the nodes that reach any of them."""

    units: tuple[tuple[DeviceIndex, ...], ...]
    nodes: tuple[NodeIndex, ...]

    @property
    def devices(self) -> list[DeviceIndex]:
        """All devices."""
        return [device for unit in self.units for device in unit]


def find_bins(
    problem: Problem,
    demand_classes: DemandClasses,
    usable: UsableDevices,
    stop: Stop,
) -> list[Bin]:
    """Divide the usable devices into bins, in search order."""
    units = _units(problem, usable, stop)
    sets = units.copy()
    _join_units(problem, demand_classes, usable, sets, stop)
    bins = []
    for devices in sets.groups(stop.hundreds(usable.order)):
        devices_by_unit = tuple(map(tuple, units.groups(devices)))
        nodes: dict[NodeIndex, None] = {}
        for unit in devices_by_unit:
            for device in unit:
                nodes.update(dict.fromkeys(usable.nodes_of[device]))
        bins.append(Bin(devices_by_unit, tuple(nodes)))
    return bins


def _units(
    problem: Problem, usable: UsableDevices, stop: Stop
) -> DisjointSets[DeviceIndex]:
    """Unite the usable devices that draw on a common counter."""
    sets = DisjointSets(indices(problem.devices))
    root_of_counter: dict[CounterIndex, DeviceIndex] = {}
    for device in stop.hundreds(usable.order):
        root = device
        consumed = (counter for counter, _ in problem.devices[device].consumes)
        for counter in chain(consumed, usable.charged[device]):
            other_root = root_of_counter.setdefault(counter, root)
            if other_root != root:
                root = sets.unite(other_root, root)
    return sets


class _JointRequest(NamedTuple):
    """A request for several devices, as far as it decides about bins.

    ``types``: of the devices. ``common``: see `common_attributes`. ``nodes``: the candidate nodes, by number.
    """

    types: frozenset[int]
    common: frozenset[tuple[int, str]]
    nodes: int


def _join_units(
    problem: Problem,
    demand_classes: DemandClasses,
    usable: UsableDevices,
    sets: DisjointSets[DeviceIndex],
    stop: Stop,
) -> None:
    """Unite the sets of devices that one requirement could take at once."""
    joint_requests: dict[_JointRequest, None] = {}
    for requirement in demand_classes.requirements:
        if requirement.devices > 1:
            types = frozenset(group.type for group in requirement.item_groups)
            common = common_attributes(requirement)
            request = _JointRequest(types, common, requirement.nodes)
            joint_requests[request] = None
    if not joint_requests:
        return
    joint_types = frozenset().union(
        *(request.types for request in joint_requests)
    )
    types_of_profile = []
    for profile in usable.profiles:
        profile_types = [item_type for item_type, _ in profile]
        types_of_profile.append([t for t in profile_types if t in joint_types])
    by_node: dict[NodeIndex, dict[int, list[DeviceIndex]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for device in stop.hundreds(usable.order):
        for item_type in types_of_profile[usable.profile_of[device]]:
            for node in usable.nodes_of[device]:
                by_node[node][item_type].append(device)
    for node, devices_by_type in stop.each(by_node.items()):
        # Requests that differ in their candidate nodes alone unite the same devices.
        united: set[object] = set()
        for request in joint_requests:
            allowed = demand_classes.node_sets[request.nodes]
            if allowed is not None and node not in allowed:
                continue
            key = request.types, request.common
            if key in united or not request.types <= devices_by_type.keys():
                continue
            united.add(key)
            for devices in _takeable_together(
                problem, devices_by_type, request
            ):
                sets.unite_all(devices)


def _takeable_together(
    problem: Problem,
    devices_by_type: Mapping[int, Sequence[DeviceIndex]],
    request: _JointRequest,
) -> Iterable[list[DeviceIndex]]:
    """Return groups of a node's devices: all of the types, or those with a common value of each attribute."""
    if not request.common:
        devices: list[DeviceIndex] = []
        for item_type in sorted(request.types):
            devices += devices_by_type[item_type]
        return [devices]
    by_value: dict[Scalar, list[DeviceIndex]] = defaultdict(list)
    for item_type, attribute in sorted(request.common):
        for device in devices_by_type[item_type]:
            for value in problem.devices[device].attributes[attribute]:
                by_value[value].append(device)
    return by_value.values()


def common_attributes(requirement: Requirement) -> frozenset[tuple[int, str]]:
    """By type, the attributes of which all devices of the requirement must have a common value; empty for none."""
    item_groups = requirement.item_groups
    for rule in requirement.rules:
        match rule.kind:
            case ConstraintKind.MATCH:
                if len(rule.attributes) == len(item_groups):
                    return frozenset(
                        (item_groups[position].type, name)
                        for position, name in rule.attributes
                    )
            case ConstraintKind.DISTINCT:
                # Devices that differ have nothing in common.
                pass
            case _:
                assert_never(rule.kind)
    return frozenset()


Values = tuple[tuple[frozenset[int] | None, ...], ...]
"""By device, its values of each compared attribute as numbers; None if they do not matter."""


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
        self,
        problem: Problem,
        demand_classes: DemandClasses,
        usable: UsableDevices,
    ) -> None:
        self.problem = problem
        self.usable = usable
        self.classes: dict[Hashable, BinClass] = {}
        self.views: Listed[UnitView] = Listed()
        self.known: dict[Hashable, int] = {}
        self.free = [counter.free for counter in problem.counters]
        self.regions: Listed[frozenset[int]] = Listed()
        self.region_of: list[int] = []
        for node in problem.all_nodes:
            region = frozenset(
                set_index
                for set_index, nodes in enumerate(demand_classes.node_sets)
                if nodes is None or node in nodes
            )
            self.region_of.append(self.regions.number(region))
        self.compared = _compared_types(demand_classes)
        self.summaries = [_summary(profile) for profile in usable.profiles]

    def enter(self, bin_: Bin) -> BinClass:
        """Put a bin into its class."""
        views = [self._unit_number(unit) for unit in bin_.units]
        order = self._canonical_order(bin_, views) if len(views) > 1 else [0]
        units = tuple(bin_.units[position] for position in order)
        devices = [device for unit in units for device in unit]
        values = self._values(devices)
        nodes = []
        for node in bin_.nodes:
            view = NodeView(self.region_of[node], self._reach(devices, node))
            nodes.append((view, node))
        nodes.sort()
        view_indices = tuple(views[position] for position in order)
        node_views = tuple(view for view, _ in nodes)
        key = view_indices, values, node_views
        if key not in self.classes:
            unit_views = tuple(
                self.views[view_index] for view_index in view_indices
            )
            self.classes[key] = BinClass(
                unit_views, tuple(self.compared), values, node_views
            )
        # In canonical order, so that the n-th device of a bin stands for the n-th of any other bin of the class.
        canonical = Bin(units, tuple(node for _, node in nodes))
        self.classes[key].bins.append(canonical)
        return self.classes[key]

    def _reach(
        self, devices: Sequence[DeviceIndex], node: NodeIndex
    ) -> tuple[int, ...]:
        nodes_of = self.usable.nodes_of
        return tuple(
            [
                position
                for position, device in enumerate(devices)
                if node in nodes_of[device]
            ]
        )

    def _unit_number(self, unit: Sequence[DeviceIndex]) -> int:
        """Return the number of the unit's view."""
        key = self._as_published(unit)
        if key in self.known:
            return self.known[key]
        view_index = self.views.number(self._view(unit))
        if key is not None:
            self.known[key] = view_index
        return view_index

    def _as_published(self, unit: Sequence[DeviceIndex]) -> Hashable | None:
        """Return a key that is quick to find and determines the unit's view; None for all but dedicated devices."""
        devices = self.problem.devices
        profile_of = self.usable.profile_of
        first = unit[0]
        if len(unit) == 1:
            draws_on_counters = (
                devices[first].consumes or self.usable.charged[first]
            )
            if not devices[first].shareable and not draws_on_counters:
                return profile_of[first]
        consumed = [devices[device].consumes for device in unit]
        profiles = tuple([profile_of[device] for device in unit])
        # A device that can be shared has the profile of a dedicated one if it has no capacities.
        is_any_shareable = any(devices[device].shareable for device in unit)
        if is_any_shareable or not all(consumed):
            return None
        for profile in dict.fromkeys(profiles):
            summary = self.summaries[profile]
            if summary.capacity or summary.counters:
                return None
        # Counters of a unit are published side by side: relative to the first they are the same for equal units.
        counters, amounts = zip(*chain.from_iterable(consumed), strict=True)
        start = min(counters)
        available = tuple(self.free[start : max(counters) + 1])
        lengths = tuple(map(len, consumed))
        relative = tuple([counter - start for counter in counters])
        return profiles, lengths, relative, amounts, available

    def _view(self, unit: Sequence[DeviceIndex]) -> UnitView:
        """Return the unit in numbers of its own, with the smallest amounts that mean the same."""
        consumed, charged_steps = self._draws(unit)
        free: dict[CounterIndex, int] = {}
        for counter in dict.fromkeys((*consumed, *charged_steps)):
            available = self.free[counter]
            # Without charges by request, a counter that all devices together cannot use up is none.
            if counter in charged_steps or sum(consumed[counter]) > available:
                free[counter] = available
        # What a use charges is known by profile: only what is left is rounded, and nothing divided.
        divisors: dict[CounterIndex, int] = {}
        rounded_free: list[int] = []
        for counter, available in free.items():
            if counter in charged_steps:
                divisors[counter] = 1
                step = (
                    gcd(charged_steps[counter], *consumed.get(counter, ())) or 1
                )
                rounded_free.append(available // step * step)
            else:
                divisors[counter] = gcd(*consumed[counter])
                rounded_free.append(available // divisors[counter])
        counter_positions = {
            counter: position for position, counter in enumerate(free)
        }
        devices = tuple(
            self._device(device, counter_positions, divisors) for device in unit
        )
        return UnitView(devices, tuple(rounded_free))

    def _draws(
        self, unit: Sequence[DeviceIndex]
    ) -> tuple[dict[CounterIndex, list[int]], dict[CounterIndex, int]]:
        """Return by counter what first uses of devices consume, and of which amount charges are multiples."""
        consumed: dict[CounterIndex, list[int]] = defaultdict(list)
        charged_steps: dict[CounterIndex, int] = {}
        for device in unit:
            view = self.problem.devices[device]
            if view.slot not in self.problem.usage.shares:
                for counter, amount in view.consumes:
                    consumed[counter].append(amount)
            charged = self.usable.charged[device]
            if charged:
                summary = self.summaries[self.usable.profile_of[device]]
                for counter, step in zip(
                    charged, summary.counters, strict=True
                ):
                    charged_steps[counter] = gcd(
                        charged_steps.get(counter, 0), step
                    )
        return consumed, charged_steps

    def _device(
        self,
        device: DeviceIndex,
        counter_positions: Mapping[CounterIndex, int],
        divisors: Mapping[CounterIndex, int],
    ) -> DeviceView:
        view = self.problem.devices[device]
        profile = self.usable.profile_of[device]
        is_shared = view.slot in self.problem.usage.shares
        consumes = []
        # A device that is shared already is open: nobody consumes for its first use any more. And a counter without
        # divisor cannot run out (see `_view`).
        if not is_shared:
            for counter, amount in view.consumes:
                if counter in divisors:
                    consumes.append(
                        (
                            counter_positions[counter],
                            amount // divisors[counter],
                        )
                    )
        charged = tuple(
            [
                counter_positions[counter]
                for counter in self.usable.charged[device]
            ]
        )
        capacity = []
        if view.shareable:
            consumed = self.problem.usage.consumed.get(view.slot, {})
            for name, step in self.summaries[profile].capacity:
                # Rounded down and not divided, as profiles say in full what is charged.
                available = view.capacity[name].total - consumed.get(name, 0)
                capacity.append((name, available // step * step))
        return DeviceView(
            profile,
            view.shareable,
            tuple(capacity),
            is_shared,
            tuple(consumes),
            charged,
        )

    def _values(self, devices: Sequence[DeviceIndex]) -> Values:
        """Return the values of devices in canonical order, numbered as they appear."""
        if not self.compared:
            return ((),) * len(devices)
        recurrence = Recurrence(tuple(self.compared))
        return tuple(
            [recurrence.of(self._compared_values(device)) for device in devices]
        )

    def _canonical_order(self, bin_: Bin, views: Sequence[int]) -> list[int]:
        """Sort units by their views, and by the units that carry the same attribute values."""
        labels_of_units = [list(map(self._labels, unit)) for unit in bin_.units]
        # A value is marked by all locations that carry it: views of units, and positions of devices there.
        carriers: dict[tuple[str, Scalar], list[tuple[int, int]]] = {}
        for view, labels_of_unit in zip(views, labels_of_units, strict=True):
            for position, labels in enumerate(labels_of_unit):
                for label in labels:
                    carriers.setdefault(label, []).append((view, position))
        marks = {
            label: tuple(sorted(locations))
            for label, locations in carriers.items()
        }
        first_seen = {label: index for index, label in enumerate(carriers)}
        keys = []
        for view, labels_of_unit in zip(views, labels_of_units, strict=True):
            marked = tuple(
                tuple(sorted(map(marks.__getitem__, labels)))
                for labels in labels_of_unit
            )
            # First the view, then who carries its values, then where these come up first.
            seen = map(
                first_seen.__getitem__, chain.from_iterable(labels_of_unit)
            )
            # Units with a common value are put side by side.
            keys.append((view, marked, min(seen, default=0)))
        return sorted(range(len(views)), key=keys.__getitem__)

    def _labels(self, device: DeviceIndex) -> list[tuple[str, Scalar]]:
        """Return the compared values of a device, each with its attribute."""
        labels = []
        for name, values in self._compared_values(device).items():
            labels += [(name, value) for value in sorted(values, key=repr)]
        return labels

    def _compared_values(
        self, device: DeviceIndex
    ) -> Mapping[str, frozenset[Scalar]]:
        """Return the values of those attributes that some requirement compares which the device can serve."""
        types = self.summaries[self.usable.profile_of[device]].types
        attributes = self.problem.devices[device].attributes
        return {
            name: attributes[name]
            for name, comparing_types in self.compared.items()
            if not comparing_types.isdisjoint(types)
        }


class _ProfileSummary(NamedTuple):
    """A profile's types, and the greatest common factor of all amounts per charged capacity and counter."""

    types: frozenset[int]
    capacity: tuple[tuple[str, int], ...]
    counters: tuple[int, ...]


def _summary(profile: Profile) -> _ProfileSummary:
    amounts_of_capacity: dict[str, list[int]] = defaultdict(list)
    amounts_of_counter: dict[int, list[int]] = defaultdict(list)
    for _, charge in profile:
        for name, amount in charge.capacity:
            amounts_of_capacity[name].append(amount)
        for counter, amount in charge.counters:
            amounts_of_counter[counter].append(amount)
    capacity = []
    for name, amounts in amounts_of_capacity.items():
        # Where nothing is charged, any factor will do.
        capacity.append((name, gcd(*amounts) or 1))
    counters = [
        gcd(*amounts_of_counter[counter])
        for counter in range(len(amounts_of_counter))
    ]
    types = frozenset(item_type for item_type, _ in profile)
    return _ProfileSummary(types, tuple(capacity), tuple(counters))


def _compared_types(demand_classes: DemandClasses) -> dict[str, frozenset[int]]:
    """By attribute that some requirement compares: the types of item groups whose devices it compares."""
    types_by_attribute = grouped(
        (attribute, requirement.item_groups[position].type)
        for requirement in demand_classes.requirements
        for rule in requirement.rules
        for position, attribute in rule.attributes
    )
    return {
        name: frozenset(types)
        for name, types in sorted(types_by_attribute.items())
    }
