"""ResourceSlice: the devices that a driver publishes; DeviceTaintRule: taints that are put on them (KEP-5055)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import StrictBool

from dralloc.objects.api.base import EMPTY, Int64, WireData, WireModel
from dralloc.objects.api.capacity import (
    CounterSet,
    DeviceCapacity,
    DeviceCounterConsumption,
)
from dralloc.objects.api.classes import DeviceSelector
from dralloc.objects.api.disclosure import (
    AttributeName,
    ClassName,
    CounterName,
    DeviceName,
    DriverName,
    Effect,
    Name,
    NodeName,
    PoolName,
    Refined,
    Removed,
    ResourceName,
    SkippedOperation,
    TaintKey,
    TaintValue,
    Time,
)
from dralloc.objects.api.node_allocatable import NodeAllocatableResource
from dralloc.objects.api.nodes import NodeSelector
from dralloc.objects.api.objects import ObjectMeta, ResourceObject
from dralloc.objects.api.values import AttributeField, AttributeValue
from dralloc.objects.names import PoolID

__all__ = [
    "Device",
    "DeviceTaint",
    "DeviceTaintRule",
    "DeviceTaintRuleSpec",
    "DeviceTaintRuleStatus",
    "DeviceTaintSelector",
    "ResourcePool",
    "ResourceSlice",
    "ResourceSliceSpec",
]


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

    def attribute(self, name: str, driver: str) -> AttributeValue | None:
        """An attribute; the domain of the device's driver may be left out on either side (KEP-4381)."""
        value = self.attributes.get(name)
        if value is None:
            domain, _, bare = name.rpartition("/")
            if domain in ("", driver):
                value = self.attributes.get(bare if domain else f"{driver}/{name}")
        return value


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


class DeviceTaintSelector(WireModel):
    """Devices that meet every condition that is there; without any condition, all devices.

    ``device_class_name`` and ``selectors`` exist in Kubernetes 1.33 and 1.34 only.
    """

    device_class_name: ClassName | None = None
    driver: DriverName | None = None
    pool: PoolName | None = None
    device: DeviceName | None = None
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceTaintRuleSpec(WireModel):
    """Which devices get which taint. Without a selector no device gets it."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint


class DeviceTaintRuleStatus(WireModel):
    """How far evicting pods has come, as it was written."""

    conditions: tuple[Mapping[str, Any], ...] = ()


class DeviceTaintRule(ResourceObject):
    """A taint for all devices that a selector selects."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.RULE)] = ObjectMeta()
    spec: DeviceTaintRuleSpec
    status: Annotated[DeviceTaintRuleStatus, Removed.WHOLE] = DeviceTaintRuleStatus()
