"""Required affinity between pods.

Source: ``framework/plugins/interpodaffinity/filtering.go`` of ``kubernetes/pkg/scheduler``.

Whoever has terms of affinity comes where there is, for each of them, somebody in the domain of the node; that somebody
is meant by all of the terms, and came before. If there is nobody yet whom they mean, on any node with one of their
labels, then a pod which they mean itself may begin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dralloc.check.objects.whereabouts import (
    AffinityTerm,
    PodOnNode,
    Whereabouts,
    domain_of,
    term_of,
)
from dralloc.objects.api import PodAffinity

__all__ = [
    "INTER_POD_AFFINITY",
    "AffinityRule",
    "AffinityRules",
    "Pair",
    "affinity_holds_in_order",
    "nobody_is_near",
]

INTER_POD_AFFINITY: Final = "InterPodAffinity"
"""The plugin whose filter it is."""

Pair = tuple[str, str]
"""A topology key and a value: a domain."""


@dataclass(eq=False)
class AffinityRule:
    """Terms of affinity that must hold together.

    Parameters
    ----------
    meant
        The newcomers that all of them mean.
    there
        The domains in which somebody is whom all of them mean.
    """

    terms: tuple[AffinityTerm, ...]
    meant: frozenset[PodOnNode]
    there: set[Pair] = field(default_factory=set)

    def pairs(self, pod: PodOnNode) -> set[Pair]:
        """The domains of a pod's node, as far as it has the labels."""
        domains = (
            (term.topology_key, domain_of(pod.node, term.topology_key))
            for term in self.terms
        )
        return {(key, domain) for key, domain in domains if domain is not None}

    def has_all_labels(self, pod: PodOnNode) -> bool:
        """Whether the pod's node has all labels."""
        return len(self.pairs(pod)) == len({term.topology_key for term in self.terms})

    def lets_come(self, pod: PodOnNode) -> bool:
        """Whether a pod that has the terms may come to its node now."""
        if not self.has_all_labels(pod):
            return False
        begins = not self.there and pod in self.meant
        return begins or self.pairs(pod) <= self.there


class AffinityRules:
    """The rules of affinity of newcomers."""

    def __init__(self, whereabouts: Whereabouts) -> None:
        self._whereabouts = whereabouts
        self._rules: dict[tuple[AffinityTerm, ...], AffinityRule] = {}
        self.carried: dict[PodOnNode, AffinityRule] = {}
        for pod in whereabouts.newcomers:
            affinity = pod.pod.spec.affinity
            required = (
                (affinity.pod_affinity or PodAffinity()).required if affinity else ()
            )
            if required and whereabouts.has_filter(pod, INTER_POD_AFFINITY):
                terms = tuple(
                    whereabouts.of_incoming(term_of(given, pod)) for given in required
                )
                self.carried[pod] = self._rule(terms)
        self.meaning: dict[PodOnNode, list[AffinityRule]] = defaultdict(list)
        for rule in self._rules.values():
            for pod in rule.meant:
                self.meaning[pod].append(rule)

    def _rule(self, terms: tuple[AffinityTerm, ...]) -> AffinityRule:
        if terms not in self._rules:
            everybody = [set(self._whereabouts.meant_by(term)) for term in terms]
            meant = set.intersection(*everybody)
            rule = AffinityRule(
                terms, frozenset(pod for pod in meant if pod.is_newcomer)
            )
            for pod in meant - rule.meant:
                rule.there |= rule.pairs(pod)
            self._rules[terms] = rule
        return self._rules[terms]

    def enter(self, pod: PodOnNode) -> None:
        """Note that a newcomer has come."""
        for rule in self.meaning.get(pod, ()):
            rule.there |= rule.pairs(pod)


def affinity_holds_in_order(whereabouts: Whereabouts) -> Iterator[str]:
    """Each newcomer found somebody whom its affinity means, or was the one who may begin, when it came."""
    rules = AffinityRules(whereabouts)
    for pod in whereabouts.newcomers if rules.carried else ():
        if pod in rules.carried and not rules.carried[pod].lets_come(pod):
            yield nobody_is_near(pod)
        rules.enter(pod)


def nobody_is_near(pod: PodOnNode) -> str:
    """What is wrong with a pod that cannot have come."""
    return f"{pod}: nobody whom its affinity means can have been near node {pod.node.name} before it"
