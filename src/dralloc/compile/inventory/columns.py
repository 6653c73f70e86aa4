"""What slices publish, column by column: those of lists that are made from one template are read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from dralloc.objects.api import (
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    ResourceSlice,
)
from dralloc.objects.api.device_template import common
from dralloc.objects.quantity import NANOS, Quantity
from dralloc.problem import Capacity, NodeFootprint
from dralloc.problem.record import record

__all__ = ["ColumnReader", "SliceColumns"]

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
    _footprints: dict[int, tuple[NodeFootprint, ...]] = field(default_factory=dict)

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
                _once(self._footprints, device.node_allocatable_resources, _footprints)
                for device in devices
            ],
            any(device.binding_conditions is not None for device in devices),
        )


def _once(known: dict[int, R], one: T, read: Callable[[T], R]) -> R:
    """What is read of an object, which is read once."""
    if id(one) not in known:
        known[id(one)] = read(one)
    return known[id(one)]


def _capacities(capacity: Mapping[str, DeviceCapacity]) -> Mapping[str, Capacity]:
    return {
        name: Capacity(name, one.value.nanos, one.consumable)
        for name, one in capacity.items()
    }


def _footprints(
    resources: Mapping[str, NodeAllocatableResource],
) -> tuple[NodeFootprint, ...]:
    """What a device takes of each resource of the node where it is used (KEP-5517)."""
    return tuple(_footprint(name, one) for name, one in resources.items())


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
        name, key, multiplier, _nanos(overhead.per_pod), _nanos(overhead.per_container)
    )


def _nanos(amount: Quantity | None, absent: int = 0) -> int:
    return absent if amount is None else amount.nanos
