"""The plugins of kube-scheduler's default profile, in their order; and profiles from configuration files.

Source: ``apis/config/v1/default_plugins.go`` of ``kubernetes/pkg/scheduler``. Those about volumes are left out, as
volumes are not read, and so is NodeName: a pod that names its node is not scheduled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, Field, StrictBool, StrictStr, ValidationError

from dralloc.objects.api.base import (
    EMPTY,
    Int32,
    Int64,
    PartialModel,
    WireModel,
)
from dralloc.objects.api.field_errors import field_path, rule
from dralloc.objects.api.nodes import NodeAffinity, TopologySpreadConstraint
from dralloc.objects.errors import Finding, InputError
from dralloc.objects.limits import LIMITS
from dralloc.objects.load.json_text import TextError, unpacked
from dralloc.objects.load.yaml_text import documents_of
from dralloc.solve.scheduler.node_traits import (
    IMAGE_LOCALITY,
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_UNSCHEDULABLE,
    TAINT_TOLERATION,
)
from dralloc.solve.scheduler.plugin import Plugin
from dralloc.solve.scheduler.pod_affinity import INTER_POD_AFFINITY
from dralloc.solve.scheduler.pod_spreading import POD_TOPOLOGY_SPREAD
from dralloc.solve.scheduler.profile import (
    SYSTEM_CONSTRAINTS,
    Profile,
    Strategy,
)
from dralloc.solve.scheduler.resource_plugins import (
    BALANCED_ALLOCATION,
    DYNAMIC_RESOURCES,
    NODE_RESOURCES_FIT,
)

__all__ = ["PLUGINS", "profiles_of", "read_profiles"]

PLUGINS: Final[tuple[Plugin, ...]] = (
    NODE_UNSCHEDULABLE,
    TAINT_TOLERATION,
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    POD_TOPOLOGY_SPREAD,
    INTER_POD_AFFINITY,
    DYNAMIC_RESOURCES,
    BALANCED_ALLOCATION,
    IMAGE_LOCALITY,
)


# ----------------------------------------------------------------------------
# The scheduler's configuration (``kubescheduler.config.k8s.io/v1``), as far as it says
# where pods go.


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


# ----------------------------------------------------------------------------
# Profiles from a KubeSchedulerConfiguration. Source: ``apis/config`` of
# ``kubernetes/pkg/scheduler``: ``v1/default_plugins.go`` (how the plugins of a profile
# and the default ones are put together), ``v1/defaults.go``, ``types_pluginargs.go``.

_GROUP: Final = "kubescheduler.config.k8s.io/"
_VERSION: Final = f"{_GROUP}v1"
_KIND: Final = "KubeSchedulerConfiguration"
_EVERY: Final = "*"
_WITHOUT_EFFECT: Final = frozenset(
    {
        "DefaultBinder",
        "DefaultPreemption",
        "GangScheduling",
        "NodeDeclaredFeatures",
        "NodeName",
        "NodeVolumeLimits",
        "PodGroupPodsCount",
        "PrioritySort",
        "SchedulingGates",
        "TopologyPlacementGenerator",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
)
"""Plugins that are there, but decide nothing here."""
_SCALE: Final = 10
"""What the scores of a shape are multiplied with to be scores of nodes."""

M = TypeVar("M", bound=BaseModel)


def read_profiles(path: Path) -> tuple[Profile, ...]:
    """The profiles of a file.

    Raises
    ------
    InputError
        It cannot be read, or it has something that is not modelled: extenders, plugins of others.
    """
    try:
        data = unpacked(path.read_bytes(), LIMITS.unpacked)
        documents, failure = documents_of(data, str(path), LIMITS.aliases)
    except (OSError, TextError) as error:
        raise InputError(
            [Finding(str(path), "", "", f"cannot be read: {error}")]
        ) from None
    if failure is not None or len(documents) != 1:
        raise InputError(
            [Finding(str(path), "", "", failure or "must have one document")]
        )
    return profiles_of(documents[0], str(path))


def profiles_of(document: Any, source: str) -> tuple[Profile, ...]:
    """The profiles of a configuration that is plain data. Errors are those of `read_profiles`, and name the source."""
    is_of_group = isinstance(document, dict) and str(
        document.get("apiVersion")
    ).startswith(_GROUP)
    if not is_of_group or document.get("kind") != _KIND:
        other_kind = f"is no {_KIND} of {_GROUP.rstrip('/')}"
        raise InputError([Finding(source, "", "", other_kind)])
    if document["apiVersion"] != _VERSION:
        # v1beta2 went with 1.28, v1beta3 with 1.29: kube-scheduler does not start with them.
        unread = f'"{document["apiVersion"]}" is not read by kube-scheduler of any supported version, only {_VERSION}'
        raise InputError([Finding(source, _KIND, "apiVersion", unread)])
    configuration = _validated(KubeSchedulerConfiguration, document, source, ())
    if configuration.extenders:
        raise InputError(
            [Finding(source, _KIND, "extenders", "are not modelled")]
        )
    percentage = configuration.percentage_of_nodes_to_score or 0
    looks_at_once = configuration.parallelism != 1
    profiles: list[Profile] = []
    for index, declared in enumerate(configuration.profiles):
        profile = _profile(declared, percentage, f"profiles[{index}]", source)
        profiles.append(replace(profile, looks_at_once=looks_at_once))
    return tuple(profiles)


def _profile(
    declared: KubeSchedulerProfile, percentage: int, path: str, source: str
) -> Profile:
    plugins = declared.plugins
    modelled = {plugin.name for plugin in PLUGINS} | _WITHOUT_EFFECT
    for plugin in (
        *plugins.multi_point.enabled,
        *plugins.filter.enabled,
        *plugins.score.enabled,
    ):
        if plugin.name not in modelled:
            problem = f'plugin "{plugin.name}" is not modelled'
            raise InputError(
                [Finding(source, _KIND, f"{path}.plugins", problem)]
            )
    args = {config.name: config.args for config in declared.plugin_config}

    def arguments(name: str, model: type[M]) -> M:
        where = (path, "pluginConfig", name)
        return _validated(model, args.get(name, {}), source, where)

    fit = arguments("NodeResourcesFit", NodeResourcesFitArgs)
    strategy = fit.scoring_strategy
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type == "RequestedToCapacityRatio" and ratio is None:
        where = f"{path}.pluginConfig[NodeResourcesFit].scoringStrategy.requestedToCapacityRatio"
        raise InputError([Finding(source, _KIND, where, "is required")])
    balanced = arguments(
        "NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocationArgs
    )
    affinity = arguments("InterPodAffinity", InterPodAffinityArgs)
    spread = arguments("PodTopologySpread", PodTopologySpreadArgs)
    by_system = spread.defaulting_type == "System"
    default_constraints = spread.default_constraints
    # By `System` the scheduler has constraints of its own, whatever the list says.
    if by_system:
        default_constraints = SYSTEM_CONSTRAINTS
    # What a profile says counts more than what the configuration says for all of them.
    if declared.percentage_of_nodes_to_score is not None:
        percentage = declared.percentage_of_nodes_to_score
    scoring_plugins = (*plugins.multi_point.enabled, *plugins.score.enabled)
    points = ratio.shape if ratio else ()
    # An empty list stands for the default one, too.
    resources = strategy.resources or _CPU_AND_MEMORY
    balanced_resources = balanced.resources or _CPU_AND_MEMORY
    return Profile(
        name=declared.scheduler_name,
        no_filters=frozenset(_disabled(plugins.multi_point, plugins.filter)),
        no_scores=frozenset(_disabled(plugins.multi_point, plugins.score)),
        weights={plugin.name: plugin.weight or 1 for plugin in scoring_plugins},
        percentage=percentage,
        strategy=Strategy(strategy.type),
        shape=tuple(
            (point.utilization, point.score * _SCALE) for point in points
        ),
        scored_resources={spec.name: spec.weight or 1 for spec in resources},
        ignored_resources=frozenset(fit.ignored_resources),
        ignored_groups=frozenset(fit.ignored_resource_groups),
        balanced_resources=tuple(spec.name for spec in balanced_resources),
        added_affinity=arguments(
            "NodeAffinity", NodeAffinityArgs
        ).added_affinity,
        hard_affinity_weight=affinity.hard_pod_affinity_weight,
        ignores_preferences_of_others=affinity.ignore_preferred_terms_of_existing_pods,
        default_constraints=default_constraints,
        spread_by_system=by_system,
    )


def _disabled(multi_point: PluginSet, point: PluginSet) -> Iterator[str]:
    """The plugins that do not run at an extension point: what is said for it counts more than what is said for all."""
    for plugin in PLUGINS:
        name = plugin.name
        if _names(name, point.enabled):
            continue
        enabled = _names(name, multi_point.enabled)
        runs = enabled or not _names(name, multi_point.disabled)
        if not runs or _names(name, point.disabled):
            yield name


def _names(plugin: str, listed: Iterable[Any]) -> bool:
    return any(entry.name in (plugin, _EVERY) for entry in listed)


def _validated(
    model: type[M], data: Mapping[str, Any], source: str, path: tuple[str, ...]
) -> M:
    try:
        return model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as failure:
        errors = failure.errors(include_url=False)
        findings = [
            Finding(
                source, _KIND, field_path((*path, *error["loc"])), rule(error)
            )
            for error in errors
        ]
        raise InputError(findings) from None
