"""Topology spread that must hold (``DoNotSchedule``).

Source: ``framework/plugins/podtopologyspread/filtering.go`` of ``kubernetes/pkg/scheduler``; KEP-895, KEP-3022.

A constraint is looked at when a pod that has it comes: with the pod there are in its domain no more pods that count
than the skew above the fewest in any domain. Pods count that are selected, in the pod's namespace, on nodes that have
the labels of all constraints of the pod and are eligible by its policies.

In an order that is free, as many as are to come can come always to the domain with the fewest first. So there is one if
for each domain those with the constraint, with those that were there before, are no more than the skew above the fewest
in any domain in the end: whoever else counts there can come last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from dralloc.check.objects.matching import (
    Conditions,
    all_hold,
    conditions_of,
    is_tolerated,
    node_is_selected,
)
from dralloc.check.objects.whereabouts import PodOnNode, Whereabouts, domain_of
from dralloc.objects.api import Node, Pod, TopologySpreadConstraint

__all__ = ["spread_is_even_in_order", "spread_is_even_in_some_order"]

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

    given: TopologySpreadConstraint
    selector: Conditions
    is_default: bool
    domains: Mapping[str, str]
    counting: frozenset[PodOnNode]
    carrying: dict[PodOnNode, None] = field(default_factory=dict)

    @cached_property
    def before(self) -> Mapping[str, int]:
        """How many pods counted in each domain before anybody came."""
        counts = Counter(dict.fromkeys(self.domains.values(), 0))
        for pod in self.counting:
            domain = self.home_of(pod)
            if domain is not None and not pod.is_newcomer:
                counts[domain] += 1
        return counts

    @property
    def has_few_domains(self) -> bool:
        """Whether there are so few domains that the fewest pods in any are taken for none."""
        return len(self.before) < (self.given.min_domains or 1)

    def home_of(self, pod: PodOnNode) -> str | None:
        """The domain in which a pod counts; None if it counts nowhere."""
        return self.domains.get(pod.node.name) if pod in self.counting else None

    def counts_itself(self, pod: PodOnNode) -> bool:
        """Whether the constraint of a pod means itself."""
        return self.is_default or all_hold(self.selector, pod.labels)

    def too_many(self, domain: str | None, number: int, fewest: int) -> str:
        """What is wrong with so many pods in a domain; empty if nothing is."""
        if domain is None:
            return f"node has no label {self.given.topology_key}, by which it is to be spread"
        if number - fewest <= self.given.max_skew:
            return ""
        name = f"{self.given.topology_key}={domain}"
        few = f"{fewest} are in the domain with the fewest"
        return f"topology spread: {number} in {name}, but {few}, and the skew is {self.given.max_skew}"


def _rules(whereabouts: Whereabouts) -> Sequence[_SpreadRule]:
    """The constraints of newcomers, each with those who have it."""
    rules: dict[Hashable, _SpreadRule] = {}
    eligible: dict[Hashable, tuple[Mapping[str, str], frozenset[str]]] = {}
    for pod in whereabouts.newcomers:
        controller = (
            "" if pod.pod.spec.topology_spread_constraints else _controller_of(pod)
        )
        hard = [
            given
            for given in _constraints(whereabouts, pod, controller)
            if given.when_unsatisfiable == _HARD
        ]
        for given in hard if whereabouts.has_filter(pod, _FILTER) else ():
            nodes = _eligibility(pod.pod, given, hard)
            if nodes not in eligible:
                by_node = dict(_eligible(whereabouts, pod.pod, given, hard))
                eligible[nodes] = by_node, frozenset(by_node)
            domains, names = eligible[nodes]
            selector = (
                None
                if controller
                else conditions_of(
                    given.label_selector, pod.labels, given.match_label_keys
                )
            )
            limits = given.topology_key, given.max_skew, given.min_domains
            key = pod.namespace, controller, selector, limits, names
            if key not in rules:
                counting = _counting(whereabouts, pod.namespace, controller, selector)
                rules[key] = _SpreadRule(
                    given, selector, bool(controller), domains, frozenset(counting)
                )
            rules[key].carrying[pod] = None
    return list(rules.values())


def _constraints(
    whereabouts: Whereabouts, pod: PodOnNode, controller: str
) -> Sequence[TopologySpreadConstraint]:
    """The constraints of a pod; of one that says nothing, those of its scheduler for pods with a controller."""
    own = pod.pod.spec.topology_spread_constraints
    defaults = (
        whereabouts.promise.filters_of(pod.pod).default_constraints
        if controller
        else ()
    )
    return own or defaults


def _controller_of(pod: PodOnNode) -> str:
    """What makes the pod, if that selects pods; a Deployment stands for its ReplicaSet. Empty if there is nothing.

    Source: ``framework/plugins/helper/spread.go`` of ``kubernetes/pkg/scheduler``.
    """
    for owner in pod.pod.metadata.owner_references:
        if owner.controller and owner.kind in _WITH_SELECTOR:
            return f"{owner.kind} {owner.name}"
    return ""


def _counting(
    whereabouts: Whereabouts, namespace: str, controller: str, selector: Conditions
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
    pod: Pod, given: TopologySpreadConstraint, hard: Sequence[TopologySpreadConstraint]
) -> Hashable:
    """What decides on which nodes pods count."""
    keys = given.topology_key, frozenset(constraint.topology_key for constraint in hard)
    required = pod.spec.required_nodes
    selected = (
        tuple(sorted(pod.spec.node_selector.items())),
        required.model_dump_json() if required else "",
    )
    tolerations = pod.spec.tolerations
    return (
        keys,
        selected if given.node_affinity_policy == "Honor" else None,
        tolerations if given.node_taints_policy == "Honor" else None,
    )


def _eligible(
    whereabouts: Whereabouts,
    pod: Pod,
    given: TopologySpreadConstraint,
    hard: Sequence[TopologySpreadConstraint],
) -> Iterator[tuple[str, str]]:
    for node in whereabouts.nodes.values():
        labels = node.metadata.labels
        has_labels = all(constraint.topology_key in labels for constraint in hard)
        is_selected = given.node_affinity_policy != "Honor" or _may_select(pod, node)
        is_for_pod = given.node_taints_policy != "Honor" or is_tolerated(
            node.spec.taints, pod
        )
        if has_labels and is_selected and is_for_pod:
            yield node.name, labels[given.topology_key]


def _may_select(pod: Pod, node: Node) -> bool:
    labels, required = node.metadata.labels, pod.spec.required_nodes
    has_labels = all(
        labels.get(key) == value for key, value in pod.spec.node_selector.items()
    )
    return has_labels and (required is None or node_is_selected(required, node))


def spread_is_even_in_some_order(whereabouts: Whereabouts) -> Iterator[str]:
    """For each constraint there is an order of newcomers in which all that have it may come."""
    for rule in _rules(whereabouts):
        newcomers = [pod for pod in rule.counting if pod.is_newcomer]
        after = Counter(rule.before)
        after.update(home for home in map(rule.home_of, newcomers) if home is not None)
        fewest = 0 if rule.has_few_domains else min(after.values(), default=0)
        by_domain: dict[str | None, list[PodOnNode]] = defaultdict(list)
        for pod in rule.carrying:
            by_domain[domain_of(pod.node, rule.given.topology_key)].append(pod)
        for domain, pods in by_domain.items():
            counted = sum(rule.home_of(pod) is not None for pod in pods)
            # Who counts, but not on this node, counts when it comes itself.
            alone = any(rule.counts_itself(pod) for pod in pods)
            number = rule.before.get(domain or "", 0) + max(counted, alone)
            wrong = rule.too_many(domain, number, fewest)
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
            domain = domain_of(pod.node, rule.given.topology_key)
            fewest = 0 if rule.has_few_domains else tallies[rule].fewest
            number = tallies[rule].counts[domain or ""] + rule.counts_itself(pod)
            wrong = rule.too_many(domain, number, fewest)
            if wrong:
                yield f"{pod}: {wrong}"
        for rule in counting.get(pod, ()):
            home = rule.home_of(pod)
            if home is not None:
                tallies[rule].enter(home)


class _Tally:
    """How many pods count in each domain, and how many do in the one with the fewest."""

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
            self.fewest += 1
