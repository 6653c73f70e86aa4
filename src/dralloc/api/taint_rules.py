"""DeviceTaintRule: a taint that an administrator puts on devices (KEP-5055)."""

from collections.abc import Mapping
from typing import Annotated, Any

from dralloc.api.base import WireModel
from dralloc.api.classes import DeviceSelector
from dralloc.api.disclosure import ClassName, DeviceName, DriverName, Name, PoolName, Refined, Removed
from dralloc.api.meta import ObjectMeta
from dralloc.api.objects import ResourceObject
from dralloc.api.slices import DeviceTaint

__all__ = ["DeviceTaintRule", "DeviceTaintRuleSpec", "DeviceTaintRuleStatus", "DeviceTaintSelector"]


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
