"""Devices and counters of the pools, numbered in the order in which they are first offered to a node.

First attribute values as constraints compare them. Then the catalog, with the slots of devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count, filterfalse, repeat
from typing import cast

from dralloc.compile.inventory.compatibility_groups import (
    grouped_sets,
    groups_of,
)
from dralloc.compile.inventory.consumed_counters import (
    ByRequest,
    CounterGroup,
    CounterLayout,
)
from dralloc.compile.inventory.pools import (
    ColumnReader,
    NodeSelections,
    PoolView,
)
from dralloc.objects.api import AttributeValue, ResourceSlice, Unset
from dralloc.objects.api import Counter as ApiCounter
from dralloc.objects.api import Device as ApiDevice
from dralloc.objects.api.slices import TYPE_NAMES
from dralloc.objects.features import Features
from dralloc.objects.names import CounterID, DeviceID, PoolID
from dralloc.problem import Counter, Device, DeviceIndex, Scalar, SlotIndex
from dralloc.problem.supply import record

__all__ = [
    "Catalog",
    "PublishedDevice",
    "Slots",
    "comparable",
    "compared_values",
]


def comparable(value: AttributeValue, features: Features) -> frozenset[Scalar]:
    """The scalars that an attribute stands for: one, or all of a list (KEP-5491).

    Empty if the value cannot be compared: it has none, or is a list and the feature is off.
    """
    if isinstance(value, Unset) or (
        isinstance(value, tuple) and not features.ListTypeAttributes
    ):
        return frozenset()
    items = value if isinstance(value, tuple) else (value,)
    return frozenset(
        # A subclass of str, such as a version, is compared by its text.
        (TYPE_NAMES[type(item)], str(item) if isinstance(item, str) else item)
        for item in items
    )


def compared_values(
    device: ApiDevice, driver: str, names: Iterable[str], features: Features
) -> Mapping[str, frozenset[Scalar]]:
    """The attributes of a device that constraints name, by the qualified name; those that it lacks are left out."""
    attributes = ((name, device.attribute(name, driver)) for name in names)
    return {
        name: comparable(value, features)
        for name, value in attributes
        if value is not None
    }


_NOTHING: Mapping[str, frozenset[Scalar]] = {}

_device_id: Callable[[Iterable[str]], DeviceID] = partial(
    tuple.__new__, DeviceID
)
_counter_id: Callable[[Iterable[str]], CounterID] = partial(
    tuple.__new__, CounterID
)
"""The constructors of named tuples take twice as long."""


@record
class PublishedDevice:
    """The place where a device was published.

    ``requested_counters``: index of each counter that is consumed by request, with the key of the capacity request that
    says how much (KEP-5941).
    """

    slice: ResourceSlice
    device: ApiDevice
    requested_counters: ByRequest


class Slots(Mapping[DeviceID, SlotIndex]):
    """The slot of each device, found by pool: a million names are looked up seldom."""

    def __init__(self) -> None:
        self._by_name: dict[PoolID, dict[str, SlotIndex]] = {}
        self._count = 0

    def enter(self, pool: PoolID, names: Sequence[str]) -> Sequence[SlotIndex]:
        """The slots of some devices of a pool, new ones for those that are not known."""
        slot_of = self._by_name.setdefault(pool, {})
        news = dict.fromkeys(filterfalse(slot_of.__contains__, names))
        new_slots = cast("Iterator[SlotIndex]", count(self._count))
        slot_of.update(zip(news, new_slots, strict=False))
        self._count += len(news)
        return list(map(slot_of.__getitem__, names))

    def __getitem__(self, device: DeviceID) -> SlotIndex:
        return self._by_name[device.pool_id][device.device]

    def __iter__(self) -> Iterator[DeviceID]:
        return (
            DeviceID(*pool, name)
            for pool, names in self._by_name.items()
            for name in names
        )

    def __len__(self) -> int:
        return self._count


@dataclass
class Catalog:
    """Collects devices and counters while pools are visited; every slice of a group is entered once.

    ``sources`` says where each of the ``devices`` was published, ``published`` is the same for ``counters``,
    ``grouped`` counts the counter sets on which groups are declared.

    Parameters
    ----------
    slices
        All slices of the cluster.
    attributes
        Qualified names of the attributes that some constraint reads; others are not kept.
    """

    slices: Sequence[ResourceSlice]
    nodes: NodeSelections
    attributes: frozenset[str]
    features: Features
    devices: list[Device] = field(default_factory=list)
    sources: list[PublishedDevice] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    published: list[ApiCounter] = field(default_factory=list)
    slots: Slots = field(default_factory=Slots)
    grouped: int = 0
    _groups: dict[
        tuple[PoolID, tuple[int, ...]], Mapping[int, Sequence[DeviceIndex]]
    ] = field(default_factory=dict)
    _layouts: dict[tuple[int, ...], CounterLayout] = field(default_factory=dict)
    _without_groups: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.reader = ColumnReader(self.slices)

    def offer(self, pool: PoolID, view: PoolView) -> tuple[DeviceIndex, ...]:
        """Indices of the devices that a usable pool offers, in search order."""
        key = (pool, view.considered)
        if key not in self._groups:
            self._groups[key] = self._enter(pool, view.considered)
        entered = self._groups[key]
        return tuple(
            chain.from_iterable(entered[index] for index in view.offered)
        )

    def _enter(
        self, pool: PoolID, considered: Sequence[int]
    ) -> Mapping[int, Sequence[DeviceIndex]]:
        group = len(self._groups)
        sets = tuple(
            counter_set
            for index in considered
            for counter_set in self.slices[index].spec.shared_counters
        )
        # Equal counter sets are one object after loading: groups with the same ones have one layout.
        key = tuple(map(id, sets))
        layout = self._layouts[key] = self._layouts.get(key) or CounterLayout(
            sets
        )
        counters = CounterGroup(len(self.counters), layout)
        self.published += layout.counters
        ids = map(
            _counter_id,
            zip(
                repeat(pool.driver),
                repeat(pool.pool),
                layout.sets_of,
                layout.names,
            ),
        )
        self.counters += map(
            Counter, ids, layout.totals, layout.totals, repeat(group)
        )
        grouped = self._enter_groups(considered)
        entered: dict[int, Sequence[DeviceIndex]] = {}
        for index in considered:
            first = len(self.devices)
            if not (
                self.features.PartitionableDevices
                and self.slices[index].spec.shared_counters
            ):
                self._enter_devices(index, group, counters, grouped)
            new_devices = range(first, len(self.devices))
            entered[index] = cast("Sequence[DeviceIndex]", new_devices)
        return entered

    def _enter_groups(self, considered: Sequence[int]) -> Mapping[str, int]:
        """The counter sets of a pool on which devices declare groups, numbered."""
        if not self.features.DeviceCompatibilityGroups:
            return {}
        # By identity: slices that are made from one template have the same columns.
        news = {}
        for columns in map(self.reader.of, considered):
            if id(columns) not in self._without_groups:
                news[id(columns)] = columns
        consumers = (columns.consumers.values() for columns in news.values())
        sets = grouped_sets(chain.from_iterable(consumers), self.grouped)
        if not sets:
            self._without_groups.update(news)
        self.grouped += len(sets)
        return sets

    def _enter_devices(
        self,
        index: int,
        group: int,
        counters: CounterGroup,
        grouped: Mapping[str, int],
    ) -> None:
        slice_, columns, features = (
            self.slices[index],
            self.reader.of(index),
            self.features,
        )
        (driver, pool), devices = slice_.pool_id, slice_.spec.devices
        # Column by column, as a call for each of a million devices would take most of
        # the time.
        fixed, by_request = counters.taken(columns.consumed)
        self.devices += map(
            Device,
            map(_device_id, zip(repeat(driver), repeat(pool), columns.names)),
            self.slots.enter(slice_.pool_id, columns.names),
            repeat(group),
            columns.shareable if features.ConsumableCapacity else repeat(False),
            columns.capacity,
            fixed,
            [
                compared_values(device, driver, self.attributes, features)
                for device in devices
            ]
            if self.attributes
            else repeat(_NOTHING),
            [self.nodes.of_device(device) for device in devices]
            if slice_.spec.per_device_node_selection
            else repeat(None),
            columns.binds_to_node,
            [groups_of(device, grouped) for device in devices]
            if grouped
            else repeat(()),
            columns.footprint
            if features.NodeAllocatableResources
            else repeat(()),
        )
        self.sources += map(
            PublishedDevice,
            repeat(slice_),
            devices,
            by_request if features.SharedConsumableCapacity else repeat(()),
        )
