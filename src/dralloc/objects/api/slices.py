"""The supply: device classes, and slices with devices, their attributes, capacities, counters and taints."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    Field,
    GetPydanticSchema,
    StrictBool,
    StrictStr,
    model_validator,
)
from pydantic_core import PydanticCustomError, core_schema

from dralloc.objects.api.base import (
    EMPTY,
    Int64,
    ObjectMeta,
    QuantityField,
    ResourceObject,
    WireData,
    WireModel,
)
from dralloc.objects.api.disclosure import (
    AttributeName,
    CelExpression,
    ClassName,
    CounterName,
    DeviceName,
    DriverName,
    Effect,
    Emptied,
    Name,
    NodeName,
    PoolName,
    Public,
    Refined,
    Removed,
    ResourceName,
    SkippedOperation,
    TaintKey,
    TaintValue,
    Text,
    Time,
    WireForm,
)
from dralloc.objects.api.nodes import NodeAllocatableResource, NodeSelector
from dralloc.objects.names import PoolID
from dralloc.objects.quantity import Quantity
from kubecel import UNSET, AttributeValue, Unset, Version

__all__ = [
    "NOT_CONSUMABLE",
    "TYPE_NAMES",
    "UNSET",
    "AttributeField",
    "AttributeValue",
    "CELDeviceSelector",
    "CapacityRequestPolicy",
    "CapacityRequestPolicyRange",
    "CapacityRequirements",
    "ConsumedCounter",
    "Counter",
    "CounterSet",
    "CounterSource",
    "Device",
    "DeviceCapacity",
    "DeviceClass",
    "DeviceClassConfiguration",
    "DeviceClassSpec",
    "DeviceCounterConsumption",
    "DeviceSelector",
    "DeviceTaint",
    "DeviceTaintRule",
    "DeviceTaintRuleSpec",
    "DeviceTaintRuleStatus",
    "DeviceTaintSelector",
    "OpaqueDeviceConfiguration",
    "ResourcePool",
    "ResourceSlice",
    "ResourceSliceSpec",
    "Unset",
    "Version",
    "attribute_to_wire",
]

# ----------------------------------------------------------------------------
# Attribute values of devices as plain Python values.
#
# On the wire an attribute is an object with one field, ``{"string": "A100"}``. Here
# it is the value itself, which takes less room and compares directly: `bool`, `int`,
# `str`, `Version`, or a tuple of one of them for the list fields.

_Text = Annotated[StrictStr, Text.ATTRIBUTE]
_Version = Annotated[_Text, AfterValidator(Version)]


class _WireAttribute(WireModel):
    int: Int64 | None = None
    bool: StrictBool | None = None
    string: _Text | None = None
    version: _Version | None = None
    ints: tuple[Int64, ...] | None = None
    bools: tuple[StrictBool, ...] | None = None
    strings: tuple[_Text, ...] | None = None
    versions: tuple[_Version, ...] | None = None


def _from_wire(wire: _WireAttribute) -> AttributeValue:
    typed_values = {field: value for field, value in wire if value is not None}
    if len(typed_values) > 1:
        raise PydanticCustomError(
            "attribute", f"has more than one value: {', '.join(typed_values)}"
        )
    return next(iter(typed_values.values()), UNSET)


def attribute_to_wire(value: AttributeValue) -> dict[str, Any]:
    """Return the wire form of an attribute's value, e.g. ``{"int": 3}``."""
    if value is UNSET:
        return {}
    if isinstance(value, tuple):
        field = f"{TYPE_NAMES[type(value[0])]}s" if value else "strings"
        return {
            field: [
                str(item) if isinstance(item, str) else item for item in value
            ]
        }
    return {
        TYPE_NAMES[type(value)]: str(value) if isinstance(value, str) else value
    }


TYPE_NAMES: Final[Mapping[type, str]] = {
    bool: "bool",
    int: "int",
    Version: "version",
    str: "string",
}
"""What the API calls the types of attributes."""

AttributeField = Annotated[
    AttributeValue,
    WireForm(_WireAttribute),
    GetPydanticSchema(
        lambda _source, handler: core_schema.no_info_after_validator_function(
            _from_wire,
            handler.generate_schema(_WireAttribute),
            serialization=core_schema.plain_serializer_function_ser_schema(
                attribute_to_wire
            ),
        )
    ),
]
"""An attribute's value as a field of a model: reads and writes the wire form."""


# ----------------------------------------------------------------------------
# Capacities of devices and counters of pools (KEP-5075, KEP-4815, KEP-5941).
#
# A cluster has a million of these, so they are slotted dataclasses which pydantic
# validates.

_ZERO = Quantity(0)
"""What the API server keeps for an amount that is left out."""

NOT_CONSUMABLE = "~consumable"
"""Key by which the alpha spelling of KEP-5075 marks a capacity; no field of the API can be called so."""


@dataclass(frozen=True, slots=True)
class CapacityRequestPolicyRange(WireData):
    """Valid requests: ``min``, ``min + step``, and so on up to ``max``; any amount in between without a step."""

    min: QuantityField
    max: QuantityField | None = None
    step: QuantityField | None = None


@dataclass(frozen=True, slots=True)
class CapacityRequestPolicy(WireData):
    """The rule by which requests consume a capacity or a counter: the default, and which amounts are valid."""

    default: QuantityField | None = None
    valid_values: tuple[QuantityField, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


@dataclass(frozen=True, slots=True)
class DeviceCapacity(WireData):
    """An amount of something that a device has.

    Parameters
    ----------
    value
        The whole amount.
    request_policy
        How it is consumed when the device allows multiple allocations.
    consumable
        False only for the alpha spelling of KEP-5075, where a capacity without policy is never consumed and a request
        for it is a ``>=`` filter. It has no v1 wire form and is not written.
    """

    value: QuantityField = _ZERO
    request_policy: CapacityRequestPolicy | None = None
    consumable: Annotated[
        StrictBool, Field(alias=NOT_CONSUMABLE, exclude=True)
    ] = True


@dataclass(frozen=True, slots=True)
class Counter(WireData):
    """An amount of something that the devices of a pool share, and how requests consume it (KEP-5941)."""

    value: QuantityField = _ZERO
    request_policy: CapacityRequestPolicy | None = None


@dataclass(frozen=True, slots=True)
class CounterSet(WireData):
    """Counters under a common name that is unique in the pool."""

    name: CounterName
    counters: Mapping[CounterName, Counter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CounterSource(WireData):
    """The entry of a request's capacity that says how much of a counter is consumed (KEP-5941)."""

    capacity_key: AttributeName


@dataclass(frozen=True, slots=True)
class ConsumedCounter(WireData):
    """The amount of a counter that a device consumes: ``value`` always, ``value_from`` as requested (KEP-5941)."""

    value: QuantityField | None = None
    value_from: CounterSource | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        return (
            replace(self, value=_ZERO)
            if self.value is None and self.value_from is None
            else self
        )


@dataclass(frozen=True, slots=True)
class DeviceCounterConsumption(WireData):
    """The amounts that a device consumes of one counter set; groups that may be in use together (KEP-5963)."""

    counter_set: CounterName
    counters: Mapping[CounterName, ConsumedCounter] = field(
        default_factory=dict
    )
    compatibility_groups: tuple[CounterName, ...] = ()


class CapacityRequirements(WireModel):
    """The amount of each capacity that a request needs from every one of its devices."""

    requests: Mapping[AttributeName, QuantityField] = EMPTY


# ----------------------------------------------------------------------------
# DeviceClass, and what it shares with claims: selectors and configuration.


class CELDeviceSelector(WireModel):
    """An expression over one device that must be true."""

    expression: CelExpression


class DeviceSelector(WireModel):
    """A condition on a device; CEL is the only kind there is.

    ``cel`` is None for a kind that is not known here. Nothing can be allocated with such a selector.
    """

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(WireModel):
    """Parameters that only the driver understands, kept as they are."""

    driver: DriverName
    parameters: Emptied


class DeviceClassConfiguration(WireModel):
    """Configuration that applies to every device claimed through a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(WireModel):
    """The devices that a class stands for, and their configuration."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: ResourceName | None = None


class DeviceClass(ResourceObject):
    """A kind of device that requests can name."""

    metadata: Annotated[ObjectMeta, Refined(name=Public.CLASS)] = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


# ----------------------------------------------------------------------------
# ResourceSlice: the devices that a driver publishes; DeviceTaintRule: taints that are
# put on them (KEP-5055).


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
    attributes: Mapping[AttributeName, AttributeField] = field(
        default_factory=dict
    )
    capacity: Mapping[AttributeName, DeviceCapacity] = field(
        default_factory=dict
    )
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: NodeName | None = None
    node_selector: NodeSelector | None = None
    all_nodes: StrictBool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: StrictBool = False
    binding_conditions: tuple[CounterName, ...] | None = None
    binding_failure_conditions: tuple[CounterName, ...] | None = None
    allow_multiple_allocations: StrictBool = False
    node_allocatable_resources: Mapping[
        ResourceName, NodeAllocatableResource
    ] = EMPTY

    def attribute(self, name: str, driver: str) -> AttributeValue | None:
        """Return an attribute; the domain of the device's driver may be left out on either side (KEP-4381)."""
        value = self.attributes.get(name)
        if value is None:
            domain, _, bare = name.rpartition("/")
            if domain in ("", driver):
                value = self.attributes.get(
                    bare if domain else f"{driver}/{name}"
                )
        return value


class ResourcePool(WireModel):
    """The pool that a slice belongs to, its generation, and of how many slices it consists."""

    name: PoolName
    generation: Int64 = 0
    resource_slice_count: Int64


class ResourceSliceSpec(WireModel):
    """The devices or counters that a driver publishes in one slice, and the nodes where they are available."""

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
    """The devices that get a taint. Without a selector no device gets it."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint


class DeviceTaintRuleStatus(WireModel):
    """The progress of evicting pods, as it was written."""

    conditions: tuple[Mapping[str, Any], ...] = ()


class DeviceTaintRule(ResourceObject):
    """A taint for all devices that a selector selects."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.RULE)] = ObjectMeta()
    spec: DeviceTaintRuleSpec
    status: Annotated[DeviceTaintRuleStatus, Removed.WHOLE] = (
        DeviceTaintRuleStatus()
    )
