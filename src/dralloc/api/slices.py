"""ResourceSlice: the devices that a driver publishes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import StrictBool

from dralloc.api.base import EMPTY, Int64, WireData, WireModel
from dralloc.api.capacity import CounterSet, DeviceCapacity, DeviceCounterConsumption
from dralloc.api.disclosure import (
    AttributeName,
    CounterName,
    DeviceName,
    DriverName,
    Effect,
    Name,
    NodeName,
    PoolName,
    Refined,
    ResourceName,
    SkippedOperation,
    TaintKey,
    TaintValue,
    Time,
)
from dralloc.api.meta import ObjectMeta
from dralloc.api.node_allocatable import NodeAllocatableResource
from dralloc.api.nodes import NodeSelector
from dralloc.api.objects import ResourceObject
from dralloc.api.values import AttributeField
from dralloc.names import PoolID

__all__ = ["Device", "DeviceTaint", "ResourcePool", "ResourceSlice", "ResourceSliceSpec"]


@dataclass(frozen=True, slots=True)
class DeviceTaint(WireData):
    """A mark that keeps claims away which do not tolerate it. An unknown effect counts like ``None``."""

    key: TaintKey
    effect: Effect
    value: TaintValue = ""
    time_added: Time | None = None


@dataclass(frozen=True, slots=True)
class Device(WireData):
    """One device of a pool.

    ``binding_conditions`` is None when absent: an empty list counts as set (it moves the pool to the end).
    """

    name: DeviceName
    attributes: Mapping[AttributeName, AttributeField] = field(default_factory=dict)
    capacity: Mapping[AttributeName, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: NodeName | None = None
    node_selector: NodeSelector | None = None
    all_nodes: StrictBool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: StrictBool = False
    binding_conditions: tuple[CounterName, ...] | None = None
    binding_failure_conditions: tuple[CounterName, ...] | None = None
    allow_multiple_allocations: StrictBool = False
    node_allocatable_resources: Mapping[ResourceName, NodeAllocatableResource] = EMPTY


class ResourcePool(WireModel):
    """The pool that a slice belongs to, its generation, and of how many slices it consists."""

    name: PoolName
    generation: Int64 = 0
    resource_slice_count: Int64


class ResourceSliceSpec(WireModel):
    """What a driver publishes in one slice, and on which nodes it is available."""

    driver: DriverName
    pool: ResourcePool
    node_name: NodeName | None = None
    node_selector: NodeSelector | None = None
    all_nodes: StrictBool | None = None
    per_device_node_selection: StrictBool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: AttributeName | None = None
    skip_node_operations: tuple[SkippedOperation, ...] = ()


class ResourceSlice(ResourceObject):
    """Devices, or counters that devices share, in a pool of one driver."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.SLICE)] = ObjectMeta()
    spec: ResourceSliceSpec

    @property
    def pool_id(self) -> PoolID:
        """The pool that the slice belongs to."""
        return PoolID(self.spec.driver, self.spec.pool.name)
