"""Devices with compatibility groups (KEP-5963), which are left alone.

Devices that draw on one counter set at the same time would have to share a group. That is not decided here yet: it
counts as a gate that is off (``DRADeviceCompatibilityGroups``, alpha in Kubernetes 1.37). Upstream then skips a device
that declares groups, and one that draws on a counter set on which an allocated device declares groups, so that nothing
incompatible is ever in use together. Source: upstream's ``compatibility_groups.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from dralloc.api import Device, ResourceSlice
from dralloc.names import DeviceID

__all__ = ["Groups"]


@dataclass(frozen=True)
class Groups:
    """The groups in a pool: whether there are any, and the counter sets on which an allocated device declares some."""

    any: bool
    taken: frozenset[str]

    @classmethod
    def of(cls, slices: Iterable[ResourceSlice], allocated: Set[DeviceID]) -> Groups:
        """Collect them from the slices that a pool consists of."""
        grouped = [
            (DeviceID(*one.pool_id, device.name), consumption.counter_set)
            for one in slices
            for device in one.spec.devices
            for consumption in device.consumes_counters
            if consumption.compatibility_groups
        ]
        return cls(bool(grouped), frozenset(counter_set for device, counter_set in grouped if device in allocated))

    def concern(self, device: Device) -> bool:
        """Whether the device must be left alone because of groups."""
        return self.any and any(
            one.compatibility_groups or one.counter_set in self.taken for one in device.consumes_counters
        )
