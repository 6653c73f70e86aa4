"""Devices and counters of the pools, numbered in the order in which they are first offered to a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dralloc.api import AttributeValue, ResourceSlice
from dralloc.api import Counter as ApiCounter
from dralloc.api import Device as ApiDevice
from dralloc.features import Features
from dralloc.inventory.consumption import Consumption, CounterGroup
from dralloc.inventory.groups import compatibility, grouped_sets
from dralloc.inventory.pools import PoolView
from dralloc.inventory.reach import NodeIndex
from dralloc.inventory.values import comparable
from dralloc.names import CounterID, DeviceID, PoolID
from dralloc.problem import Capacity, Counter, Device, Scalar

__all__ = ["Catalog", "Source"]


_NOTHING: Mapping[str, frozenset[Scalar]] = {}


@dataclass(frozen=True, slots=True)
class Source:
    """Where a device was published.

    ``requested_counters``: index of each counter that is consumed by request, with the key of the capacity request that
    says how much (KEP-5941).
    """

    slice: ResourceSlice
    device: ApiDevice
    requested_counters: tuple[tuple[int, str], ...]


@dataclass
class Catalog:
    """Collects devices and counters while pools are visited; every slice of a group is entered once.

    ``sources`` says where each of the ``devices`` was published, ``published`` is the same for ``counters``,
    ``grouped`` counts the counter sets with compatibility groups.

    Parameters
    ----------
    slices
        All slices of the cluster.
    attributes
        Qualified names of the attributes that some constraint reads; others are not kept.
    allocated
        The devices that claims hold.
    """

    slices: Sequence[ResourceSlice]
    nodes: NodeIndex
    attributes: frozenset[str]
    features: Features
    allocated: frozenset[DeviceID] = frozenset()
    devices: list[Device] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    published: list[ApiCounter] = field(default_factory=list)
    slots: dict[DeviceID, int] = field(default_factory=dict)
    grouped: int = 0
    _groups: dict[tuple[PoolID, tuple[int, ...]], Mapping[int, range]] = field(default_factory=dict)
    _consumption: Consumption = field(default_factory=Consumption)
    _capacities: dict[int, Mapping[str, Capacity]] = field(default_factory=dict)

    def offer(self, pool: PoolID, view: PoolView) -> tuple[int, ...]:
        """Indices of the devices that a usable pool offers, in search order."""
        key = (pool, view.considered)
        if key not in self._groups:
            self._groups[key] = self._enter(pool, view.considered)
        entered = self._groups[key]
        return tuple(index for slice_ in view.offered for index in entered[slice_])

    def _enter(self, pool: PoolID, considered: Sequence[int]) -> Mapping[int, range]:
        group = len(self._groups)
        first_counter = len(self.counters)
        counters = self._consumption.group(first_counter, tuple(self._enter_counters(pool, considered, group)))
        sets = self._enter_groups(considered)
        entered = {}
        for index in considered:
            slice_ = self.slices[index]
            first = len(self.devices)
            if not (self.features.PartitionableDevices and slice_.spec.shared_counters):
                for device in slice_.spec.devices:
                    self._enter_device(slice_, device, group, counters, sets)
            entered[index] = range(first, len(self.devices))
        return entered

    def _enter_groups(self, considered: Sequence[int]) -> Mapping[str, int]:
        """The counter sets of a group of slices on which compatibility groups are declared, numbered."""
        if not self.features.DeviceCompatibilityGroups:
            return {}
        devices = (device for index in considered for device in self.slices[index].spec.devices)
        sets = grouped_sets(devices, self.grouped)
        self.grouped += len(sets)
        return sets

    def _enter_counters(self, pool: PoolID, considered: Sequence[int], group: int) -> Iterator[tuple[str, str]]:
        for index in considered:
            for counter_set in self.slices[index].spec.shared_counters:
                for name, counter in counter_set.counters.items():
                    yield counter_set.name, name
                    total = counter.value.nanos
                    self.published.append(counter)
                    self.counters.append(Counter(CounterID(*pool, counter_set.name, name), total, total, group))

    def _enter_device(
        self, slice_: ResourceSlice, device: ApiDevice, group: int, counters: CounterGroup, sets: Mapping[str, int]
    ) -> None:
        id_ = DeviceID(slice_.spec.driver, slice_.spec.pool.name, device.name)
        per_device = slice_.spec.per_device_node_selection
        self.devices.append(
            Device(
                id=id_,
                slot=self.slots.setdefault(id_, len(self.slots)),
                group=group,
                shareable=self.features.ConsumableCapacity and device.allow_multiple_allocations,
                capacity=self._capacity(device),
                consumes=counters.fixed(device.consumes_counters) if device.consumes_counters else (),
                attributes=self._constrained(device, id_.driver),
                nodes=self.nodes.of_device(device) if per_device else None,
                compatibility=compatibility(device, sets) if sets else (),
            )
        )
        by_request = device.consumes_counters if self.features.SharedConsumableCapacity else ()
        self.sources.append(Source(slice_, device, counters.by_request(by_request) if by_request else ()))

    def _capacity(self, device: ApiDevice) -> Mapping[str, Capacity]:
        # Equal capacities are one object after loading; keep it that way.
        key = id(device.capacity)
        if key not in self._capacities:
            self._capacities[key] = {
                name: Capacity(name, capacity.value.nanos, capacity.consumable)
                for name, capacity in device.capacity.items()
            }
        return self._capacities[key]

    def _constrained(self, device: ApiDevice, driver: str) -> Mapping[str, frozenset[Scalar]]:
        if not self.attributes:
            return _NOTHING
        found = ((name, _look_up(name, device, driver)) for name in self.attributes)
        return {name: comparable(value, self.features) for name, value in found if value is not None}


def _look_up(attribute: str, device: ApiDevice, driver: str) -> AttributeValue | None:
    """The device's attribute of that name; the driver's domain may be left out on either side (KEP-4381)."""
    value = device.attributes.get(attribute)
    if value is None:
        domain, _, name = attribute.rpartition("/")
        if domain == driver:
            value = device.attributes.get(name)
        elif not domain:
            value = device.attributes.get(f"{driver}/{attribute}")
    return value
