"""ResourceClaim and ResourceClaimTemplate: what users ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, StrictBool, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from dralloc.objects.api.allocation import (
    DeviceRequestAllocationResult,
    DeviceToleration,
    ResourceClaimStatus,
)
from dralloc.objects.api.base import Int64, WireModel
from dralloc.objects.api.capacity import CapacityRequirements
from dralloc.objects.api.classes import DeviceSelector, OpaqueDeviceConfiguration
from dralloc.objects.api.disclosure import (
    EXTENDED_RESOURCE_ANNOTATION,
    AttributeName,
    CelExpression,
    ClassName,
    Name,
    Refined,
    RequestId,
    Terms,
)
from dralloc.objects.api.objects import ObjectMeta, ResourceObject, changed

__all__ = [
    "DeviceClaim",
    "DeviceClaimConfiguration",
    "DeviceConstraint",
    "DeviceDerivedAttribute",
    "DeviceRequest",
    "DeviceSubRequest",
    "ExactDeviceRequest",
    "ResourceClaim",
    "ResourceClaimSpec",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
]


class DeviceDerivedAttribute(WireModel):
    """An attribute that an expression computes for each candidate, for use in constraints."""

    name: AttributeName
    expression: CelExpression


_Mode = Annotated[StrictStr, Terms("ExactCount", "All")]


class _RequestDetails(WireModel):
    device_class_name: ClassName
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: Annotated[
        _Mode, BeforeValidator(lambda mode: "ExactCount" if mode == "" else mode)
    ] = "ExactCount"
    count: Int64 = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _zero_is_no_count(cls, given: Any) -> Any:
        zero = (
            isinstance(given, dict)
            and given.get("count") == 0
            and type(given["count"]) is int
        )
        return (
            {key: value for key, value in given.items() if key != "count"}
            if zero
            else given
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
                "one_of", "has both exactly and firstAvailable, only one is allowed"
            )
        if self.exactly is None and not self.first_available:
            raise PydanticCustomError("one_of", "needs exactly or firstAvailable")
        return self

    @property
    def alternatives(
        self,
    ) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
        """What it can be served by, with the name that allocations have for it: ``request`` or ``request/sub``."""
        if self.exactly is not None:
            yield self.name, self.exactly
        for one in self.first_available:
            yield f"{self.name}/{one.name}", one


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
        return (one for request in self.requests for one in request.alternatives)


class ResourceClaimSpec(WireModel):
    """What is claimed."""

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
        return self.metadata.annotations.get(EXTENDED_RESOURCE_ANNOTATION) == "true"

    @property
    def results(self) -> tuple[DeviceRequestAllocationResult, ...]:
        """The devices that it has."""
        return (
            ()
            if self.status.allocation is None
            else self.status.allocation.devices.results
        )

    def unallocated(self) -> ResourceClaim:
        """The claim without its devices."""
        return changed(self, status=changed(self.status, allocation=None))


class ResourceClaimTemplateSpec(WireModel):
    """The claim that each pod gets; labels and annotations are copied to it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ResourceObject, namespaced=True):
    """A claim to be made for every pod that names it."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.TEMPLATE)] = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
