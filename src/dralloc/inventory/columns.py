"""What slices publish, column by column: those of lists that are made from one template are read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dralloc.api import Device, DeviceCounterConsumption, NodeAllocatableResource
from dralloc.api.device_template import common
from dralloc.inventory.footprint import footprints
from dralloc.problem import Capacity, NodeFootprint
from dralloc.record import record

__all__ = ["ColumnReader", "SliceColumns"]


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
    """Reads devices. Equal capacities, lists of counters and so on are one object after loading; it keeps that."""

    _columns: dict[int, SliceColumns] = field(default_factory=dict)
    _capacities: dict[int, Mapping[str, Capacity]] = field(default_factory=dict)
    _footprints: dict[int, tuple[NodeFootprint, ...]] = field(default_factory=dict)

    def of(self, devices: Sequence[Device]) -> SliceColumns:
        """The columns of the devices of a slice."""
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
            [self._capacity(device) for device in devices],
            [device.binds_to_node for device in devices],
            [self._footprint(device.node_allocatable_resources) for device in devices],
            any(device.binding_conditions is not None for device in devices),
        )

    def _capacity(self, device: Device) -> Mapping[str, Capacity]:
        key = id(device.capacity)
        if key not in self._capacities:
            self._capacities[key] = {
                name: Capacity(name, capacity.value.nanos, capacity.consumable)
                for name, capacity in device.capacity.items()
            }
        return self._capacities[key]

    def _footprint(self, resources: Mapping[str, NodeAllocatableResource]) -> tuple[NodeFootprint, ...]:
        key = id(resources)
        if key not in self._footprints:
            self._footprints[key] = tuple(footprints(resources))
        return self._footprints[key]
