"""What pods wish for beside their resources: tolerations, affinity, spreading over domains (core/v1)."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StrictStr

from dralloc.objects.api.base import EMPTY, Int32, PartialModel
from dralloc.objects.api.disclosure import (
    LABEL_REQUIREMENT,
    LABEL_SELECTOR,
    Effect,
    LabelName,
    NamespaceName,
    Operator,
    TaintKey,
    TaintValue,
    Terms,
)
from dralloc.objects.api.nodes import NodeSelector, NodeSelectorTerm

__all__ = [
    "Affinity",
    "LabelSelector",
    "LabelSelectorRequirement",
    "NodeAffinity",
    "PodAffinity",
    "PodAffinityTerm",
    "PreferredSchedulingTerm",
    "Toleration",
    "TopologySpreadConstraint",
    "WeightedPodAffinityTerm",
]

_REQUIRED = Field(alias="requiredDuringSchedulingIgnoredDuringExecution")
_PREFERRED = Field(alias="preferredDuringSchedulingIgnoredDuringExecution")


class LabelSelectorRequirement(PartialModel):
    """A condition on one label."""

    key: LabelName
    operator: Operator
    values: Annotated[tuple[StrictStr, ...], LABEL_REQUIREMENT] = ()


class LabelSelector(PartialModel):
    """Labels and conditions that must all hold; without any, everything is selected."""

    match_labels: Annotated[Mapping[StrictStr, StrictStr], LABEL_SELECTOR] = EMPTY
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
    """Which nodes a pod may run on, and which it prefers."""

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
    """Where a pod may run and wants to run, by nodes and by other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


_Inclusion = Annotated[StrictStr, Terms("Honor", "Ignore")]


class TopologySpreadConstraint(PartialModel):
    """How evenly the pods of a selector are spread over the values of a label of nodes."""

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
