"""The status of a claim: what was allocated to it, and for whom it is reserved."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, GetPydanticSchema, StrictBool, StrictStr
from pydantic_core import core_schema

from dralloc.objects.api.base import (
    EMPTY,
    Int64,
    PartialModel,
    QuantityField,
    WireModel,
)
from dralloc.objects.api.classes import OpaqueDeviceConfiguration
from dralloc.objects.api.disclosure import (
    AttributeName,
    CounterName,
    DeviceName,
    DriverName,
    Dropped,
    Effect,
    PodName,
    PoolName,
    Removed,
    RequestId,
    SkippedOperation,
    TaintKey,
    TaintValue,
    Terms,
    Time,
    Uid,
    WireForm,
)
from dralloc.objects.api.nodes import NodeSelector
from dralloc.objects.names import DeviceID

__all__ = [
    "AllocatedDeviceStatus",
    "AllocationResult",
    "DeviceAllocationConfiguration",
    "DeviceAllocationResult",
    "DeviceRequestAllocationResult",
    "DeviceToleration",
    "ResourceClaimConsumerReference",
    "ResourceClaimStatus",
]


class DeviceToleration(WireModel):
    """Taints that a request accepts. An empty key with ``Exists`` accepts all, an empty effect every effect.

    An empty operator means ``Equal``; it is kept, as results repeat tolerations as they were written.
    """

    key: TaintKey = ""
    operator: Literal["", "Equal", "Exists"] = ""
    value: TaintValue = ""
    effect: Effect = ""
    toleration_seconds: Int64 | None = None


class DeviceRequestAllocationResult(WireModel):
    """One device, or one share of it, that was allocated for a request."""

    request: RequestId
    driver: DriverName
    pool: PoolName
    device: DeviceName
    admin_access: StrictBool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[CounterName, ...] = ()
    binding_failure_conditions: tuple[CounterName, ...] = ()
    share_id: Annotated[Uid | None, Field(alias="shareID")] = None
    consumed_capacity: Mapping[AttributeName, QuantityField] = EMPTY
    skip_node_operations: tuple[SkippedOperation, ...] = ()

    @property
    def device_id(self) -> DeviceID:
        """The device that was allocated."""
        return DeviceID(self.driver, self.pool, self.device)


class DeviceAllocationConfiguration(WireModel):
    """Configuration of allocated devices, with where it came from."""

    source: Literal["FromClass", "FromClaim"]
    requests: tuple[RequestId, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(WireModel):
    """Devices allocated to a claim, and their configuration."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(WireModel):
    """What a claim got, and the nodes where it can be used: all of them without a selector."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None

    def wire_form(self) -> dict[str, Any]:
        """As the API server shows it."""
        return {
            "devices": {},
            **self.model_dump(mode="json", by_alias=True, exclude_defaults=True),
        }


class ResourceClaimConsumerReference(WireModel):
    """An object, mostly a pod, that may use the claim."""

    api_group: Annotated[StrictStr, Terms("scheduling.k8s.io")] = ""
    resource: Annotated[StrictStr, Terms("pods", "podgroups")]
    name: PodName
    uid: Uid = ""


class _ReportedCondition(PartialModel):
    """Which types a condition of a device has (Condition of ``meta/v1``); what it says is checked where it matters."""

    type: StrictStr = ""
    status: StrictStr = ""
    observed_generation: Int64 = 0
    last_transition_time: Time | None = None
    reason: StrictStr = ""
    message: StrictStr = ""


class _ReportedNetwork(PartialModel):
    """Which types the network data of a device have."""

    interface_name: StrictStr = ""
    ips: tuple[StrictStr, ...] = ()
    hardware_address: StrictStr = ""


def _kept(value: Any, handler: Callable[[Any], Any]) -> Any:
    """The value as it was written, if it has the types of its model."""
    handler(value)
    return value


def _written_as(model: type[PartialModel]) -> GetPydanticSchema:
    return GetPydanticSchema(
        lambda _source, handler: core_schema.no_info_wrap_validator_function(
            _kept,
            handler.generate_schema(model),
            serialization=core_schema.plain_serializer_function_ser_schema(dict),
        )
    )


_Condition = Annotated[
    Mapping[str, Any], _written_as(_ReportedCondition), WireForm(_ReportedCondition)
]
_Network = Annotated[
    Mapping[str, Any], _written_as(_ReportedNetwork), WireForm(_ReportedNetwork)
]


class AllocatedDeviceStatus(WireModel):
    """What a driver reports about an allocated device; the parts that nobody here reads are kept as they are."""

    driver: DriverName
    pool: PoolName
    device: DeviceName
    share_id: Annotated[Uid | None, Field(alias="shareID")] = None
    conditions: Annotated[tuple[_Condition, ...], Removed.WHOLE] = ()
    data: Dropped = None
    network_data: Annotated[_Network | None, Removed.WHOLE] = None


class ResourceClaimStatus(WireModel):
    """Whether a claim is allocated, with what, and who uses it."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()
