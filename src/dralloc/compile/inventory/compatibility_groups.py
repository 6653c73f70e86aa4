"""Compatibility groups (KEP-5963): what may be in use together on one counter set.

A device can declare groups for each counter set that it consumes counters of. Whatever is in use on a counter set must
have a group in common; devices that declare none are compatible among themselves and with nobody else. Allocated
devices count with the groups that the slices say now.

With the gate ``DRADeviceCompatibilityGroups`` off (it is alpha in Kubernetes 1.37), upstream skips a device that
declares groups, and one that consumes counters of a set on which an allocated device declares groups, so that nothing
incompatible is ever in use together. Source of both: upstream's ``compatibility_groups.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Final

from dralloc.objects.api import Device as ApiDevice
from dralloc.objects.api import ResourceSlice
from dralloc.objects.names import DeviceID
from dralloc.problem import NO_GROUPS, Device

__all__ = [
    "LEFT_ALONE",
    "Skipped",
    "declares_groups",
    "grouped_sets",
    "groups_of",
    "set_name",
]

LEFT_ALONE: Final = "DRADeviceCompatibilityGroups is off: devices with compatibility groups are not allocated"
"""The remark about devices that nobody can get."""


def declares_groups(device: ApiDevice) -> bool:
    """Whether the device declares groups anywhere."""
    return any(
        consumption.compatibility_groups
        for consumption in device.consumes_counters
    )


def grouped_sets(devices: Iterable[ApiDevice], first: int) -> Mapping[str, int]:
    """The counter sets on which some device declares groups, numbered from ``first``."""
    names: dict[str, None] = {}
    for device in devices:
        for consumption in device.consumes_counters:
            if consumption.compatibility_groups:
                names[consumption.counter_set] = None
    return {name: set_number for set_number, name in enumerate(names, first)}


def groups_of(
    device: ApiDevice, sets: Mapping[str, int]
) -> tuple[tuple[int, frozenset[str]], ...]:
    """A device's groups on each of the numbered counter sets of which it consumes."""
    return tuple(
        (
            sets[consumption.counter_set],
            frozenset(consumption.compatibility_groups or (NO_GROUPS,)),
        )
        for consumption in device.consumes_counters
        if consumption.counter_set in sets
    )


def set_name(
    number: int, numbered: Device, device: ApiDevice, pool: Iterable[ApiDevice]
) -> str:
    """The name of a counter set that the problem numbers, for a device as the problem knows it and as it is published.

    Parameters
    ----------
    pool
        The devices that share counter sets with it, as they are published.
    """
    grouped = grouped_sets(pool, 0)
    names = (
        consumption.counter_set
        for consumption in device.consumes_counters
        if consumption.counter_set in grouped
    )
    # Both list the counter sets with groups in the order in which the device consumes of them.
    set_numbers = (counter_set for counter_set, _ in numbered.compatibility)
    return dict(zip(set_numbers, names, strict=True))[number]


@dataclass(frozen=True)
class Skipped:
    """The features of a pool that are ignored with their gate off.

    ``any``: whether some device declares groups. ``used_sets``: the counter sets on which an allocated one does.
    """

    any: bool
    used_sets: frozenset[str]

    @classmethod
    def of(
        cls, slices: Iterable[ResourceSlice], allocated: Set[DeviceID]
    ) -> Skipped:
        """Collect them from the slices that a pool consists of."""
        grouped = [
            (DeviceID(*slice_.pool_id, device.name), consumption.counter_set)
            for slice_ in slices
            for device in slice_.spec.devices
            for consumption in device.consumes_counters
            if consumption.compatibility_groups
        ]
        return cls(
            bool(grouped),
            frozenset(
                counter_set
                for device, counter_set in grouped
                if device in allocated
            ),
        )

    def concern(self, device: ApiDevice) -> bool:
        """Whether the device must be left alone because of groups."""
        return self.any and any(
            consumption.compatibility_groups
            or consumption.counter_set in self.used_sets
            for consumption in device.consumes_counters
        )
