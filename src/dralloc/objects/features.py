"""Feature gates: the switches upstream's components have, by upstream's names without the ``DRA`` prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from dralloc.objects.errors import DrallocError

__all__ = ["ALL_FEATURES", "NEWEST_MINOR", "Features", "minor_version"]


@dataclass(frozen=True, slots=True)
class Features:
    """The optional parts of Dynamic Resource Allocation that are in force. All are on unless switched off.

    What it means that a gate is off:

    ``AdminAccess``: a request with admin access is an error (KEP-5018).
    ``PrioritizedList``: a request with ``firstAvailable`` is an error (KEP-4816).
    ``PartitionableDevices``: slices with shared counters or node selection per device are ignored, and no device that
    consumes counters is allocated (KEP-4815).
    ``DeviceTaints``: taints keep nobody away (KEP-5055). ``DeviceTaintRules``: only those in slices do.
    ``DeviceBindingAndStatus``: devices with binding conditions are not allocated (KEP-5007, gate
    ``DRADeviceBindingConditions``).
    ``ConsumableCapacity``: no device is shared, and a request for capacity is an error (KEP-5075).
    ``ListTypeAttributes``: a list agrees with nothing in constraints (KEP-5491).
    ``ExtendedResource``: pods get no claim for the extended resources they ask for (KEP-5004).
    ``SharedConsumableCapacity``: ``valueFrom`` consumes nothing and its key is no capacity of the device (KEP-5941).
    ``GenericWorkload``: PodGroups and Workloads make no gangs (KEP-4671, gate ``GangScheduling`` beside it up to 1.36).
    ``TopologyAwareWorkloadScheduling``: the pods of a PodGroup need not be in one domain (KEP-5732).
    ``DerivedAttributes``: constraints compare what devices publish, whatever requests derive (KEP-6080).
    ``DeviceCompatibilityGroups``: devices that declare such groups are left alone, and others beside them (KEP-5963).
    ``CompositePodGroup``: PodGroups have no parents (KEP-6012).
    ``NodeAllocatableResources``: devices take nothing of CPU, memory and other resources of their node (KEP-5517).

    Examples
    --------
    >>> import dralloc
    >>> old = dralloc.Features.of_kubernetes("1.34")
    >>> old.ConsumableCapacity, old.switched({"ConsumableCapacity": True}).ConsumableCapacity
    (False, True)
    """

    AdminAccess: bool = True
    PrioritizedList: bool = True
    PartitionableDevices: bool = True
    DeviceTaints: bool = True
    DeviceTaintRules: bool = True
    DeviceBindingAndStatus: bool = True
    ConsumableCapacity: bool = True
    ListTypeAttributes: bool = True
    ExtendedResource: bool = True
    SharedConsumableCapacity: bool = True
    GenericWorkload: bool = True
    TopologyAwareWorkloadScheduling: bool = True
    DerivedAttributes: bool = True
    DeviceCompatibilityGroups: bool = True
    NodeAllocatableResources: bool = True
    CompositePodGroup: bool = True

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return every feature's name."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def of_kubernetes(cls, version: str) -> Features:
        """Return the gates that are on by default in a version of Kubernetes, ``1.34`` to ``1.37``.

        Source: ``pkg/features/kube_features.go`` of kubernetes/kubernetes. KEP-5941 is in none of these versions.

        Raises
        ------
        DrallocError
            The version is not known.
        """
        minor = minor_version(version)
        return cls(
            **{
                name: _ON_SINCE.get(name, minor + 1) <= minor
                for name in cls.names()
            }
        )

    def switched(self, switches: Mapping[str, bool]) -> Features:
        """Return a copy with some features switched; a name may carry upstream's ``DRA`` prefix.

        Raises
        ------
        DrallocError
            A name is not a feature.
        """
        gate_names = self.names()
        short = (
            (name.removeprefix("DRA"), value)
            for name, value in switches.items()
        )
        plain = {_OTHER_NAMES.get(name, name): value for name, value in short}
        for name in plain:
            if name not in gate_names:
                raise DrallocError(
                    f"unknown feature {name!r}; known features: {', '.join(gate_names)}"
                )
        return replace(self, **plain)


def minor_version(version: str) -> int:
    """Return the second number of a version of Kubernetes.

    Raises
    ------
    DrallocError
        The version is not known.
    """
    minor = _MINORS.get(version.removeprefix("v"))
    if minor is None:
        raise DrallocError(
            f"Kubernetes {version} is not known; known versions: {', '.join(_MINORS)}"
        )
    return minor


_OTHER_NAMES: Final = {
    "DeviceBindingConditions": "DeviceBindingAndStatus",
    "GangScheduling": "GenericWorkload",
}
"""Gates that other components, or other versions, know by another name."""

_MINORS: Final = {f"1.{minor}": minor for minor in range(34, 38)}

NEWEST_MINOR: Final = max(_MINORS.values())
"""The second number of the newest version that is known."""

_ON_SINCE: Final = {
    "AdminAccess": 34,
    "PrioritizedList": 34,
    "PartitionableDevices": 36,
    "DeviceTaints": 36,
    "DeviceTaintRules": 37,
    "DeviceBindingAndStatus": 36,
    "ConsumableCapacity": 36,
    "ExtendedResource": 36,
}
"""The first minor version in which a gate is on by default; absent as long as there is none."""

ALL_FEATURES: Final = Features()
"""Everything on: the default."""
