"""The profiles of a KubeSchedulerConfiguration: which plugins run, with which weights and arguments.

Source: ``apis/config/v1/defaults.go`` and ``default_plugins.go`` of ``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from dralloc.compile.compiler.extended import is_extended
from dralloc.compile.pods.node_requests import CPU, MEMORY
from dralloc.objects.api import NodeAffinity, TopologySpreadConstraint
from dralloc.objects.api.disclosure import HOSTNAME_LABEL

__all__ = ["SYSTEM_CONSTRAINTS", "Profile", "Shape", "Strategy"]

_DEFAULT_SCHEDULER: Final = "default-scheduler"

SYSTEM_CONSTRAINTS: Final = (
    TopologySpreadConstraint(
        max_skew=3,
        topology_key=HOSTNAME_LABEL,
        when_unsatisfiable="ScheduleAnyway",
    ),
    TopologySpreadConstraint(
        max_skew=5,
        topology_key="topology.kubernetes.io/zone",
        when_unsatisfiable="ScheduleAnyway",
    ),
)

Shape = tuple[tuple[int, int], ...]
"""A broken line: percentages in use, with the scores at these points."""


class Strategy(StrEnum):
    """A strategy by which NodeResourcesFit rates what is left on a node."""

    LEAST = "LeastAllocated"
    MOST = "MostAllocated"
    RATIO = "RequestedToCapacityRatio"


@dataclass(frozen=True)
class Profile:
    """The profile of a KubeSchedulerConfiguration for the pods of one scheduler name.

    Parameters
    ----------
    no_filters, no_scores
        Names of plugins that do not filter, or do not score.
    weights
        Weights by plugin, where they are not the default ones.
    looks_at_once
        Whether several nodes are looked at at a time (``parallelism``, by default 16), so that they are found in no
        order.
    percentage
        ``percentageOfNodesToScore``; 0 for the default, which depends on the number of nodes.
    scored_resources
        Weights of the resources that NodeResourcesFit rates.
    ignored_resources, ignored_groups
        Extended resources that NodeResourcesFit does not look at, by name and by domain.
    balanced_resources
        The resources that NodeResourcesBalancedAllocation looks at.
    hard_affinity_weight
        What required affinity of other pods to a pod counts for.
    spread_by_system
        Whether the default constraints of PodTopologySpread are the system's.
    """

    name: str = _DEFAULT_SCHEDULER
    no_filters: frozenset[str] = frozenset()
    no_scores: frozenset[str] = frozenset()
    weights: Mapping[str, int] = field(default_factory=dict)
    looks_at_once: bool = True
    percentage: int = 0
    strategy: Strategy = Strategy.LEAST
    shape: Shape = ()
    scored_resources: Mapping[str, int] = field(
        default_factory=lambda: {CPU: 1, MEMORY: 1}
    )
    ignored_resources: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()
    balanced_resources: tuple[str, ...] = (CPU, MEMORY)
    added_affinity: NodeAffinity = field(default_factory=NodeAffinity)
    hard_affinity_weight: int = 1
    ignores_preferences_of_others: bool = False
    default_constraints: tuple[TopologySpreadConstraint, ...] = (
        SYSTEM_CONSTRAINTS
    )
    spread_by_system: bool = True

    def ignores(self, resource: str) -> bool:
        """Whether NodeResourcesFit does not look at a resource; it looks at all that are not extended ones."""
        is_listed = (
            resource in self.ignored_resources
            or resource.partition("/")[0] in self.ignored_groups
        )
        return is_listed and is_extended(resource)
