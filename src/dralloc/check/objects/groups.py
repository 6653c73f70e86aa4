"""Groups of pods: how many of their pods have a node, and whether they are in one domain.

Sources: KEP-4671 (``minCount``), KEP-5732 (one domain), KEP-6012 (groups of groups); Workloads of Kubernetes 1.35.

A group is admitted if enough of its pods have a node. Where an answer is a batch of pods with devices, those that ask
for none are left to others, and count as if they had a node; wherever they come, the group's domain is the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from dralloc.check.objects.requests import extended_resources
from dralloc.check.objects.whereabouts import Whereabouts, domain_of
from dralloc.objects.api import CompositePodGroup, Node, Pod
from dralloc.objects.names import ClaimKey

__all__ = ["groups_are_kept"]

_DEEPEST: Final = 4
"""Levels of a tree of groups, PodGroups included (``WorkloadMaxTreeDepth``)."""


@dataclass(eq=False)
class _Group:
    """The pods of a group.

    Parameters
    ----------
    needed
        How many must have a node for any to get one; None for all that wait for devices.
    topology_key
        The label of which all their nodes have the same value; empty if there is no such label.
    parent
        The group of groups that it belongs to.
    is_missing
        Whether nothing says what the group is.
    running, placed, others
        The pods that had a node, that get one, and that are left to others.
    waiting
        How many pods wait and get no node.
    """

    name: str
    needed: int | None
    topology_key: str = ""
    parent: ClaimKey | None = None
    is_missing: bool = False
    running: list[Pod] = field(default_factory=list)
    placed: list[Pod] = field(default_factory=list)
    others: list[Pod] = field(default_factory=list)
    waiting: int = 0

    @property
    def there(self) -> int:
        """How many of its pods have a node, or are taken to get one."""
        return len(self.running) + len(self.placed) + len(self.others)

    @property
    def is_admitted(self) -> bool:
        """Whether enough pods have a node."""
        return self.there > 0 and (
            not self.waiting if self.needed is None else self.there >= self.needed
        )


class _Groups:
    """The groups of a cluster's pods, and those above them."""

    def __init__(self, whereabouts: Whereabouts) -> None:
        self._whereabouts = whereabouts
        self._batch = not whereabouts.promise.in_order
        self._by_name: dict[str, _Group] = {}
        self._placed = {pod.pod.key for pod in whereabouts.newcomers}
        for pod in whereabouts.cluster.pods:
            group = self._group_of(pod)
            if group is not None:
                self._enter(self._by_name.setdefault(group.name, group), pod)

    @property
    def with_newcomers(self) -> Iterator[_Group]:
        """The groups of which some pod gets a node."""
        return (group for group in self._by_name.values() if group.placed)

    def _enter(self, group: _Group, pod: Pod) -> None:
        if pod.spec.node_name:
            group.running.append(pod)
        elif pod.key in self._placed:
            group.placed.append(pod)
        elif pod.spec.scheduling_gates:
            return
        elif self._batch and not self._waits(pod):
            group.others.append(pod)
        else:
            group.waiting += 1

    def _waits(self, pod: Pod) -> bool:
        """Whether a pod waits for devices that it does not hold, or that there are nowhere."""
        cluster = self._whereabouts.cluster
        claims = [cluster.claim(key) for key in cluster.pod_claims(pod)]
        if claims:
            return any(claim is None or not claim.is_allocated for claim in claims)
        offered = self._whereabouts.offered_resources
        return offered is not None and not offered.issuperset(
            extended_resources(pod.spec)
        )

    def _group_of(self, pod: Pod) -> _Group | None:
        promise, key = self._whereabouts.promise, pod.pod_group
        if self._batch and promise.gang_label in pod.metadata.labels:
            return _Group(
                f"{pod.key.namespace}/{pod.metadata.labels[promise.gang_label]}", None
            )
        if not promise.features.GenericWorkload:
            return None
        if key is None:
            return self._group_of_workload(pod) if self._batch else None
        group = self._whereabouts.cluster.pod_groups.get(key)
        if group is None:
            return _Group(str(key), None, is_missing=True)
        constraints = group.spec.scheduling_constraints.topology
        gang = group.spec.scheduling_policy.gang
        above = (
            group.spec.parent_composite_pod_group_name
            if promise.features.CompositePodGroup
            else None
        )
        return _Group(
            name=str(key),
            needed=gang.min_count if gang else 1,
            topology_key=constraints[0].key
            if constraints and promise.features.TopologyAwareWorkloadScheduling
            else "",
            parent=ClaimKey(key.namespace, above) if above else None,
        )

    def _group_of_workload(self, pod: Pod) -> _Group | None:
        reference = pod.spec.workload_ref
        if reference is None:
            return None
        replica = reference.pod_group_replica_key
        name = "/".join(
            [
                pod.key.namespace,
                reference.name,
                reference.pod_group,
                *([replica] if replica else []),
            ]
        )
        workload = self._whereabouts.cluster.workloads.get(
            ClaimKey(pod.key.namespace, reference.name)
        )
        for group in workload.spec.pod_groups if workload else ():
            if group.name == reference.pod_group:
                return _Group(
                    name, group.policy.gang.min_count if group.policy.gang else 1
                )
        return _Group(name, None, is_missing=True)

    def above(self, group: _Group) -> Sequence[ClaimKey]:
        """The groups of groups above a group, from the nearest to the root, no more than are too many."""
        path: list[ClaimKey] = []
        key = group.parent
        while key is not None and len(path) < _DEEPEST:
            path.append(key)
            key = _parent_of(key, self.composites.get(key))
        return path

    @property
    def composites(self) -> Mapping[ClaimKey, CompositePodGroup]:
        """The groups of groups."""
        return self._whereabouts.cluster.composite_pod_groups

    @cached_property
    def below(self) -> Mapping[ClaimKey, Sequence[_Group]]:
        """By group of groups, all groups of pods below it, at whatever level."""
        groups: dict[ClaimKey, list[_Group]] = defaultdict(list)
        for group in self._by_name.values():
            for key in self.above(group):
                groups[key].append(group)
        return groups

    def is_admitted(self, key: ClaimKey) -> bool:
        """Whether enough children of a group of groups are admitted."""
        return len(self.admitted_children(key)) >= _needed_of(self.composites[key])

    def admitted_children(self, key: ClaimKey) -> Sequence[str]:
        """The children of a group of groups of which enough has nodes, by name."""
        leaves = [
            group.name
            for group in self.below[key]
            if group.parent == key and group.is_admitted
        ]
        nodes = [
            child for child in self._composite_children[key] if self.is_admitted(child)
        ]
        return [*leaves, *map(str, nodes)]

    @cached_property
    def _composite_children(self) -> Mapping[ClaimKey, Sequence[ClaimKey]]:
        children: dict[ClaimKey, list[ClaimKey]] = defaultdict(list)
        for key in self.below:
            parent = _parent_of(key, self.composites.get(key))
            if parent is not None:
                children[parent].append(key)
        return children

    def defect_above(self, group: _Group) -> str:
        """Why nobody of a group can be placed, whatever the others do; empty if there is no reason."""
        path = self.above(group)
        for key in path:
            if key not in self.composites:
                return f"the CompositePodGroup {key} was not found"
        return (
            f"there are {len(path)} groups above it, or a circle"
            if len(path) >= _DEEPEST
            else ""
        )


def _parent_of(key: ClaimKey, group: CompositePodGroup | None) -> ClaimKey | None:
    name = group.spec.parent_composite_pod_group_name if group else None
    return ClaimKey(key.namespace, name) if name else None


def _needed_of(group: CompositePodGroup) -> int:
    """How many children must be admitted; one if they are scheduled independently."""
    gang = group.spec.scheduling_policy.gang
    return gang.min_group_count if gang else 1


def groups_are_kept(whereabouts: Whereabouts) -> Iterator[str]:
    """Groups of which some pod gets a node, and those above them, have enough pods, in one domain."""
    groups = _Groups(whereabouts)
    moving, concerned = whereabouts.promise.moving, dict[ClaimKey, bool]()
    for group in groups.with_newcomers:
        grows = any(pod.key not in moving for pod in group.placed)
        if grows:
            yield from _lacking(whereabouts, group)
        yield from _scattered(
            whereabouts, f"group {group.name}", group.topology_key, [group]
        )
        defect = groups.defect_above(group)
        if defect:
            yield f"group {group.name}: {defect}"
        else:
            for key in groups.above(group):
                concerned[key] = grows or concerned.get(key, False)
    for key, grows in concerned.items():
        composite = groups.composites[key]
        admitted, needed = groups.admitted_children(key), _needed_of(composite)
        if grows and len(admitted) < needed:
            yield f"group {key}: {len(admitted)} of its groups are admitted, {needed} are needed"
        constraints = composite.spec.scheduling_constraints.topology
        # Upstream's scheduler does not look at the domains of such groups yet.
        if (
            constraints
            and whereabouts.promise.features.TopologyAwareWorkloadScheduling
            and not whereabouts.promise.in_order
        ):
            yield from _scattered(
                whereabouts, f"group {key}", constraints[0].key, groups.below[key]
            )


def _lacking(whereabouts: Whereabouts, group: _Group) -> Iterator[str]:
    """What is wrong if too few pods of a group have a node."""
    if group.is_missing and whereabouts.promise.in_order:
        yield f"group {group.name}: pods of it are placed, but it was not found"
    elif group.needed is None and group.waiting:
        yield f"group {group.name}: {len(group.placed)} pods are placed, and {group.waiting} are not"
    elif group.needed is not None and not group.is_admitted:
        yield f"group {group.name}: {group.there} pods have a node, {group.needed} are needed"


def _scattered(
    whereabouts: Whereabouts, about: str, topology_key: str, groups: Iterable[_Group]
) -> Iterator[str]:
    """What is wrong if the pods of groups are not in one domain of a label."""
    if not topology_key:
        return
    nodes = [node for group in groups for node in _nodes_of(whereabouts, group)]
    domains = {domain_of(node, topology_key) if node else None for node in nodes}
    if len(domains) > 1 or None in domains:
        names = ", ".join(sorted(domain or "none" for domain in domains))
        yield f"{about}: its pods have to be in one domain of {topology_key}, but are in {names}"


def _nodes_of(whereabouts: Whereabouts, group: _Group) -> Iterator[Node | None]:
    """The nodes of a group's pods; None for one that is not there.

    Upstream's scheduler does not know of pods on nodes that it does not know.
    """
    for pod in group.placed:
        yield whereabouts.node_of[pod.key]
    for pod in group.running:
        node = whereabouts.every_node.get(pod.spec.node_name or "")
        is_known = node is not None and node.name in whereabouts.nodes
        if is_known or not whereabouts.promise.in_order:
            yield node
