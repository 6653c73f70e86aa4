"""DeviceClass, and what it shares with claims: selectors and configuration."""

from typing import Any, ClassVar

from pydantic import StrictStr

from dralloc.api.base import WireModel
from dralloc.api.objects import ResourceObject

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

    expression: StrictStr


class DeviceSelector(WireModel):
    """A condition on a device; CEL is the only kind there is.

    ``cel`` is None for a kind that is not known here. Nothing can be allocated with such a selector.
    """

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(WireModel):
    """Parameters that only the driver understands, kept as they are."""

    driver: StrictStr
    parameters: Any


class DeviceClassConfiguration(WireModel):
    """Configuration that applies to every device claimed through a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(WireModel):
    """Which devices a class stands for and how they are configured."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: StrictStr | None = None


class DeviceClass(ResourceObject):
    """A kind of device that requests can name."""

    api_version: ClassVar[str] = "resource.k8s.io/v1"
    kind: ClassVar[str] = "DeviceClass"

    spec: DeviceClassSpec = DeviceClassSpec()
