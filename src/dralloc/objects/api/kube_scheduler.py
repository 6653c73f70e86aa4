"""The scheduler's configuration (``kubescheduler.config.k8s.io/v1``), as far as it says where pods go."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr

from dralloc.objects.api.base import (
    EMPTY,
    Int32,
    Int64,
    PartialModel,
    WireModel,
)
from dralloc.objects.api.nodes import NodeAffinity, TopologySpreadConstraint

__all__ = [
    "InterPodAffinityArgs",
    "KubeSchedulerConfiguration",
    "KubeSchedulerProfile",
    "NodeAffinityArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "PluginConfig",
    "PluginSet",
    "Plugins",
    "PodTopologySpreadArgs",
    "RequestedToCapacityRatio",
    "ResourceSpec",
    "ScoringStrategy",
    "UtilizationShapePoint",
]


class SchedulerPlugin(PartialModel):
    """A plugin by its name; a weight of 0 counts as 1."""

    name: StrictStr
    weight: Int32 = 0


class PluginSet(PartialModel):
    """Plugins that run at an extension point beside, or in spite of, the default ones; ``*`` stands for all."""

    enabled: tuple[SchedulerPlugin, ...] = ()
    disabled: tuple[SchedulerPlugin, ...] = ()


class Plugins(PartialModel):
    """The plugins of a profile, at all extension points and at those that matter here."""

    multi_point: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    score: PluginSet = PluginSet()


class PluginConfig(PartialModel):
    """Arguments of a plugin."""

    name: StrictStr
    args: Mapping[StrictStr, Any] = EMPTY


class KubeSchedulerProfile(PartialModel):
    """The plugins and weights by which the pods of one scheduler name are scheduled."""

    scheduler_name: StrictStr = "default-scheduler"
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class KubeSchedulerConfiguration(PartialModel):
    """The configuration; what is not about placing pods is left out."""

    parallelism: Int32 | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    profiles: tuple[KubeSchedulerProfile, ...] = (KubeSchedulerProfile(),)
    extenders: tuple[Mapping[StrictStr, Any], ...] = ()


class _Args(WireModel):
    api_version: StrictStr = ""
    kind: StrictStr = ""


class ResourceSpec(WireModel):
    """A resource with its weight."""

    name: StrictStr
    weight: Int64 = 1


class UtilizationShapePoint(WireModel):
    """A score, of at most 10, at a percentage in use."""

    utilization: Int32
    score: Int32


class RequestedToCapacityRatio(WireModel):
    """A broken line from what is in use to a score."""

    shape: Annotated[tuple[UtilizationShapePoint, ...], Field(min_length=1)]


_CPU_AND_MEMORY = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class ScoringStrategy(WireModel):
    """The way in which NodeResourcesFit rates nodes."""

    type: Literal[
        "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"
    ] = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(_Args):
    """Arguments of NodeResourcesFit."""

    ignored_resources: tuple[StrictStr, ...] = ()
    ignored_resource_groups: tuple[StrictStr, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class NodeResourcesBalancedAllocationArgs(_Args):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY


class NodeAffinityArgs(_Args):
    """Arguments of NodeAffinity."""

    added_affinity: NodeAffinity = NodeAffinity()


class InterPodAffinityArgs(_Args):
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: StrictBool = False


class PodTopologySpreadArgs(_Args):
    """Arguments of PodTopologySpread."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"
