"""Devices and counters of the pools, numbered in the order in which they are first offered to a node.

First what devices say, made ready once for all that say the same: attribute values, compatibility groups, counters that
they consume. Then the catalog, and what its devices are called by who buys them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count, filterfalse, repeat
from operator import itemgetter
from typing import Final, cast

from dralloc.compile.inventory.pools import (
    ColumnReader,
    NodeSelections,
    PoolView,
)
from dralloc.objects.api import (
    AttributeValue,
    CounterSet,
    DeviceCounterConsumption,
    ResourceSlice,
    Unset,
)
from dralloc.objects.api import Counter as ApiCounter
from dralloc.objects.api import Device as ApiDevice
from dralloc.objects.api.slices import TYPE_NAMES
from dralloc.objects.features import Features
from dralloc.objects.names import CounterID, DeviceID, PoolID
from dralloc.problem import (
    NO_GROUPS,
    Counter,
    CounterIndex,
    Device,
    DeviceIndex,
    Scalar,
    SlotIndex,
)
from dralloc.problem.supply import record

__all__ = [
    "LEFT_ALONE",
    "Catalog",
    "PublishedDevice",
    "Skipped",
    "Slots",
    "comparable",
    "compared_values",
    "declares_groups",
    "product_name",
    "product_names",
    "set_name",
]

# ----------------------------------------------------------------------------
# Attribute values as constraints compare them.


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


# ----------------------------------------------------------------------------
# Compatibility groups (KEP-5963): what may be in use together on one counter set.
#
# A device can declare groups for each counter set that it consumes counters of.
# Whatever is in use on a counter set must have a group in common; devices that
# declare none are compatible among themselves and with nobody else. Allocated devices
# count with the groups that the slices say now.
#
# With the gate ``DRADeviceCompatibilityGroups`` off (it is alpha in Kubernetes 1.37),
# upstream skips a device that declares groups, and one that consumes counters of a
# set on which an allocated device declares groups, so that nothing incompatible is
# ever in use together. Source of both: upstream's ``compatibility_groups.go``.

LEFT_ALONE: Final = "DRADeviceCompatibilityGroups is off: devices with compatibility groups are not allocated"
"""The remark about devices that nobody can get."""


def declares_groups(device: ApiDevice) -> bool:
    """Whether the device declares groups anywhere."""
    return any(
        consumption.compatibility_groups
        for consumption in device.consumes_counters
    )


def _grouped_sets(
    devices: Iterable[ApiDevice], first: int
) -> Mapping[str, int]:
    """The counter sets on which some device declares groups, numbered from ``first``."""
    names: dict[str, None] = {}
    for device in devices:
        for consumption in device.consumes_counters:
            if consumption.compatibility_groups:
                names[consumption.counter_set] = None
    return {name: set_number for set_number, name in enumerate(names, first)}


def _groups_of(
    device: ApiDevice, sets: Mapping[str, int]
) -> tuple[tuple[int, frozenset[str]], ...]:
    """A device's groups on each of the numbered counter sets of which it consumes."""
    return tuple(
        (
            sets[consumption.counter_set],
            frozenset(consumption.compatibility_groups or (NO_GROUPS,)),
        )
        for consumption in device.consumes_counters
        if consumption.counter_set in sets
    )


def set_name(
    number: int, numbered: Device, device: ApiDevice, pool: Iterable[ApiDevice]
) -> str:
    """The name of a counter set that the problem numbers, for a device as the problem knows it and as it is published.

    Parameters
    ----------
    pool
        The devices that share counter sets with it, as they are published.
    """
    grouped = _grouped_sets(pool, 0)
    names = (
        consumption.counter_set
        for consumption in device.consumes_counters
        if consumption.counter_set in grouped
    )
    # Both list the counter sets with groups in the order in which the device consumes of them.
    set_numbers = (counter_set for counter_set, _ in numbered.compatibility)
    return dict(zip(set_numbers, names, strict=True))[number]


@dataclass(frozen=True)
class Skipped:
    """The features of a pool that are ignored with their gate off.

    ``any``: whether some device declares groups. ``used_sets``: the counter sets on which an allocated one does.
    """

    any: bool
    used_sets: frozenset[str]

    @classmethod
    def of(
        cls, slices: Iterable[ResourceSlice], allocated: Set[DeviceID]
    ) -> Skipped:
        """Collect them from the slices that a pool consists of."""
        grouped = [
            (DeviceID(*slice_.pool_id, device.name), consumption.counter_set)
            for slice_ in slices
            for device in slice_.spec.devices
            for consumption in device.consumes_counters
            if consumption.compatibility_groups
        ]
        return cls(
            bool(grouped),
            frozenset(
                counter_set
                for device, counter_set in grouped
                if device in allocated
            ),
        )

    def concern(self, device: ApiDevice) -> bool:
        """Whether the device must be left alone because of groups."""
        return self.any and any(
            consumption.compatibility_groups
            or consumption.counter_set in self.used_sets
            for consumption in device.consumes_counters
        )


# ----------------------------------------------------------------------------
# Which counters devices consume. A million devices have few ways to, so each is
# worked out once.

Amount = tuple[CounterIndex, int]
"""A counter and nanos."""

Fixed = tuple[Amount, ...]

ByRequest = tuple[tuple[CounterIndex, str], ...]

Pick = Callable[[Sequence[Amount]], Fixed]


@dataclass(frozen=True, slots=True)
class _Known:
    """The meaning of a list of consumed counters. Keeps the list's object alive.

    ``fixed`` picks from a group's amounts, ``by_request`` has offsets from the group's first counter.
    """

    consumptions: Sequence[DeviceCounterConsumption]
    fixed: Pick
    by_request: Sequence[tuple[int, str]]


class CounterLayout:
    """The counter sets of a group of slices, and what devices consume of them.

    Equal counter sets, and equal lists of consumed counters, are one object after loading: by that they are known.
    What is consumed, and how much of it, are the columns ``offsets`` and ``nanos``.
    """

    def __init__(self, sets: Sequence[CounterSet]) -> None:
        self.sets = sets
        self.sets_of: list[str] = []
        self.names: list[str] = []
        self.counters: list[ApiCounter] = []
        for counter_set in sets:
            for name, counter in counter_set.counters.items():
                self.sets_of.append(counter_set.name)
                self.names.append(name)
                self.counters.append(counter)
        self.totals = [counter.value.nanos for counter in self.counters]
        self.offsets: list[int] = []
        self.nanos: list[int] = []
        self.by_request = False
        self._offsets = {
            name: offset
            for offset, name in enumerate(
                zip(self.sets_of, self.names, strict=True)
            )
        }
        self._places: dict[tuple[int, int], int] = {}
        self._known: dict[int, _Known] = {}
        self._lists: dict[int, tuple[object, Sequence[_Known]]] = {}

    def known(self, consumptions: Sequence[DeviceCounterConsumption]) -> _Known:
        """Return the amounts that a device with these consumptions takes."""
        consumption = self._known.get(id(consumptions))
        if consumption is None:
            consumption = self._known[id(consumptions)] = self._read(
                consumptions
            )
        return consumption

    def known_lists(
        self, consumers: Sequence[Sequence[DeviceCounterConsumption]]
    ) -> Sequence[_Known]:
        """Return the amounts that several devices take; the same list of devices is read once."""
        entry = self._lists.get(id(consumers))
        if entry is None:
            entry = self._lists[id(consumers)] = (
                consumers,
                [self.known(consumptions) for consumptions in consumers],
            )
        return entry[1]

    def _read(self, consumptions: Sequence[DeviceCounterConsumption]) -> _Known:
        fixed: dict[int, int] = {}
        by_request = []
        for consumption in consumptions:
            for name, consumed in consumption.counters.items():
                offset = self._offsets.get((consumption.counter_set, name))
                if offset is None:
                    continue
                if consumed.value is not None:
                    fixed[offset] = fixed.get(offset, 0) + consumed.value.nanos
                if consumed.value_from is not None:
                    by_request.append(
                        (offset, consumed.value_from.capacity_key)
                    )
        self.by_request |= bool(by_request)
        amounts = [amount for amount in fixed.items() if amount[1]]
        # Who consumes nothing of all its counters still consumes: an overdrawn counter closes it.
        amounts = amounts or list(fixed.items())[:1]
        return _Known(
            consumptions,
            _pick([self._place(amount) for amount in amounts]),
            tuple(by_request),
        )

    def _place(self, amount: tuple[int, int]) -> int:
        row = self._places.setdefault(amount, len(self._places))
        if row == len(self.offsets):
            offset, nanos = amount
            self.offsets.append(offset)
            self.nanos.append(nanos)
        return row


def _pick(rows: Sequence[int]) -> Pick:
    if len(rows) > 1:
        pick: Pick = itemgetter(*rows)
        return pick
    # For one row, `itemgetter` would return the amount instead of a tuple.
    return lambda amounts: tuple(amounts[row] for row in rows)


@dataclass(frozen=True, slots=True)
class CounterGroup:
    """The counters of a group of slices, numbered from ``first``."""

    first: int
    layout: CounterLayout
    _amounts: list[Amount] = field(default_factory=list)

    def taken(
        self, consumers: Sequence[Sequence[DeviceCounterConsumption]]
    ) -> tuple[list[Fixed], Iterable[ByRequest]]:
        """Return the amounts that devices take, as two columns, given the consumptions of each.

        The first has the index of each counter that a device always consumes, with nanos (KEP-4815). Counters of which
        it takes none never stand in its way: they are left out, all but one if there are no others. The second has the
        index of each counter that it consumes by request, with the key of the request's capacity (KEP-5941).
        """
        layout, first = self.layout, self.first
        consumptions = layout.known_lists(consumers)
        # The layout may have learnt of more amounts since this group last took some of them.
        new = slice(len(self._amounts), None)
        counters = map(first.__add__, layout.offsets[new])
        self._amounts.extend(
            zip(
                cast("Iterator[CounterIndex]", counters),
                layout.nanos[new],
                strict=True,
            )
        )
        fixed = [
            consumption.fixed(self._amounts) for consumption in consumptions
        ]
        if not layout.by_request:
            return fixed, repeat(())
        by_request = []
        for consumption in consumptions:
            shifted = [
                (CounterIndex(first + offset), key)
                for offset, key in consumption.by_request
            ]
            by_request.append(tuple(shifted))
        return fixed, by_request


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
        sets = _grouped_sets(chain.from_iterable(consumers), self.grouped)
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
            [_groups_of(device, grouped) for device in devices]
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


# ----------------------------------------------------------------------------
# What devices are called by who buys them: a product, and what part of it.

PRODUCTS: Final = ("productName", "model", "product", "deviceName")
"""Attributes that name a product, in the domain of the driver: the first that a device has counts."""

PARTS: Final = ("profile", "partitionProfile", "partitionType")
"""Attributes that say which part of a product a device is; the first that it has is added to the product."""


def product_name(
    device: ApiDevice, driver: str, names: Sequence[str] = ()
) -> str:
    """Return the product name of a device.

    Parameters
    ----------
    names
        The attributes that tell, all of which count; without any, the first of `PRODUCTS` and of `PARTS` does.

    Returns
    -------
    str
        Values with a slash between them; empty if the device has none of the attributes.
    """
    if names:
        return " / ".join(_values(device, driver, names))
    product = next(_values(device, driver, PRODUCTS), "")
    part = next(_values(device, driver, PARTS), "")
    return " / ".join(filter(None, (product, part)))


def product_names(
    sources: Iterable[PublishedDevice], names: Sequence[str] = ()
) -> list[str]:
    """Return the same for published devices. Equal attributes are one object after loading, and are read once."""
    names_by_attributes: dict[tuple[str, int], str] = {}
    published_names = []
    for source in sources:
        driver = source.slice.spec.driver
        key = driver, id(source.device.attributes)
        if key not in names_by_attributes:
            names_by_attributes[key] = product_name(
                source.device, driver, names
            )
        published_names.append(names_by_attributes[key])
    return published_names


def _values(
    device: ApiDevice, driver: str, names: Iterable[str]
) -> Iterator[str]:
    return (
        _text(value)
        for name in names
        if (value := device.attribute(name, driver)) is not None
    )


def _text(value: AttributeValue) -> str:
    match value:
        case Unset():
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(_text, value))
    return str(value)
