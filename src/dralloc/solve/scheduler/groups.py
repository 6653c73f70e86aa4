"""Groups of pods that are scheduled together, and the nodes among which each may choose (KEP-4671, KEP-5732).

Source: ``framework/plugins/gangscheduling/gangscheduling.go``, ``topologyaware/topology_placement.go``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dralloc.objects.api import Pod, PodGroup
from dralloc.objects.api.workloads import PodGroupSpec
from dralloc.objects.cluster import Cluster
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.snapshot import Snapshot
from dralloc.solve.scheduler.verdicts import Places

__all__ = ["Group", "PlacementError", "find_groups", "placements_of"]


class PlacementError(Exception):
    """An error: there are no nodes for a group as a whole. Says why, in the scheduler's words."""


@dataclass(frozen=True, eq=False)
class Group:
    """A group of pods.

    Parameters
    ----------
    is_missing
        Whether there is no such PodGroup.
    creation_time
        When it was made; empty if that is not known.
    parent
        The CompositePodGroup above it.
    quorum
        How many of its pods must have a node for any of them to be bound.
    topology
        The label of which their nodes have the same value; empty if that does not matter.
    pods
        All of them, those that run already included.
    """

    key: ClaimKey
    is_missing: bool
    creation_time: str
    parent: ClaimKey | None
    quorum: int
    topology: str
    pods: Sequence[ClaimKey]

    @property
    def is_admissible(self) -> bool:
        """Whether it has enough pods."""
        return len(self.pods) >= self.quorum

    def is_admitted(self, homes: Mapping[ClaimKey, str]) -> bool:
        """Whether enough of its pods have a node, given the nodes of those that have one."""
        return sum(key in homes for key in self.pods) >= self.quorum

    @property
    def held_back(self) -> str:
        """Why its pods do not come into the queue; empty if they do (``PreEnqueue``)."""
        if self.is_missing:
            return f'waiting for pods\'s pod group "{self.key.name}" to appear in scheduling queue'
        if not self.is_admissible:
            return "waiting for minCount pods from a gang to appear in scheduling queue"
        return ""


def find_groups(
    cluster: Cluster, features: Features
) -> Mapping[ClaimKey, Group]:
    """The group of each pod that is in one, as far as the features let the scheduler know of them."""
    if not features.GenericWorkload:
        return {}
    members: dict[ClaimKey, list[Pod]] = defaultdict(list)
    for pod in cluster.pods:
        if pod.pod_group is not None:
            members[pod.pod_group].append(pod)
    group_of: dict[ClaimKey, Group] = {}
    for key, pods in members.items():
        group = _group(key, cluster.pod_groups.get(key), pods, features)
        group_of.update((pod.key, group) for pod in pods)
    return group_of


def _group(
    key: ClaimKey,
    declared: PodGroup | None,
    pods: Sequence[Pod],
    features: Features,
) -> Group:
    spec = declared.spec if declared else PodGroupSpec()
    gang = spec.scheduling_policy.gang
    constraints = spec.scheduling_constraints.topology
    topology = ""
    if constraints and features.TopologyAwareWorkloadScheduling:
        topology = constraints[0].key
    above = (
        spec.parent_composite_pod_group_name
        if features.CompositePodGroup
        else None
    )
    created = declared.metadata.creation_timestamp if declared else None
    return Group(
        key=key,
        is_missing=declared is None,
        creation_time=created or "",
        parent=ClaimKey(key.namespace, above) if above else None,
        # Without a gang policy pods do not depend on each other: one is enough.
        quorum=gang.min_count if gang else 1,
        topology=topology,
        pods=[pod.key for pod in pods],
    )


class InDomain(Protocol):
    """Pods that may have to be in one domain: those of a group, or of a group of groups."""

    @property
    def topology(self) -> str:
        """The label of which their nodes have the same value; empty if that does not matter."""

    @property
    def pods(self) -> Sequence[ClaimKey]:
        """All of them, those that run already included."""


def placements_of(
    group: InDomain,
    homes: Mapping[ClaimKey, str],
    snapshot: Snapshot,
    within: Places | None = None,
) -> Mapping[str, Places | None]:
    """The sets of nodes that are tried for a group, by domain; None for all nodes.

    Parameters
    ----------
    homes
        The nodes of pods that have one.
    within
        The positions of the nodes that there are, for a group in a tree; all, if not given.

    Raises
    ------
    PlacementError
        There is no such set; or the pods of the group that have nodes are in no domain, or in several.
    """
    if not group.topology:
        return {"": within}
    occupied = {
        _domain(key, snapshot.by_name[homes[key]].labels, group)
        for key in group.pods
        if key in homes
    }
    if len(occupied) > 1:
        names = ", ".join(sorted(occupied))
        raise PlacementError(
            f"cannot determine domain for already scheduled pods: more than 1 domain found for pod group: {names}"
        )
    nodes: Iterable[NodeInfo] = snapshot.nodes
    if within is not None:
        nodes = (snapshot.nodes[position] for position in within.tolist())
    domains: dict[str, list[int]] = defaultdict(list)
    for node in nodes:
        domain = node.labels.get(group.topology)
        if domain is None:
            continue
        # Who comes later goes where the others of the group are.
        if not occupied or domain in occupied:
            domains[domain].append(node.place)
    if not domains:
        raise PlacementError("no feasible placements found")
    return {
        domain: np.array(positions, np.intp)
        for domain, positions in domains.items()
    }


def _domain(pod: ClaimKey, labels: Mapping[str, str], group: InDomain) -> str:
    if group.topology not in labels:
        raise PlacementError(
            f"cannot determine domain for already scheduled pods: no topology domain found for pod {pod}"
        )
    return labels[group.topology]
