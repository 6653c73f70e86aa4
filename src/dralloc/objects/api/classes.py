"""DeviceClass, and what it shares with claims: selectors and configuration."""

from typing import Annotated

from dralloc.objects.api.base import WireModel
from dralloc.objects.api.disclosure import (
    CelExpression,
    DriverName,
    Emptied,
    Public,
    Refined,
    ResourceName,
)
from dralloc.objects.api.objects import ObjectMeta, ResourceObject

__all__ = [
    "CELDeviceSelector",
    "DeviceClass",
    "DeviceClassConfiguration",
    "DeviceClassSpec",
    "DeviceSelector",
    "OpaqueDeviceConfiguration",
]


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
    """Which devices a class stands for and how they are configured."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: ResourceName | None = None


class DeviceClass(ResourceObject):
    """A kind of device that requests can name."""

    metadata: Annotated[ObjectMeta, Refined(name=Public.CLASS)] = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()
