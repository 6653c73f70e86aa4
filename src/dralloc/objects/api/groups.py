"""PodGroup and Workload: pods that are scheduled together (``scheduling.k8s.io``, KEP-4671 and KEP-5729).

Kubernetes 1.35 (``v1alpha1``) has groups inside of a Workload, to which pods refer with ``spec.workloadRef``. From 1.36
on a group is an object of its own, to which they refer with ``spec.schedulingGroup``.
"""

from typing import Annotated, Final

from pydantic import StrictStr

from dralloc.objects.api.base import Int32, PartialModel
from dralloc.objects.api.disclosure import GroupName, LabelName, Name, Refined, Terms
from dralloc.objects.api.objects import ObjectMeta, PartialObject
from dralloc.objects.api.workloads import PodResourceClaim, PodResourceClaimStatus

__all__ = [
    "POD_GROUP_VERSIONS",
    "CompositePodGroup",
    "GangPolicy",
    "PodGroup",
    "PodGroupSpec",
    "PodGroupStatus",
    "SchedulingConstraints",
    "SchedulingPolicy",
    "TopologyConstraint",
    "Workload",
    "WorkloadGroup",
    "WorkloadSpec",
]

POD_GROUP_VERSIONS: Final = ("v1alpha2", "v1alpha3", "v1beta1", "v1")
"""Versions of ``scheduling.k8s.io`` in which a PodGroup has the fields that matter here."""


class GangPolicy(PartialModel):
    """How many pods must be placed for any of them to be placed."""

    min_count: Int32


class SchedulingPolicy(PartialModel):
    """How the pods of a group are scheduled: ``minCount`` or none with ``gang``, one by one without."""

    gang: GangPolicy | None = None


class TopologyConstraint(PartialModel):
    """The label of nodes of which all pods of a group have the same value."""

    key: LabelName


class SchedulingConstraints(PartialModel):
    """How near to each other the pods of a group must be."""

    topology: tuple[TopologyConstraint, ...] = ()


DisruptionWord = Annotated[StrictStr, Terms("Pod", "PodGroup")]
"""The mode in Kubernetes 1.36."""


class AllDisruptionMode(PartialModel):
    """Says that a group is disrupted as a whole; there is nothing more to say."""


class DisruptionMode(PartialModel):
    """The mode from Kubernetes 1.37 on: ``all`` or ``single``."""

    all: AllDisruptionMode | None = None


class GroupGangPolicy(PartialModel):
    """How many groups must be admitted for any of them to be."""

    min_group_count: Int32


class CompositeSchedulingPolicy(PartialModel):
    """How the groups of a group are scheduled: so many or none with ``gang``, independently without."""

    gang: GroupGangPolicy | None = None


class CompositePodGroupSpec(PartialModel):
    """The policy of a group of groups, and the group that it is part of itself."""

    parent_composite_pod_group_name: GroupName | None = None
    scheduling_policy: CompositeSchedulingPolicy = CompositeSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints = SchedulingConstraints()


class CompositePodGroup(
    PartialObject, api_version="scheduling.k8s.io/v1alpha3", namespaced=True
):
    """Groups of pods that are scheduled together (KEP-6012)."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.GROUP)] = ObjectMeta()
    spec: CompositePodGroupSpec = CompositePodGroupSpec()


class PodGroupSpec(PartialModel):
    """The policy of a group, and the claims that its pods share: entries of pods that equal one of these."""

    parent_composite_pod_group_name: GroupName | None = None
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints = SchedulingConstraints()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    disruption_mode: DisruptionWord | DisruptionMode | None = None
    priority: Int32 | None = None

    @property
    def disrupted_as_whole(self) -> bool:
        """Whether its pods are evicted together or not at all (KEP-5710)."""
        mode = self.disruption_mode
        return mode == "PodGroup" or (
            isinstance(mode, DisruptionMode) and mode.all is not None
        )


class PodGroupStatus(PartialModel):
    """Which claims were made for the group."""

    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class PodGroup(
    PartialObject, api_version="scheduling.k8s.io/v1alpha3", namespaced=True
):
    """Pods that are scheduled together."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.GROUP)] = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class WorkloadGroup(PartialModel):
    """A group of pods of a Workload."""

    name: GroupName
    policy: SchedulingPolicy = SchedulingPolicy()


class WorkloadSpec(PartialModel):
    """The groups that a Workload consists of."""

    pod_groups: tuple[WorkloadGroup, ...] = ()


class Workload(
    PartialObject, api_version="scheduling.k8s.io/v1alpha1", namespaced=True
):
    """Groups of pods that belong together."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.GROUP)] = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
