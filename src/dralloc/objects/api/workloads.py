"""Pods and what templates say of them, their priorities, and groups of pods that are scheduled together."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, StrictBool, StrictStr

from dralloc.objects.api.base import (
    EMPTY,
    Int32,
    ObjectMeta,
    PartialModel,
    PartialObject,
    QuantityField,
)
from dralloc.objects.api.disclosure import (
    NODE_SELECTOR,
    POD_LABELS,
    ClaimName,
    ContainerName,
    GroupName,
    ImageName,
    LabelName,
    Name,
    NodeName,
    PriorityName,
    Refined,
    RequestId,
    ResourceName,
    TemplateName,
    Terms,
    Time,
)
from dralloc.objects.api.nodes import (
    Affinity,
    NodeAllocatableClaimStatus,
    NodeSelector,
    Toleration,
    TopologySpreadConstraint,
)
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import Quantity

__all__ = [
    "POD_GROUP_VERSIONS",
    "CompositePodGroup",
    "Container",
    "ContainerClaim",
    "ContainerPort",
    "ContainerResources",
    "GangPolicy",
    "Pod",
    "PodGroup",
    "PodGroupSpec",
    "PodGroupStatus",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "PodSpec",
    "PodStatus",
    "PodTemplate",
    "PodVolume",
    "PriorityClass",
    "SchedulingConstraints",
    "SchedulingPolicy",
    "TopologyConstraint",
    "Workload",
    "WorkloadGroup",
    "WorkloadReference",
    "WorkloadSpec",
]

# ----------------------------------------------------------------------------
# Pods, what templates say about them, and their priorities.


class ContainerClaim(PartialModel):
    """A claim of the pod, or one request of it, that a container uses."""

    name: RequestId
    request: RequestId = ""


class ContainerResources(PartialModel):
    """The claims that a container uses, and the resources that it asks for."""

    claims: tuple[ContainerClaim, ...] = ()
    requests: Mapping[ResourceName, QuantityField] = EMPTY
    limits: Mapping[ResourceName, QuantityField] = EMPTY

    @property
    def requested(self) -> Mapping[str, Quantity]:
        """The requests with the API's default: what has only a limit requests as much."""
        return {**self.limits, **self.requests}


class ContainerPort(PartialModel):
    """A port of a container; with a host port it is a port of the node, too."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: Annotated[StrictStr, Name.ADDRESS, Field(alias="hostIP")] = ""
    protocol: Annotated[StrictStr, Terms("TCP", "UDP", "SCTP")] = "TCP"


class ContainerRestartRule(PartialModel):
    """The action when a container ends in a certain way."""

    action: Annotated[StrictStr, Terms("Restart", "RestartAllContainers")] = ""


class Container(PartialModel):
    """A container of a pod. An init container that always restarts is a sidecar, which runs beside the others."""

    name: ContainerName = ""
    image: ImageName = ""
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: Annotated[
        StrictStr | None, Terms("Always", "Never", "OnFailure")
    ] = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    resources: ContainerResources = ContainerResources()

    @property
    def sidecar(self) -> bool:
        """Whether it is one, as an init container."""
        return self.restart_policy == "Always"


class ImageVolume(PartialModel):
    """An image that is mounted."""

    reference: ImageName = ""


class VolumeSource(PartialModel):
    """The source of a volume; that it comes from there is all that is kept."""


class PodVolume(PartialModel):
    """A volume of a pod, as far as it may matter on which node the pod is."""

    image: ImageVolume | None = None
    persistent_volume_claim: VolumeSource | None = None
    ephemeral: VolumeSource | None = None
    csi: VolumeSource | None = None
    aws_elastic_block_store: VolumeSource | None = None
    azure_disk: VolumeSource | None = None
    cinder: VolumeSource | None = None
    gce_persistent_disk: VolumeSource | None = None
    iscsi: VolumeSource | None = None
    portworx_volume: VolumeSource | None = None
    rbd: VolumeSource | None = None
    vsphere_volume: VolumeSource | None = None


class PodResourceClaim(PartialModel):
    """A claim that the pod uses, by name or through a template."""

    name: RequestId
    resource_claim_name: ClaimName | None = None
    resource_claim_template_name: TemplateName | None = None


class PodSchedulingGate(PartialModel):
    """A gate that holds the pod back from being scheduled."""

    name: Annotated[StrictStr, Name.GATE]


class PodSchedulingGroup(PartialModel):
    """The PodGroup that the pod belongs to."""

    pod_group_name: GroupName | None = None


class WorkloadReference(PartialModel):
    """The group of a Workload that the pod belongs to, and which replica of the group."""

    name: GroupName
    pod_group: GroupName
    pod_group_replica_key: GroupName = ""


PreemptionPolicy = Annotated[StrictStr, Terms("Never", "PreemptLowerPriority")]
SchedulerName = Annotated[
    Annotated[StrictStr, Terms("default-scheduler")],
    BeforeValidator(lambda name: "default-scheduler" if name == "" else name),
]
"""The scheduler of a pod. An empty one is the default, as an API server fills it in (``SetDefaults_PodSpec``)."""


class PodSpec(PartialModel):
    """The part of a pod's specification that matters for its claims and its node."""

    node_name: NodeName | None = None
    scheduler_name: SchedulerName = "default-scheduler"
    node_selector: Annotated[Mapping[StrictStr, StrictStr], NODE_SELECTOR] = (
        EMPTY
    )
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    host_network: StrictBool = False
    host_users: StrictBool | None = None
    runtime_class_name: Annotated[StrictStr | None, Name.RUNTIME] = None
    resources: ContainerResources = ContainerResources()
    overhead: Mapping[ResourceName, QuantityField] = EMPTY
    volumes: tuple[PodVolume, ...] = ()
    preemption_policy: PreemptionPolicy | None = None
    priority: Int32 | None = None
    priority_class_name: PriorityName = ""
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()

    @property
    def required_nodes(self) -> NodeSelector | None:
        """The nodes that its node affinity allows; None for all."""
        affinity = self.affinity.node_affinity if self.affinity else None
        return affinity.required if affinity else None


class PodResourceClaimStatus(PartialModel):
    """The claim that was made for a pod's template entry; without a name, none is needed."""

    name: RequestId
    resource_claim_name: ClaimName | None = None


class PodCondition(PartialModel):
    """A statement about a pod, true or not: that it is being resized, or why it has no node."""

    type: Annotated[
        StrictStr,
        Terms("PodResizePending", "PodResizeInProgress", "PodScheduled"),
    ]
    reason: Annotated[
        StrictStr, Terms("Unschedulable", "SchedulerError", "SchedulingGated")
    ] = ""


class PodStatus(PartialModel):
    """The phase of a pod, the node that it may get, its claims, and what these take of its node."""

    phase: Annotated[
        StrictStr, Terms("Pending", "Running", "Succeeded", "Failed", "Unknown")
    ] = ""
    start_time: Time | None = None
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: NodeName | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    node_allocatable_resource_claim_statuses: tuple[
        NodeAllocatableClaimStatus, ...
    ] = ()


class Pod(PartialObject, api_version="v1", namespaced=True):
    """A pod."""

    metadata: Annotated[
        ObjectMeta, Refined(name=Name.POD, labels=POD_LABELS)
    ] = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def tried_before(self) -> bool:
        """Whether a scheduler has looked for a node already, and says why it has none."""
        return any(
            entry.reason in {"Unschedulable", "SchedulerError"}
            for entry in self.status.conditions
        )

    @property
    def terminated(self) -> bool:
        """Whether the pod has run to its end and holds nothing any more."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def leaving(self) -> bool:
        """Whether it has run to its end or is being deleted: it is not scheduled, and no claims are made for it."""
        return self.terminated or self.metadata.deletion_timestamp is not None

    @property
    def requested(self) -> frozenset[str]:
        """The resources of which some container asks for more than nothing."""
        containers = (*self.spec.init_containers, *self.spec.containers)
        return frozenset(
            name
            for container in containers
            for name, amount in container.resources.requested.items()
            if amount.nanos
        )

    @property
    def pod_group(self) -> ClaimKey | None:
        """The PodGroup that the pod belongs to."""
        name = (
            self.spec.scheduling_group.pod_group_name
            if self.spec.scheduling_group
            else None
        )
        return ClaimKey(self.key.namespace, name) if name is not None else None


class PodTemplate(PartialModel):
    """The pattern of an owner's pods."""

    metadata: Annotated[
        ObjectMeta, Refined(name=Name.POD, labels=POD_LABELS)
    ] = ObjectMeta()
    spec: PodSpec = PodSpec()


class PriorityClass(PartialObject, api_version="scheduling.k8s.io/v1"):
    """A name for a priority."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.PRIORITY)] = ObjectMeta()
    value: Int32
    global_default: StrictBool = False
    preemption_policy: PreemptionPolicy | None = None


# ----------------------------------------------------------------------------
# PodGroup and Workload: pods that are scheduled together (``scheduling.k8s.io``,
# KEP-4671 and KEP-5729).
#
# Kubernetes 1.35 (``v1alpha1``) has groups inside of a Workload, to which pods refer
# with ``spec.workloadRef``. From 1.36 on a group is an object of its own, to which
# they refer with ``spec.schedulingGroup``.

POD_GROUP_VERSIONS: Final = ("v1alpha2", "v1alpha3", "v1beta1", "v1")
"""Versions of ``scheduling.k8s.io`` in which a PodGroup has the fields that matter here."""


class GangPolicy(PartialModel):
    """The number of pods that must be placed for any of them to be placed."""

    min_count: Int32


class SchedulingPolicy(PartialModel):
    """The way in which a group's pods are scheduled: ``minCount`` or none with ``gang``, one by one without."""

    gang: GangPolicy | None = None


class TopologyConstraint(PartialModel):
    """The label of nodes of which all pods of a group have the same value."""

    key: LabelName


class SchedulingConstraints(PartialModel):
    """The domains in which all pods of a group must be."""

    topology: tuple[TopologyConstraint, ...] = ()


DisruptionWord = Annotated[StrictStr, Terms("Pod", "PodGroup")]
"""The mode in Kubernetes 1.36."""


class AllDisruptionMode(PartialModel):
    """Says that a group is disrupted as a whole; there is nothing more to say."""


class DisruptionMode(PartialModel):
    """The mode from Kubernetes 1.37 on: ``all`` or ``single``."""

    all: AllDisruptionMode | None = None


class GroupGangPolicy(PartialModel):
    """The number of groups that must be admitted for any of them to be."""

    min_group_count: Int32


class CompositeSchedulingPolicy(PartialModel):
    """The way in which a group's groups are scheduled: so many or none with ``gang``, independently without."""

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
    """The claims that were made for the group."""

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
