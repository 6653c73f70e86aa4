"""Rules that count pods by the domain of their node: topology spread that must hold, and groups in one domain."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from dralloc.check.objects.node_requests import extended_resources
from dralloc.check.objects.selection import (
    Conditions,
    all_hold,
    conditions_of,
    is_tolerated,
    node_is_selected,
)
from dralloc.check.objects.whereabouts import PodOnNode, Whereabouts, domain_of
from dralloc.objects.api import (
    CompositePodGroup,
    Node,
    Pod,
    TopologySpreadConstraint,
)
from dralloc.objects.names import ClaimKey

__all__ = [
    "groups_are_kept",
    "spread_is_even_in_order",
    "spread_is_even_in_some_order",
]

# ----------------------------------------------------------------------------
# Topology spread that must hold (``DoNotSchedule``).
#
# Source: ``framework/plugins/podtopologyspread/filtering.go`` of
# ``kubernetes/pkg/scheduler``; KEP-895, KEP-3022.
#
# A constraint is looked at when a pod that has it comes: with the pod there are in
# its domain no more pods that count than the skew above the fewest in any domain.
# Pods count that are selected, in the pod's namespace, on nodes that have the labels
# of all constraints of the pod and are eligible by its policies.
#
# In an order that is free, as many as are to come can come always to the domain with
# the fewest first. So there is one if for each domain those with the constraint, with
# those that were there before, are no more than the skew above the fewest in any
# domain in the end: whoever else counts there can come last.

_FILTER: Final = "PodTopologySpread"
_HARD: Final = "DoNotSchedule"
_WITH_SELECTOR: Final = frozenset(
    {"Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"}
)


@dataclass(eq=False)
class _SpreadRule:
    """A constraint of equal newcomers.

    Parameters
    ----------
    is_default
        Whether it is of the scheduler's configuration: it counts the pods of a controller, and not those selected.
    domains
        The domain of each node on which pods count, by the node's name.
    counting
        The pods that count if they are on such a node.
    carrying
        The newcomers that have it, in order.
    """

    constraint: TopologySpreadConstraint
    selector: Conditions
    is_default: bool
    domains: Mapping[str, str]
    counting: frozenset[PodOnNode]
    carrying: dict[PodOnNode, None] = field(default_factory=dict)

    @cached_property
    def before(self) -> Mapping[str, int]:
        """The number that counted in each domain before anybody came."""
        counts = Counter(dict.fromkeys(self.domains.values(), 0))
        for pod in self.counting:
            domain = self.home_of(pod)
            if domain is not None and not pod.is_newcomer:
                counts[domain] += 1
        return counts

    @property
    def has_few_domains(self) -> bool:
        """Whether there are so few domains that the fewest pods in any are taken for none."""
        return len(self.before) < (self.constraint.min_domains or 1)

    def home_of(self, pod: PodOnNode) -> str | None:
        """The domain in which a pod counts; None if it counts nowhere."""
        return self.domains.get(pod.node.name) if pod in self.counting else None

    def counts_itself(self, pod: PodOnNode) -> bool:
        """Whether the constraint of a pod means itself."""
        return self.is_default or all_hold(self.selector, pod.labels)

    def too_many(self, domain: str | None, pod_count: int, fewest: int) -> str:
        """Return the violation by so many pods in a domain; empty if there is none."""
        if domain is None:
            return f"node has no label {self.constraint.topology_key}, by which it is to be spread"
        if pod_count - fewest <= self.constraint.max_skew:
            return ""
        name = f"{self.constraint.topology_key}={domain}"
        sparsest = f"{fewest} are in the domain with the fewest"
        return f"topology spread: {pod_count} in {name}, but {sparsest}, and the skew is {self.constraint.max_skew}"


def _rules(whereabouts: Whereabouts) -> Sequence[_SpreadRule]:
    """The constraints of newcomers, each with the pods that have it."""
    rules: dict[Hashable, _SpreadRule] = {}
    eligible: dict[Hashable, tuple[Mapping[str, str], frozenset[str]]] = {}
    for pod in whereabouts.newcomers:
        controller = (
            ""
            if pod.pod.spec.topology_spread_constraints
            else _controller_of(pod)
        )
        hard = [
            constraint
            for constraint in _constraints(whereabouts, pod, controller)
            if constraint.when_unsatisfiable == _HARD
        ]
        for constraint in hard if whereabouts.has_filter(pod, _FILTER) else ():
            # Few constraints differ in the nodes that count, and none of them needs to ask all nodes again.
            nodes = _eligibility(pod.pod, constraint, hard)
            if nodes not in eligible:
                by_node = dict(
                    _eligible(whereabouts, pod.pod, constraint, hard)
                )
                eligible[nodes] = by_node, frozenset(by_node)
            domains, names = eligible[nodes]
            selector = (
                None
                if controller
                else conditions_of(
                    constraint.label_selector,
                    pod.labels,
                    constraint.match_label_keys,
                )
            )
            limits = (
                constraint.topology_key,
                constraint.max_skew,
                constraint.min_domains,
            )
            key = pod.namespace, controller, selector, limits, names
            if key not in rules:
                counting = _counting(
                    whereabouts, pod.namespace, controller, selector
                )
                rules[key] = _SpreadRule(
                    constraint,
                    selector,
                    bool(controller),
                    domains,
                    frozenset(counting),
                )
            rules[key].carrying[pod] = None
    return list(rules.values())


def _constraints(
    whereabouts: Whereabouts, pod: PodOnNode, controller: str
) -> Sequence[TopologySpreadConstraint]:
    """The constraints of a pod; of one that says nothing, those of its scheduler for pods with a controller."""
    constraints = pod.pod.spec.topology_spread_constraints
    defaults = (
        whereabouts.promise.filters_of(pod.pod).default_constraints
        if controller
        else ()
    )
    return constraints or defaults


def _controller_of(pod: PodOnNode) -> str:
    """Return the controller of the pod if it has a selector (the Deployment for its ReplicaSet); else empty.

    Source: ``framework/plugins/helper/spread.go`` of ``kubernetes/pkg/scheduler``.
    """
    for owner in pod.pod.metadata.owner_references:
        if owner.controller and owner.kind in _WITH_SELECTOR:
            return f"{owner.kind} {owner.name}"
    return ""


def _counting(
    whereabouts: Whereabouts,
    namespace: str,
    controller: str,
    selector: Conditions,
) -> Iterable[PodOnNode]:
    """The pods of a namespace that count: those that are selected, or those of a controller."""
    if controller:
        for pod in whereabouts.everybody:
            if pod.namespace == namespace and _controller_of(pod) == controller:
                yield pod
    elif selector:
        # A selector of everything counts nobody (upstream behaviour).
        yield from whereabouts.in_namespace(namespace, selector)


def _eligibility(
    pod: Pod,
    constraint: TopologySpreadConstraint,
    hard: Sequence[TopologySpreadConstraint],
) -> Hashable:
    """Return the rules that decide on which nodes pods count for a spread constraint."""
    all_keys = frozenset(spread.topology_key for spread in hard)
    keys = constraint.topology_key, all_keys
    required = pod.spec.required_nodes
    selected = (
        tuple(sorted(pod.spec.node_selector.items())),
        required.model_dump_json() if required else "",
    )
    tolerations = pod.spec.tolerations
    return (
        keys,
        selected if constraint.node_affinity_policy == "Honor" else None,
        tolerations if constraint.node_taints_policy == "Honor" else None,
    )


def _eligible(
    whereabouts: Whereabouts,
    pod: Pod,
    constraint: TopologySpreadConstraint,
    hard: Sequence[TopologySpreadConstraint],
) -> Iterator[tuple[str, str]]:
    honors_affinity = constraint.node_affinity_policy == "Honor"
    honors_taints = constraint.node_taints_policy == "Honor"
    for node in whereabouts.nodes.values():
        labels = node.metadata.labels
        has_labels = all(spread.topology_key in labels for spread in hard)
        is_selected = not honors_affinity or _may_select(pod, node)
        is_for_pod = not honors_taints or is_tolerated(node.spec.taints, pod)
        if has_labels and is_selected and is_for_pod:
            yield node.name, labels[constraint.topology_key]


def _may_select(pod: Pod, node: Node) -> bool:
    labels, required = node.metadata.labels, pod.spec.required_nodes
    has_labels = all(
        labels.get(key) == value
        for key, value in pod.spec.node_selector.items()
    )
    return has_labels and (required is None or node_is_selected(required, node))


def spread_is_even_in_some_order(whereabouts: Whereabouts) -> Iterator[str]:
    """For each constraint there is an order of newcomers in which all that have it may come."""
    for rule in _rules(whereabouts):
        newcomers = [pod for pod in rule.counting if pod.is_newcomer]
        after = Counter(rule.before)
        after.update(
            home for home in map(rule.home_of, newcomers) if home is not None
        )
        fewest = 0 if rule.has_few_domains else min(after.values(), default=0)
        by_domain: dict[str | None, list[PodOnNode]] = defaultdict(list)
        for pod in rule.carrying:
            by_domain[domain_of(pod.node, rule.constraint.topology_key)].append(
                pod
            )
        for domain, pods in by_domain.items():
            counted = sum(rule.home_of(pod) is not None for pod in pods)
            # Who counts, but not on this node, counts when it comes itself.
            alone = any(rule.counts_itself(pod) for pod in pods)
            pod_count = rule.before.get(domain or "", 0) + max(counted, alone)
            wrong = rule.too_many(domain, pod_count, fewest)
            if wrong:
                yield f"{pods[-1]}: {wrong}"


def spread_is_even_in_order(whereabouts: Whereabouts) -> Iterator[str]:
    """Each newcomer kept its constraints when it came."""
    rules = _rules(whereabouts)
    carried: dict[PodOnNode, list[_SpreadRule]] = defaultdict(list)
    counting: dict[PodOnNode, list[_SpreadRule]] = defaultdict(list)
    for rule in rules:
        for pod in rule.carrying:
            carried[pod].append(rule)
        for pod in rule.counting:
            counting[pod].append(rule)
    tallies = {rule: _Tally(rule.before) for rule in rules}
    for pod in whereabouts.newcomers if rules else ():
        for rule in carried.get(pod, ()):
            domain = domain_of(pod.node, rule.constraint.topology_key)
            fewest = 0 if rule.has_few_domains else tallies[rule].fewest
            # With the pod itself, which is entered only when all of its constraints were looked at.
            pod_count = tallies[rule].counts[domain or ""] + rule.counts_itself(
                pod
            )
            wrong = rule.too_many(domain, pod_count, fewest)
            if wrong:
                yield f"{pod}: {wrong}"
        for rule in counting.get(pod, ()):
            home = rule.home_of(pod)
            if home is not None:
                tallies[rule].enter(home)


class _Tally:
    """The numbers of counting pods in each domain, and the smallest of them."""

    def __init__(self, before: Mapping[str, int]) -> None:
        self.counts = Counter(before)
        # How many domains have so many.
        self._domains_with = Counter(before.values())
        self.fewest = min(before.values(), default=0)

    def enter(self, domain: str) -> None:
        """One pod more in a domain."""
        count = self.counts[domain]
        self.counts[domain] += 1
        self._domains_with[count] -= 1
        self._domains_with[count + 1] += 1
        if not self._domains_with[self.fewest]:
            # The last domain with the fewest has one more now, so that is the fewest.
            self.fewest += 1


# ----------------------------------------------------------------------------
# Groups of pods: how many of their pods have a node, and whether they are in one
# domain.
#
# Sources: KEP-4671 (``minCount``), KEP-5732 (one domain), KEP-6012 (groups of
# groups); Workloads of Kubernetes 1.35.
#
# A group is admitted if enough of its pods have a node. Where an answer is a batch of
# pods with devices, those that ask for none are left to others, and count as if they
# had a node; wherever they come, the group's domain is the same.

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
    is_labelled
        Whether its pods have a label in common: a PodGroup of the same name is another group.
    running, placed, left_out
        The pods that had a node, that get one, and that are left to others.
    waiting
        How many pods wait and get no node.
    """

    name: str
    needed: int | None
    topology_key: str = ""
    parent: ClaimKey | None = None
    is_missing: bool = False
    is_labelled: bool = False
    running: list[Pod] = field(default_factory=list)
    placed: list[Pod] = field(default_factory=list)
    left_out: list[Pod] = field(default_factory=list)
    waiting: int = 0

    @property
    def there(self) -> int:
        """The number of its pods that have a node, or are taken to get one."""
        return len(self.running) + len(self.placed) + len(self.left_out)

    @property
    def is_admitted(self) -> bool:
        """Whether enough pods have a node."""
        return self.there > 0 and (
            not self.waiting
            if self.needed is None
            else self.there >= self.needed
        )


class _Groups:
    """The groups of a cluster's pods, and those above them."""

    def __init__(self, whereabouts: Whereabouts) -> None:
        self._whereabouts = whereabouts
        self._batch = not whereabouts.promise.in_order
        self._by_name: dict[tuple[str, bool], _Group] = {}
        self._placed = {pod.pod.key for pod in whereabouts.newcomers}
        for pod in whereabouts.cluster.pods:
            group = self._group_of(pod)
            if group is not None:
                key = group.name, group.is_labelled
                self._enter(self._by_name.setdefault(key, group), pod)

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
            group.left_out.append(pod)
        else:
            group.waiting += 1

    def _waits(self, pod: Pod) -> bool:
        """Whether a pod waits for devices that it does not hold, or that there are nowhere."""
        cluster = self._whereabouts.cluster
        claims = [cluster.claim(key) for key in cluster.pod_claims(pod)]
        if claims:
            return any(
                claim is None or not claim.is_allocated for claim in claims
            )
        offered = self._whereabouts.offered_resources
        return offered is not None and not offered.issuperset(
            extended_resources(pod.spec)
        )

    def _group_of(self, pod: Pod) -> _Group | None:
        promise, key = self._whereabouts.promise, pod.pod_group
        # kube-scheduler knows no groups by label, and mode `scheduler` none of Workloads: both are for batches.
        if self._batch and promise.gang_label in pod.metadata.labels:
            return _Group(
                f"{pod.key.namespace}/{pod.metadata.labels[promise.gang_label]}",
                None,
                is_labelled=True,
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
                    name,
                    group.policy.gang.min_count if group.policy.gang else 1,
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
        """Return, by group of groups, all groups of pods below it, at whatever level."""
        groups: dict[ClaimKey, list[_Group]] = defaultdict(list)
        for group in self._by_name.values():
            for key in self.above(group):
                groups[key].append(group)
        return groups

    def is_admitted(self, key: ClaimKey) -> bool:
        """Whether enough children of a group of groups are admitted."""
        return len(self.admitted_children(key)) >= _needed_of(
            self.composites[key]
        )

    def admitted_children(self, key: ClaimKey) -> Sequence[str]:
        """The children of a group of groups of which enough has nodes, by name."""
        leaves = [
            group.name
            for group in self.below[key]
            if group.parent == key and group.is_admitted
        ]
        nodes = [
            child
            for child in self._composite_children[key]
            if self.is_admitted(child)
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
        """Return why no pod of a group can be placed, whatever the others do; empty if there is no reason."""
        path = self.above(group)
        for key in path:
            if key not in self.composites:
                return f"the CompositePodGroup {key} was not found"
        return (
            f"there are {len(path)} groups above it, or a circle"
            if len(path) >= _DEEPEST
            else ""
        )


def _parent_of(
    key: ClaimKey, group: CompositePodGroup | None
) -> ClaimKey | None:
    name = group.spec.parent_composite_pod_group_name if group else None
    return ClaimKey(key.namespace, name) if name else None


def _needed_of(group: CompositePodGroup) -> int:
    """Return how many children of a group must be admitted; one if they are scheduled independently."""
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
                whereabouts,
                f"group {key}",
                constraints[0].key,
                groups.below[key],
            )


def _lacking(whereabouts: Whereabouts, group: _Group) -> Iterator[str]:
    """Yield a violation for each group of which too few pods have a node."""
    if group.is_missing and whereabouts.promise.in_order:
        yield f"group {group.name}: pods of it are placed, but it was not found"
    elif group.needed is None and group.waiting:
        yield f"group {group.name}: {len(group.placed)} pods are placed, and {group.waiting} are not"
    elif group.needed is not None and not group.is_admitted:
        yield f"group {group.name}: {group.there} pods have a node, {group.needed} are needed"


def _scattered(
    whereabouts: Whereabouts,
    about: str,
    topology_key: str,
    groups: Iterable[_Group],
) -> Iterator[str]:
    """Yield a violation for each group whose pods are not in one domain of a label."""
    if not topology_key:
        return
    nodes = [node for group in groups for node in _nodes_of(whereabouts, group)]
    domains = {
        domain_of(node, topology_key) if node else None for node in nodes
    }
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
