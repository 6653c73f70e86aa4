"""Pools: the slices that each node sees of a pool, the generation that counts, and whether the pool can be used.

Source: upstream's ``GatherPools`` and ``buildPool``; KEP-4381 "Resource pools" and KEP-4815 "Resource pool validation".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from dralloc.objects.api import (
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    Node,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    NodeSelector,
    ResourceSlice,
)
from dralloc.objects.api.selecting import selector_matches
from dralloc.objects.api.slice_reader import common
from dralloc.objects.features import Features
from dralloc.objects.names import PoolID
from dralloc.objects.quantity import NANOS, Quantity
from dralloc.problem import Capacity, NodeFootprint, PoolState
from dralloc.problem.supply import record

__all__ = [
    "ColumnReader",
    "NodeSelections",
    "PoolView",
    "PoolViews",
    "find_reach",
]

# ----------------------------------------------------------------------------
# Which slices matter to which node.
#
# Source: upstream's ``GatherPools``. Slices with shared counters matter to every
# node, because the devices of a pool can only be judged together with its counters
# (KEP-4815).


class NodeSelections:
    """Answers which nodes a node selection means. Equal selectors are worked out once. ``everywhere``: all nodes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._by_name = {
            node.metadata.name: index for index, node in enumerate(nodes)
        }
        self._by_selector: dict[str, frozenset[int]] = {}
        self.everywhere = frozenset(range(len(nodes)))

    def selected(
        self,
        name: str | None,
        everywhere: bool | None,
        selector: NodeSelector | None,
    ) -> frozenset[int]:
        """Indices of the nodes meant by ``nodeName``, ``allNodes`` or ``nodeSelector``, in this order of precedence."""
        if name:
            index = self._by_name.get(name)
            return frozenset() if index is None else frozenset((index,))
        if everywhere:
            return self.everywhere
        if selector is None:
            return frozenset()
        key = repr(selector)
        if key not in self._by_selector:
            self._by_selector[key] = frozenset(
                index
                for index, node in enumerate(self._nodes)
                if selector_matches(selector, node)
            )
        return self._by_selector[key]

    def of_device(self, device: Device) -> frozenset[int]:
        """The nodes that a device with its own node selection is reachable from."""
        return self.selected(
            device.node_name, device.all_nodes, device.node_selector
        )

    def of_slice(self, slice_: ResourceSlice) -> frozenset[int]:
        """The nodes that a slice is meant for; with node selection per device, those of any of its devices."""
        spec = slice_.spec
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return self.selected(
                spec.node_name, spec.all_nodes, spec.node_selector
            )
        if spec.per_device_node_selection:
            return frozenset().union(
                *(self.of_device(device) for device in spec.devices)
            )
        return frozenset()


class SliceReach(NamedTuple):
    """Slices by pool, as indices into the cluster's slices.

    ``everywhere``: slices with counters. ``by_node``: for each node the other slices that are meant for it.
    """

    everywhere: Mapping[PoolID, list[int]]
    by_node: Sequence[Mapping[PoolID, list[int]]]


def find_reach(
    slices: Sequence[ResourceSlice], nodes: NodeSelections, features: Features
) -> SliceReach:
    """Sort the slices by the nodes that they matter to."""
    everywhere: dict[PoolID, list[int]] = defaultdict(list)
    by_node: list[dict[PoolID, list[int]]] = [{} for _ in nodes.everywhere]
    for index, slice_ in enumerate(slices):
        partitionable = (
            slice_.spec.per_device_node_selection or slice_.spec.shared_counters
        )
        if partitionable and not features.PartitionableDevices:
            continue
        if slice_.spec.shared_counters:
            everywhere[slice_.pool_id].append(index)
        else:
            for node in nodes.of_slice(slice_):
                by_node[node].setdefault(slice_.pool_id, []).append(index)
    return SliceReach(everywhere, by_node)


# ----------------------------------------------------------------------------
# What slices publish, column by column: those of lists that are made from one
# template are read once.

T = TypeVar("T")
R = TypeVar("R")
_NO_MAPPING = NodeAllocatableMapping()
_NO_OVERHEAD = NodeAllocatableOverhead()


@record
class SliceColumns:
    """Devices of a slice, or of the first slice with that template, and what they have beside attributes and nodes.

    ``consumers``: the lists of consumed counters, each once. ``conditional``: whether any device has binding
    conditions, be it an empty list.
    """

    devices: Sequence[Device]
    names: Sequence[str]
    consumed: Sequence[Sequence[DeviceCounterConsumption]]
    consumers: Mapping[int, Device]
    shareable: Sequence[bool]
    capacity: Sequence[Mapping[str, Capacity]]
    binds_to_node: Sequence[bool]
    footprint: Sequence[tuple[NodeFootprint, ...]]
    conditional: bool


@dataclass(slots=True)
class ColumnReader:
    """Reads slices. Equal capacities, lists of counters and so on are one object after loading; it keeps that."""

    slices: Sequence[ResourceSlice]
    _columns: dict[int, SliceColumns] = field(default_factory=dict)
    _capacities: dict[int, Mapping[str, Capacity]] = field(default_factory=dict)
    _footprints: dict[int, tuple[NodeFootprint, ...]] = field(
        default_factory=dict
    )

    def of(self, index: int) -> SliceColumns:
        """The columns of the devices of a slice."""
        devices = self.slices[index].spec.devices
        key = id(common(devices))
        if key not in self._columns:
            self._columns[key] = self._read(devices)
        return self._columns[key]

    def _read(self, devices: Sequence[Device]) -> SliceColumns:
        return SliceColumns(
            devices,
            [device.name for device in devices],
            [device.consumes_counters for device in devices],
            {id(device.consumes_counters): device for device in devices},
            [device.allow_multiple_allocations for device in devices],
            [
                _once(self._capacities, device.capacity, _capacities)
                for device in devices
            ],
            [device.binds_to_node for device in devices],
            [
                _once(
                    self._footprints,
                    device.node_allocatable_resources,
                    _footprints,
                )
                for device in devices
            ],
            any(device.binding_conditions is not None for device in devices),
        )


def _once(results: dict[int, R], source: T, read: Callable[[T], R]) -> R:
    """Read a value of an object, or return it if it was read before."""
    if id(source) not in results:
        results[id(source)] = read(source)
    return results[id(source)]


def _capacities(
    capacity: Mapping[str, DeviceCapacity],
) -> Mapping[str, Capacity]:
    return {
        name: Capacity(name, entry.value.nanos, entry.consumable)
        for name, entry in capacity.items()
    }


def _footprints(
    resources: Mapping[str, NodeAllocatableResource],
) -> tuple[NodeFootprint, ...]:
    """Return the amounts that a device takes of the node where it is used, by resource (KEP-5517)."""
    return tuple(
        _footprint(name, resource) for name, resource in resources.items()
    )


def _footprint(name: str, resource: NodeAllocatableResource) -> NodeFootprint:
    mapping, overhead = (
        resource.mapping or _NO_MAPPING,
        resource.overhead or _NO_OVERHEAD,
    )
    key = mapping.capacity_key or ""
    multiplier = (
        _nanos(mapping.capacity_multiplier, NANOS)
        if key
        else _nanos(mapping.device_multiplier)
    )
    return NodeFootprint(
        name,
        key,
        multiplier,
        _nanos(overhead.per_pod),
        _nanos(overhead.per_container),
    )


def _nanos(amount: Quantity | None, absent: int = 0) -> int:
    return absent if amount is None else amount.nanos


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool as one node sees it.

    Parameters
    ----------
    state
        Whether devices can be taken from it.
    offered
        Indices of the slices whose devices the node can search, by slice name.
    considered
        Indices of all slices that the pool consists of for this node; other nodes' devices may use its counters.
    reason
        Why it is invalid; empty otherwise.
    """

    state: PoolState
    offered: tuple[int, ...] = ()
    considered: tuple[int, ...] = ()
    reason: str = ""


class PoolViews:
    """Judges pools from the slices that matter to one node, which are given by index."""

    def __init__(self, reader: ColumnReader, features: Features) -> None:
        self.slices = reader.slices
        self.features = features
        self.reader = reader
        self._sound: dict[tuple[int, ...], set[int]] = {}
        self._known: dict[Hashable, str] = {}

    def view(
        self, pool: Sequence[int], relevant: Sequence[int]
    ) -> PoolView | None:
        """Return the view that one node has of a pool.

        Parameters
        ----------
        pool
            Every slice of the pool, whatever its generation and node.
        relevant
            The slices of the pool that matter to the node; at least one.

        Returns
        -------
        PoolView or None
            None if a newer generation elsewhere makes obsolete what this node sees.
        """
        # Upstream judges by what the node sees first, and looks at the rest of the pool
        # only if slices are missing there.
        generation = max(
            self.slices[index].spec.pool.generation for index in relevant
        )
        newest = [
            index
            for index in relevant
            if self.slices[index].spec.pool.generation == generation
        ]
        expected = self.slices[newest[0]].spec.pool.resource_slice_count
        considered = newest
        if len(newest) != expected:
            # Slices for other nodes may be missing from view; only the whole pool tells.
            if any(
                self.slices[index].spec.pool.generation > generation
                for index in pool
            ):
                return None
            considered = [
                index
                for index in pool
                if self.slices[index].spec.pool.generation == generation
            ]
            if len(considered) != expected:
                return PoolView(PoolState.INCOMPLETE)
        partitionable = self.features.PartitionableDevices
        offered = [
            index
            for index in newest
            if not (partitionable and self.slices[index].spec.shared_counters)
        ]
        key = self._said(newest), self._said(considered)
        if key not in self._known:
            self._known[key] = self._defect(newest, offered, considered)
        if reason := self._known[key]:
            return PoolView(PoolState.INVALID, reason=reason)

        def by_name(index: int) -> str:
            return self.slices[index].metadata.name

        return PoolView(
            PoolState.USABLE,
            tuple(sorted(offered, key=by_name)),
            tuple(sorted(considered, key=by_name)),
        )

    def _said(self, indices: Sequence[int]) -> Hashable:
        """Return the contents of slices as a key, beside what is special to lists of one template."""
        return tuple(
            [
                (
                    id(self.reader.of(index)),
                    id(self.slices[index].spec.shared_counters),
                )
                for index in indices
            ]
        )

    def _defect(
        self,
        newest: Sequence[int],
        offered: Sequence[int],
        considered: Sequence[int],
    ) -> str:
        """Return why the pool is invalid, or the empty string."""
        names = [
            name for index in offered for name in self.reader.of(index).names
        ]
        if (duplicate := _first_duplicate(names)) is not None:
            return f"duplicate device name {duplicate}"
        if not self.features.PartitionableDevices:
            return ""
        sets = [
            counters
            for index in newest
            for counters in self.slices[index].spec.shared_counters
        ]
        if (
            duplicate := _first_duplicate([counters.name for counters in sets])
        ) is not None:
            return f"duplicate counter set name {duplicate}"
        # Equal counter sets and equal consumptions are one object after loading, and are looked at once. Where each
        # node sees a slice of its own in one large pool, nearly all is known from the node before.
        sound = self._sound.setdefault(tuple(map(id, sets)), set())
        published = {counters.name: counters for counters in sets}
        unknown = {
            key: device
            for index in dict.fromkeys((*newest, *considered))
            for key, device in self.reader.of(index).consumers.items()
            if key not in sound
        }
        defect = _consumption_defect(unknown.values(), published)
        if not defect:
            sound.update(unknown)
        return defect


def _consumption_defect(
    devices: Iterable[Device], published: Mapping[str, CounterSet]
) -> str:
    """Return the first counter consumption that refers to nothing, or the empty string.

    Parameters
    ----------
    published
        Counter sets by name.
    """
    for device in devices:
        for consumption in device.consumes_counters:
            counters = published.get(consumption.counter_set)
            if counters is None:
                return f"counter set {consumption.counter_set} not found"
            for name in consumption.counters:
                if name not in counters.counters:
                    return f"counter {name} not found in counter set {consumption.counter_set}"
    return ""


def _first_duplicate(names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    # The set is built much faster than it is filled name by name.
    for name in names if len(set(names)) < len(names) else ():
        if name in seen:
            return name
        seen.add(name)
    return None
