"""Nodes and namespaces (core/v1): what devices take of nodes, what pods wish of them, what namespaces may use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StrictBool, StrictStr

from dralloc.objects.api.base import (
    EMPTY,
    Int32,
    Int64,
    ObjectMeta,
    PartialModel,
    PartialObject,
    QuantityField,
    WireData,
    WireModel,
)
from dralloc.objects.api.disclosure import (
    LABEL_REQUIREMENT,
    LABEL_SELECTOR,
    NAMESPACE_LABELS,
    NODE_LABELS,
    NODE_REQUIREMENT,
    AttributeName,
    ClaimName,
    ContainerName,
    Effect,
    ImageName,
    LabelName,
    Name,
    NamespaceName,
    Operator,
    PriorityName,
    Refined,
    Removed,
    ResourceName,
    TaintKey,
    TaintValue,
    Terms,
)

__all__ = [
    "Affinity",
    "ContainerImage",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Namespace",
    "Node",
    "NodeAffinity",
    "NodeAllocatableClaimStatus",
    "NodeAllocatableMappedResources",
    "NodeAllocatableMapping",
    "NodeAllocatableOverhead",
    "NodeAllocatableOverheadResources",
    "NodeAllocatableResource",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "NodeSystemInfo",
    "PodAffinity",
    "PodAffinityTerm",
    "PreferredSchedulingTerm",
    "ResourceQuota",
    "ResourceQuotaSpec",
    "ScopeRequirement",
    "ScopeSelector",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "WeightedPodAffinityTerm",
]

# ----------------------------------------------------------------------------
# Nodes, and the selectors that choose among them (core/v1).


class NodeSelectorRequirement(WireModel):
    """A condition on one label or field of a node."""

    key: LabelName
    operator: Operator
    values: Annotated[tuple[StrictStr, ...], NODE_REQUIREMENT] = ()


class NodeSelectorTerm(WireModel):
    """Conditions on labels and fields that must all hold; without any, the term matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(WireModel):
    """Terms of which at least one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...]


class Namespace(PartialObject, api_version="v1"):
    """A namespace; its labels say what may be done in it."""

    metadata: Annotated[
        ObjectMeta, Refined(name=Name.NAMESPACE, labels=NAMESPACE_LABELS)
    ] = ObjectMeta()


class Taint(PartialModel):
    """A mark that keeps pods away which do not tolerate it."""

    key: TaintKey
    effect: Effect
    value: TaintValue = ""


class NodeSpec(PartialModel):
    """The part of a node's specification that matters for placing pods."""

    unschedulable: StrictBool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(PartialModel):
    """An image that the node has already, by all of its names."""

    names: tuple[ImageName, ...] = ()
    size_bytes: Int64 = 0


class NodeSystemInfo(PartialModel):
    """The versions of what runs on a node."""

    kubelet_version: Annotated[StrictStr, Removed.WHOLE] = ""


class NodeStatus(PartialModel):
    """The resources that pods may use, among them those of device plugins, and the images on the node."""

    allocatable: Mapping[ResourceName, QuantityField] = EMPTY
    images: tuple[ContainerImage, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(PartialObject, api_version="v1"):
    """A node of the cluster."""

    metadata: Annotated[
        ObjectMeta, Refined(name=Name.NODE, labels=NODE_LABELS)
    ] = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# ----------------------------------------------------------------------------
# What devices take of CPU, memory and other resources of their node (KEP-5517).


@dataclass(frozen=True, slots=True)
class NodeAllocatableMapping(WireData):
    """The amount that an allocation takes, whoever uses it: for what it consumes of a capacity, or for the device."""

    capacity_key: AttributeName | None = None
    capacity_multiplier: QuantityField | None = None
    device_multiplier: QuantityField | None = None


@dataclass(frozen=True, slots=True)
class NodeAllocatableOverhead(WireData):
    """The amount that each pod takes which uses a device, and each of its containers that does."""

    per_pod: QuantityField | None = None
    per_container: QuantityField | None = None


@dataclass(frozen=True, slots=True)
class NodeAllocatableResource(WireData):
    """The amount that a device takes of one resource of its node."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class NodeAllocatableMappedResources(PartialModel):
    """The amount that a pod takes of a resource by mappings."""

    name: ResourceName
    quantity: QuantityField | None = None


class NodeAllocatableOverheadResources(PartialModel):
    """The amount that a pod takes of a resource as overhead, for itself and for each container."""

    name: ResourceName
    per_pod: QuantityField | None = None
    per_container: QuantityField | None = None


class NodeAllocatableClaimStatus(PartialModel):
    """The amounts that a pod takes of its node for one of its claims, and the containers that it is for.

    ``resources`` is what Kubernetes 1.36 has in the place of ``mapping`` and ``overhead``.
    """

    resource_claim_name: ClaimName = ""
    containers: tuple[ContainerName, ...] = ()
    resources: Mapping[ResourceName, QuantityField] = EMPTY
    mapping: tuple[NodeAllocatableMappedResources, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResources, ...] = ()


# ----------------------------------------------------------------------------
# What pods wish for beside their resources: tolerations, affinity, spreading over
# domains (core/v1).

_REQUIRED = Field(alias="requiredDuringSchedulingIgnoredDuringExecution")
_PREFERRED = Field(alias="preferredDuringSchedulingIgnoredDuringExecution")


class LabelSelectorRequirement(PartialModel):
    """A condition on one label."""

    key: LabelName
    operator: Operator
    values: Annotated[tuple[StrictStr, ...], LABEL_REQUIREMENT] = ()


class LabelSelector(PartialModel):
    """Labels and conditions that must all hold; without any, everything is selected."""

    match_labels: Annotated[Mapping[StrictStr, StrictStr], LABEL_SELECTOR] = (
        EMPTY
    )
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Toleration(PartialModel):
    """Taints that do not keep the pod away: without key those of any key, without effect those of any effect."""

    key: TaintKey = ""
    operator: Annotated[StrictStr, Terms("Equal", "Exists", "Gt", "Lt")] = ""
    value: TaintValue = ""
    effect: Effect = ""


class PreferredSchedulingTerm(PartialModel):
    """Nodes that are better by a weight."""

    weight: Int32
    preference: NodeSelectorTerm


class NodeAffinity(PartialModel):
    """The nodes on which a pod may run, and those that it prefers."""

    required: Annotated[NodeSelector | None, _REQUIRED] = None
    preferred: Annotated[tuple[PreferredSchedulingTerm, ...], _PREFERRED] = ()


class PodAffinityTerm(PartialModel):
    """Pods by their labels and namespaces, and the label of nodes that says which nodes count as one place."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[NamespaceName, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: LabelName
    match_label_keys: tuple[LabelName, ...] = ()
    mismatch_label_keys: tuple[LabelName, ...] = ()


class WeightedPodAffinityTerm(PartialModel):
    """A term that makes places better, or worse, by a weight."""

    weight: Int32
    pod_affinity_term: PodAffinityTerm


class PodAffinity(PartialModel):
    """Pods to be near to, or away from."""

    required: Annotated[tuple[PodAffinityTerm, ...], _REQUIRED] = ()
    preferred: Annotated[tuple[WeightedPodAffinityTerm, ...], _PREFERRED] = ()


class Affinity(PartialModel):
    """The places where a pod may run and wants to run, by nodes and by other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


_Inclusion = Annotated[StrictStr, Terms("Honor", "Ignore")]


class TopologySpreadConstraint(PartialModel):
    """The evenness with which a selector's pods are spread over the values of a label of nodes."""

    max_skew: Int32
    topology_key: LabelName
    when_unsatisfiable: Annotated[
        StrictStr, Terms("DoNotSchedule", "ScheduleAnyway")
    ] = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: _Inclusion = "Honor"
    node_taints_policy: _Inclusion = "Ignore"
    match_label_keys: tuple[LabelName, ...] = ()


# ----------------------------------------------------------------------------
# ResourceQuota: how much a namespace may ask for (core/v1).

_Scope = Annotated[
    StrictStr,
    Terms(
        "BestEffort",
        "CrossNamespacePodAffinity",
        "NotBestEffort",
        "NotTerminating",
        "PriorityClass",
        "Terminating",
        "VolumeAttributesClass",
    ),
]


class ScopeRequirement(PartialModel):
    """A scope, and for priority classes which of them."""

    scope_name: _Scope
    operator: Operator
    values: tuple[PriorityName, ...] = ()


class ScopeSelector(PartialModel):
    """Scopes that an object must have for the quota to count it."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(PartialModel):
    """The limits by resource name, and for which objects they count: with any scope, for pods only."""

    hard: Mapping[ResourceName, QuantityField] = EMPTY
    scopes: tuple[_Scope, ...] = ()
    scope_selector: ScopeSelector = ScopeSelector()

    @property
    def scoped(self) -> bool:
        """Whether it counts only objects of some scope."""
        return bool(self.scopes or self.scope_selector.match_expressions)


class ResourceQuota(PartialObject, api_version="v1", namespaced=True):
    """Limits for one namespace."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.QUOTA)] = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
