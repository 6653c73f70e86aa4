"""ResourceClaim and ResourceClaimTemplate: what users ask for, and what was allocated to them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
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
    PartialModel,
    QuantityField,
    ResourceObject,
    WireModel,
    changed,
)
from dralloc.objects.api.disclosure import (
    EXTENDED_RESOURCE_ANNOTATION,
    AttributeName,
    CelExpression,
    ClassName,
    CounterName,
    DeviceName,
    DriverName,
    Dropped,
    Effect,
    Name,
    PodName,
    PoolName,
    Refined,
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
from dralloc.objects.api.slices import (
    CapacityRequirements,
    DeviceSelector,
    OpaqueDeviceConfiguration,
)
from dralloc.objects.names import DeviceID

__all__ = [
    "AllocatedDeviceStatus",
    "AllocationResult",
    "DeviceAllocationConfiguration",
    "DeviceAllocationResult",
    "DeviceClaim",
    "DeviceClaimConfiguration",
    "DeviceConstraint",
    "DeviceDerivedAttribute",
    "DeviceRequest",
    "DeviceRequestAllocationResult",
    "DeviceSubRequest",
    "DeviceToleration",
    "ExactDeviceRequest",
    "ResourceClaim",
    "ResourceClaimConsumerReference",
    "ResourceClaimSpec",
    "ResourceClaimStatus",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
]

# ----------------------------------------------------------------------------
# The status of a claim: what was allocated to it, and for whom it is reserved.


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
    """The devices of a claim, and the nodes where they can be used: all of them without a selector."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None

    def wire_form(self) -> dict[str, Any]:
        """Return it as the API server shows it."""
        return {
            "devices": {},
            **self.model_dump(
                mode="json", by_alias=True, exclude_defaults=True
            ),
        }


class ResourceClaimConsumerReference(WireModel):
    """An object, mostly a pod, that may use the claim."""

    api_group: Annotated[StrictStr, Terms("scheduling.k8s.io")] = ""
    resource: Annotated[StrictStr, Terms("pods", "podgroups")]
    name: PodName
    uid: Uid = ""


class _ReportedCondition(PartialModel):
    """The types of a device's condition (Condition of ``meta/v1``); its content is checked where it matters."""

    type: StrictStr = ""
    status: StrictStr = ""
    observed_generation: Int64 = 0
    last_transition_time: Time | None = None
    reason: StrictStr = ""
    message: StrictStr = ""


class _ReportedNetwork(PartialModel):
    """The types of a device's network data."""

    interface_name: StrictStr = ""
    ips: tuple[StrictStr, ...] = ()
    hardware_address: StrictStr = ""


def _kept(value: Any, handler: Callable[[Any], Any]) -> Any:
    """Return the value as it was written, if it has the types of its model."""
    handler(value)
    return value


def _written_as(model: type[PartialModel]) -> GetPydanticSchema:
    return GetPydanticSchema(
        lambda _source, handler: core_schema.no_info_wrap_validator_function(
            _kept,
            handler.generate_schema(model),
            serialization=core_schema.plain_serializer_function_ser_schema(
                dict
            ),
        )
    )


_Condition = Annotated[
    Mapping[str, Any],
    _written_as(_ReportedCondition),
    WireForm(_ReportedCondition),
]
_Network = Annotated[
    Mapping[str, Any], _written_as(_ReportedNetwork), WireForm(_ReportedNetwork)
]


class AllocatedDeviceStatus(WireModel):
    """The report of a driver about an allocated device; the parts that nobody here reads are kept as they are."""

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


# ----------------------------------------------------------------------------
# ResourceClaim and ResourceClaimTemplate: what users ask for.


class DeviceDerivedAttribute(WireModel):
    """An attribute that an expression computes for each candidate, for use in constraints."""

    name: AttributeName
    expression: CelExpression


_Mode = Annotated[StrictStr, Terms("ExactCount", "All")]


class _RequestDetails(WireModel):
    device_class_name: ClassName
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: Annotated[
        _Mode,
        BeforeValidator(lambda mode: "ExactCount" if mode == "" else mode),
    ] = "ExactCount"
    count: Int64 = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _zero_is_no_count(cls, fields: Any) -> Any:
        zero = (
            isinstance(fields, dict)
            and fields.get("count") == 0
            and type(fields["count"]) is int
        )
        return (
            {key: value for key, value in fields.items() if key != "count"}
            if zero
            else fields
        )


class ExactDeviceRequest(_RequestDetails):
    """A request for `count` devices, or for all, of a class. The API's defaults are applied: one device."""

    admin_access: StrictBool = False


class DeviceSubRequest(_RequestDetails):
    """One alternative of a prioritized list (KEP-4816)."""

    name: RequestId


class DeviceRequest(WireModel):
    """A named request: either exactly what it says, or the first alternative that is available."""

    name: RequestId
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if self.exactly is not None and self.first_available:
            raise PydanticCustomError(
                "one_of",
                "has both exactly and firstAvailable, only one is allowed",
            )
        if self.exactly is None and not self.first_available:
            raise PydanticCustomError(
                "one_of", "needs exactly or firstAvailable"
            )
        return self

    @property
    def alternatives(
        self,
    ) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
        """Yield its alternatives, each with the name that allocations have for it: ``request`` or ``request/sub``."""
        if self.exactly is not None:
            yield self.name, self.exactly
        for subrequest in self.first_available:
            yield f"{self.name}/{subrequest.name}", subrequest


class DeviceConstraint(WireModel):
    """A condition on the devices of several requests together; on all requests when none is named."""

    requests: tuple[RequestId, ...] = ()
    match_attribute: AttributeName | None = None
    distinct_attribute: AttributeName | None = None


class DeviceClaimConfiguration(WireModel):
    """Configuration for the devices of some requests; of all when none is named."""

    requests: tuple[RequestId, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(WireModel):
    """Requests, the constraints among them, and configuration."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()

    @property
    def alternatives(
        self,
    ) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
        """The alternatives of all requests, by name."""
        return (
            alternative
            for request in self.requests
            for alternative in request.alternatives
        )


class ResourceClaimSpec(WireModel):
    """The devices that are claimed."""

    devices: DeviceClaim = DeviceClaim()


class ResourceClaim(ResourceObject, namespaced=True):
    """A request for devices, and what was allocated for it."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.CLAIM)] = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def is_allocated(self) -> bool:
        """Whether it has devices."""
        return self.status.allocation is not None

    @property
    def is_extended(self) -> bool:
        """Whether it stands for the extended resources that a pod asks for (KEP-5004)."""
        return (
            self.metadata.annotations.get(EXTENDED_RESOURCE_ANNOTATION)
            == "true"
        )

    @property
    def results(self) -> tuple[DeviceRequestAllocationResult, ...]:
        """The devices that it has."""
        return (
            ()
            if self.status.allocation is None
            else self.status.allocation.devices.results
        )

    def unallocated(self) -> Self:
        """Return the claim without its devices."""
        return changed(self, status=changed(self.status, allocation=None))


class ResourceClaimTemplateSpec(WireModel):
    """The claim that each pod gets; labels and annotations are copied to it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ResourceObject, namespaced=True):
    """A claim to be made for every pod that names it."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.TEMPLATE)] = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
