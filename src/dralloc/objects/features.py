"""Feature gates: the switches upstream's components have, by upstream's names without the ``DRA`` prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final, NamedTuple

from dralloc.objects.errors import DrallocError

__all__ = [
    "ALL_FEATURES",
    "GATES",
    "KNOWN_VERSIONS",
    "NEWEST_MINOR",
    "Features",
    "Gate",
    "GateStage",
    "Maturity",
    "minor_version",
]


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
    ``WorkloadResourceClaims``: each pod of a PodGroup has claims of its own, whatever the group's are (KEP-5729).
    ``FractionalCapacityRange``: steps of a capacity's range are counted in whole units only, also where the range is in
    fractions (KEP-5075).
    ``Preemption``: kube-scheduler supposes that whoever is evicted keeps its devices (KEP-5690), and mode ``scheduler``
    evicts nobody.
    ``TaintTolerationComparisonOperators``: tolerations with ``Gt`` and ``Lt`` tolerate nothing (KEP-5471).

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
    WorkloadResourceClaims: bool = True
    FractionalCapacityRange: bool = True
    TaintTolerationComparisonOperators: bool = True
    Preemption: bool = True

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
        return cls(**{name: GATES[name].is_on(minor) for name in cls.names()})

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

KNOWN_VERSIONS: Final = tuple(_MINORS)
"""The versions of Kubernetes whose defaults are known."""

NEWEST_MINOR: Final = max(_MINORS.values())
"""The second number of the newest version that is known."""


# ----------------------------------------------------------------------------
# What became of each gate from release to release. Sources:
# ``pkg/features/kube_features.go`` of Kubernetes 1.36 and of kube-scheduler 1.37, which
# have all earlier stages, too; ``kep.yaml`` of kubernetes/enhancements for what is
# planned.


class Maturity(StrEnum):
    """How far upstream has come with a gate."""

    ALPHA = "alpha"
    BETA = "beta"
    STABLE = "stable"


class GateStage(NamedTuple):
    """A stage of a gate: since which minor version, and whether it is on by default then."""

    since: int
    maturity: Maturity
    on: bool


class Gate(NamedTuple):
    """A feature gate of upstream.

    Parameters
    ----------
    upstream
        Its name in Kubernetes.
    kep
        The number of the enhancement proposal behind it.
    stages
        Oldest first; none as long as no release has it.
    planned
        What its proposal plans next, if it does.
    """

    upstream: str
    kep: int
    stages: tuple[GateStage, ...] = ()
    planned: str = ""

    def stage_in(self, minor: int) -> GateStage | None:
        """Return the stage in a minor version; None if the version does not have the gate."""
        reached = [stage for stage in self.stages if stage.since <= minor]
        return reached[-1] if reached else None

    def is_on(self, minor: int) -> bool:
        """Return whether it is on by default in a minor version."""
        stage = self.stage_in(minor)
        return stage is not None and stage.on


def _alpha(since: int) -> GateStage:
    return GateStage(since, Maturity.ALPHA, on=False)


def _beta(since: int, *, on: bool = True) -> GateStage:
    return GateStage(since, Maturity.BETA, on)


def _stable(since: int) -> GateStage:
    return GateStage(since, Maturity.STABLE, on=True)


GATES: Final[Mapping[str, Gate]] = {
    "AdminAccess": Gate(
        "DRAAdminAccess", 5018, (_alpha(32), _beta(34), _stable(36))
    ),
    "PrioritizedList": Gate(
        "DRAPrioritizedList", 4816, (_alpha(33), _beta(34), _stable(36))
    ),
    "PartitionableDevices": Gate(
        "DRAPartitionableDevices", 4815, (_alpha(33), _beta(36))
    ),
    "DeviceTaints": Gate(
        "DRADeviceTaints", 5055, (_alpha(33), _beta(36), _stable(37))
    ),
    "DeviceTaintRules": Gate(
        "DRADeviceTaintRules",
        5055,
        (_alpha(35), _beta(36, on=False), _stable(37)),
    ),
    "DeviceBindingAndStatus": Gate(
        "DRADeviceBindingConditions", 5007, (_alpha(34), _beta(36))
    ),
    "ConsumableCapacity": Gate(
        "DRAConsumableCapacity",
        5075,
        (_alpha(34), _beta(36)),
        planned="stable in 1.38",
    ),
    "ListTypeAttributes": Gate("DRAListTypeAttributes", 5491, (_alpha(36),)),
    "ExtendedResource": Gate(
        "DRAExtendedResource", 5004, (_alpha(34), _beta(36), _stable(37))
    ),
    "SharedConsumableCapacity": Gate(
        "DRASharedConsumableCapacity",
        5941,
        planned="alpha was planned for 1.37, which does not have it",
    ),
    "GenericWorkload": Gate(
        "GenericWorkload", 4671, (_alpha(35), _beta(37, on=False))
    ),
    "TopologyAwareWorkloadScheduling": Gate(
        "TopologyAwareWorkloadScheduling", 5732, (_alpha(36),)
    ),
    "DerivedAttributes": Gate(
        "DRADerivedAttributes", 6080, (_alpha(37),), planned="beta in 1.38"
    ),
    "DeviceCompatibilityGroups": Gate(
        "DRADeviceCompatibilityGroups",
        5963,
        (_alpha(37),),
        planned="beta in 1.38",
    ),
    "NodeAllocatableResources": Gate(
        "DRANodeAllocatableResources",
        5517,
        (_alpha(36),),
        planned="beta in 1.38",
    ),
    "CompositePodGroup": Gate(
        "CompositePodGroup", 6012, (_alpha(37),), planned="beta in 1.38"
    ),
    "WorkloadResourceClaims": Gate(
        "DRAWorkloadResourceClaims", 5729, (_alpha(36), _beta(37, on=False))
    ),
    "FractionalCapacityRange": Gate(
        "DRAFractionalCapacityRange", 5075, (_beta(37),)
    ),
    "TaintTolerationComparisonOperators": Gate(
        "TaintTolerationComparisonOperators", 5471, (_alpha(35),)
    ),
    "Preemption": Gate("DRAPreemption", 5690, planned="alpha in 1.38"),
}
"""The gates by their names here: one for each field of `Features`."""

ALL_FEATURES: Final = Features()
"""Everything on: the default."""
