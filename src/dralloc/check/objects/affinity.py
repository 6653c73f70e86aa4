"""Required affinity and anti-affinity between pods, and the order in which pods can have come.

Source: ``framework/plugins/interpodaffinity/filtering.go`` of ``kubernetes/pkg/scheduler``.

Whoever has terms of affinity comes where there is, for each of them, somebody in the domain of the node; that somebody
is meant by all of the terms, and came before. If there is nobody yet whom they mean, on any node with one of their
labels, then a pod which they mean itself may begin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

import networkx as nx

from dralloc.check.objects.whereabouts import (
    AffinityTerm,
    PodOnNode,
    Whereabouts,
    domain_of,
    term_of,
)
from dralloc.objects.api import PodAffinity

__all__ = [
    "affinity_holds_in_order",
    "affinity_holds_in_some_order",
    "nobody_is_too_near",
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
    occupied
        The domains in which somebody is whom all of them mean.
    """

    terms: tuple[AffinityTerm, ...]
    meant: frozenset[PodOnNode]
    occupied: set[Pair] = field(default_factory=set)

    def pairs(self, pod: PodOnNode) -> set[Pair]:
        """The domains of a pod's node, as far as it has the labels."""
        domains = (
            (term.topology_key, domain_of(pod.node, term.topology_key))
            for term in self.terms
        )
        return {(key, domain) for key, domain in domains if domain is not None}

    def has_all_labels(self, pod: PodOnNode) -> bool:
        """Whether the pod's node has all labels."""
        return len(self.pairs(pod)) == len(
            {term.topology_key for term in self.terms}
        )

    def lets_come(self, pod: PodOnNode) -> bool:
        """Whether a pod that has the terms may come to its node now."""
        if not self.has_all_labels(pod):
            return False
        begins = not self.occupied and pod in self.meant
        return begins or self.pairs(pod) <= self.occupied


class AffinityRules:
    """The rules of affinity of newcomers."""

    def __init__(self, whereabouts: Whereabouts) -> None:
        self._whereabouts = whereabouts
        self._rules: dict[tuple[AffinityTerm, ...], AffinityRule] = {}
        self.carried: dict[PodOnNode, AffinityRule] = {}
        for pod in whereabouts.newcomers:
            affinity = pod.pod.spec.affinity
            required = (
                (affinity.pod_affinity or PodAffinity()).required
                if affinity
                else ()
            )
            if required and whereabouts.has_filter(pod, INTER_POD_AFFINITY):
                terms = tuple(
                    whereabouts.of_incoming(term_of(api_term, pod))
                    for api_term in required
                )
                self.carried[pod] = self._rule(terms)
        self.meaning: dict[PodOnNode, list[AffinityRule]] = defaultdict(list)
        for rule in self._rules.values():
            for pod in rule.meant:
                self.meaning[pod].append(rule)

    def _rule(self, terms: tuple[AffinityTerm, ...]) -> AffinityRule:
        if terms not in self._rules:
            everybody = [
                set(self._whereabouts.meant_by(term)) for term in terms
            ]
            meant = set.intersection(*everybody)
            rule = AffinityRule(
                terms, frozenset(pod for pod in meant if pod.is_newcomer)
            )
            for pod in meant - rule.meant:
                rule.occupied |= rule.pairs(pod)
            self._rules[terms] = rule
        return self._rules[terms]

    def enter(self, pod: PodOnNode) -> None:
        """Note that a newcomer has come."""
        for rule in self.meaning.get(pod, ()):
            rule.occupied |= rule.pairs(pod)


def affinity_holds_in_order(whereabouts: Whereabouts) -> Iterator[str]:
    """Check that each newcomer, when it came, found a pod that its affinity means, or was allowed to be the first."""
    rules = AffinityRules(whereabouts)
    for pod in whereabouts.newcomers if rules.carried else ():
        if pod in rules.carried and not rules.carried[pod].lets_come(pod):
            yield _nobody_is_near(pod)
        rules.enter(pod)


def _nobody_is_near(pod: PodOnNode) -> str:
    """Return the violation by a pod that cannot have come, as no pod that its affinity names was there."""
    return f"{pod}: nobody whom its affinity means can have been near node {pod.node.name} before it"


# ----------------------------------------------------------------------------
# Required anti-affinity between pods.
#
# Source: ``framework/plugins/interpodaffinity/filtering.go`` of
# ``kubernetes/pkg/scheduler``.
#
# It does not depend on an order: of two pods of which one keeps the other away,
# whoever comes last is refused.


def nobody_is_too_near(whereabouts: Whereabouts) -> Iterator[str]:
    """Check that no pod is in a domain with another one whose anti-affinity names it."""
    for term, having in _anti_affinity(whereabouts).items():
        meant = whereabouts.meant_by(term)
        # Upstream reads the term in another way when the pod that has it comes (see `Whereabouts.of_incoming`).
        meant_when_it_comes = whereabouts.meant_by(
            whereabouts.of_incoming(term)
        )
        if not any(pod.is_newcomer for pod in (*having, *meant)):
            # Pods that had their nodes before may be as near as they are.
            continue
        having_in = _by_domain(having, term.topology_key)
        meant_in = _by_domain(meant, term.topology_key)
        meant_when_it_comes_in = _by_domain(
            meant_when_it_comes, term.topology_key
        )
        for domain, having_there in having_in.items():
            together = _Together(
                f"{term.topology_key}={domain}",
                having_there,
                meant_in.get(domain, ()),
                meant_when_it_comes_in.get(domain, ()),
            )
            yield from together.violations(whereabouts)


def _anti_affinity(
    whereabouts: Whereabouts,
) -> Mapping[AffinityTerm, list[PodOnNode]]:
    """The pods that have each term."""
    having: dict[AffinityTerm, list[PodOnNode]] = defaultdict(list)
    for pod in whereabouts.everybody:
        affinity = pod.pod.spec.affinity
        anti_affinity = affinity.pod_anti_affinity if affinity else None
        for api_term in anti_affinity.required if anti_affinity else ():
            having[term_of(api_term, pod)].append(pod)
    return having


def _by_domain(
    pods: Sequence[PodOnNode], topology_key: str
) -> Mapping[str, list[PodOnNode]]:
    by_domain: dict[str, list[PodOnNode]] = defaultdict(list)
    for pod in pods:
        domain = domain_of(pod.node, topology_key)
        if domain is not None:
            by_domain[domain].append(pod)
    return by_domain


class _Together(NamedTuple):
    """Pods in one domain: those that have a term of anti-affinity, and those that it means.

    Parameters
    ----------
    meant, meant_when_it_comes
        Whom it means if they come later, and if whoever has it comes later.
    """

    domain: str
    having: Sequence[PodOnNode]
    meant: Sequence[PodOnNode]
    meant_when_it_comes: Sequence[PodOnNode]

    def violations(self, whereabouts: Whereabouts) -> Iterator[str]:
        """Yield a violation for each newcomer whose domain had a pod which it excludes, or which excludes it.

        In a free order, which makes no difference here, they come as they are listed.
        """
        for pod, meant in _after_the_first(
            whereabouts, self.having, self.meant_when_it_comes
        ):
            yield f"{pod}: its anti-affinity keeps it away from {meant}, in {self.domain}"
        for pod, having in _after_the_first(
            whereabouts, self.meant, self.having
        ):
            yield f"{pod}: anti-affinity of {having} keeps it out of {self.domain}"


def _after_the_first(
    whereabouts: Whereabouts,
    pods: Sequence[PodOnNode],
    opponents: Sequence[PodOnNode],
) -> Iterator[tuple[PodOnNode, PodOnNode]]:
    """Newcomers that passed the filter when an opponent was there already, each with the first of the opponents."""
    if not opponents:
        return
    first = min(opponents, key=lambda opponent: opponent.position)
    for pod in pods:
        if first.position < pod.position and whereabouts.has_filter(
            pod, INTER_POD_AFFINITY
        ):
            yield pod, first


# ----------------------------------------------------------------------------
# Whether there is an order of pods in which the affinity of each of them holds when
# it comes.


def affinity_holds_in_some_order(whereabouts: Whereabouts) -> Iterator[str]:
    """Check that newcomers have an order in which each finds a pod that its affinity means, or may be the first."""
    rules = AffinityRules(whereabouts)
    for flocks in _apart(_flocks(rules)):
        for flock in _SomeOrder(flocks).stuck():
            yield from map(_nobody_is_near, flock.pods)


@dataclass(eq=False)
class _Flock:
    """Newcomers for which rules of affinity make no difference.

    Parameters
    ----------
    carried
        The rule whose terms they have, if they have any.
    meaning
        The rules that mean them.
    """

    carried: AffinityRule | None
    meaning: Sequence[AffinityRule]
    pods: list[PodOnNode] = field(default_factory=list)

    def pairs(self, rule: AffinityRule) -> set[Pair]:
        """The domains of a rule in which they are."""
        return rule.pairs(self.pods[0])

    @property
    def rules(self) -> Iterator[AffinityRule]:
        """Return all rules that are about them."""
        yield from self.meaning
        if self.carried is not None:
            yield self.carried

    @property
    def may_begin(self) -> bool:
        """Whether one of them may come if no pod is there that its terms mean."""
        rule = self.carried
        return (
            rule is not None
            and rule in self.meaning
            and not rule.occupied
            and rule.has_all_labels(self.pods[0])
        )


def _flocks(rules: AffinityRules) -> Sequence[_Flock]:
    all_rules = dict.fromkeys(
        (*rules.carried.values(), *chain.from_iterable(rules.meaning.values()))
    )
    keys = sorted(
        {term.topology_key for rule in all_rules for term in rule.terms}
    )
    flocks: dict[Hashable, _Flock] = {}
    for pod in dict.fromkeys((*rules.carried, *rules.meaning)):
        carried, meaning = (
            rules.carried.get(pod),
            tuple(rules.meaning.get(pod, ())),
        )
        domains = tuple(domain_of(pod.node, key) for key in keys)
        flocks.setdefault(
            (carried, meaning, domains), _Flock(carried, meaning)
        ).pods.append(pod)
    return list(flocks.values())


def _apart(flocks: Sequence[_Flock]) -> Iterator[Sequence[_Flock]]:
    """The flocks, apart if no rule is about both, directly or by way of others."""
    graph: nx.Graph[_Flock | AffinityRule] = nx.Graph()
    for flock in flocks:
        graph.add_edges_from((flock, rule) for rule in flock.meaning)
        if flock.carried is not None:
            graph.add_edge(flock, flock.carried)
    positions = {flock: position for position, flock in enumerate(flocks)}
    for part in nx.connected_components(graph):
        yield sorted(
            (item for item in part if isinstance(item, _Flock)),
            key=positions.__getitem__,
        )


Beginners = Mapping[AffinityRule, _Flock]
"""Of some rules, the flock of which one pod came first of all whom the rule means."""


There = Mapping[AffinityRule, set[Pair]]
"""The domains in which somebody is whom a rule means."""


class _SomeOrder:
    """Looks for an order in which all flocks can have come.

    Who comes later finds no less than who comes earlier, but for those who begin. So once it is settled who begins,
    everybody comes as soon as possible, and nobody whom a rule means comes before the one who begins for it. Who began
    is tried out where somebody cannot have come without. Before that, two milder questions tell of most answers for
    which there is no order that there is none, however many there are who could have begun.
    """

    def __init__(self, flocks: Sequence[_Flock]) -> None:
        self._flocks = flocks

    def stuck(self) -> Sequence[_Flock]:
        """The flocks that cannot have come; none if there is an order."""
        return (
            self._stuck_if_all_begin()
            or self._stuck_by_one_rule()
            or self._stuck_in_every_order()
        )

    def _stuck_if_all_begin(self) -> Sequence[_Flock]:
        """Return the pods that cannot have come even if every pod that may be a first one is, wherever others are."""
        occupied = self._start()
        for flock in self._flocks:
            if flock.may_begin:
                _enter(flock, occupied)
        return _left(self._flocks, occupied)

    def _stuck_by_one_rule(self) -> Sequence[_Flock]:
        """Return the pods that cannot have come even if all pods with other terms, or with none, are there already."""
        by_rule: dict[AffinityRule, list[_Flock]] = defaultdict(list)
        for flock in self._flocks:
            if flock.carried is not None:
                by_rule[flock.carried].append(flock)
        for rule, carrying in by_rule.items():
            before = set(rule.occupied)
            for flock in self._meant[rule]:
                if flock.carried is not rule:
                    before |= flock.pairs(rule)
            stuck = _left(carrying, {rule: set(before)})
            # Of one rule one flock begins at most: whoever comes next finds its pod.
            beginners = [flock for flock in stuck if flock.may_begin]
            choices = [
                _left(stuck, {rule: before | flock.pairs(rule)})
                for flock in beginners
            ]
            if stuck and all(choices):
                return min((*choices, stuck), key=len)
        return ()

    def _stuck_in_every_order(self) -> Sequence[_Flock]:
        best = self._flocks
        to_try: list[Beginners] = [{}]
        tried: set[frozenset[tuple[AffinityRule, _Flock]]] = set()
        while to_try:
            beginners = to_try.pop()
            if frozenset(beginners.items()) in tried:
                continue
            tried.add(frozenset(beginners.items()))
            stuck = self._stuck_after(beginners)
            if not stuck:
                return ()
            best = min(best, stuck, key=len)
            choices = [
                (flock.carried, flock)
                for flock in stuck
                if flock.carried not in beginners and flock.may_begin
            ]
            to_try += (
                {**beginners, rule: flock}
                for rule, flock in reversed(choices)
                if rule is not None
            )
            if len(choices) > 1:
                # First of all one guess for all of them, as they seldom are in each other's way.
                guess = {
                    rule: flock
                    for rule, flock in reversed(choices)
                    if rule is not None
                }
                to_try.append({**beginners, **guess})
        return best

    def _start(self) -> There:
        """The domains of each rule before anybody came."""
        return {
            rule: set(rule.occupied)
            for flock in self._flocks
            for rule in flock.rules
        }

    @cached_property
    def _meant(self) -> Mapping[AffinityRule, Sequence[_Flock]]:
        meant: dict[AffinityRule, list[_Flock]] = defaultdict(list)
        for flock in self._flocks:
            for rule in flock.meaning:
                meant[rule].append(flock)
        return meant

    def _stuck_after(self, beginners: Beginners) -> Sequence[_Flock]:
        """Return the pods that cannot have come if these came first."""
        occupied = self._start()
        pending = dict(beginners)
        waiting = self._flocks
        while True:
            # Whoever begins for one rule waits until those have begun whose rules mean it.
            beginning = [
                rule
                for rule, flock in pending.items()
                if not _must_wait(flock, pending, beside=rule)
            ]
            for rule in beginning:
                _enter(pending.pop(rule), occupied)
            # All that may come now come at once: whoever is there only helps the others.
            coming = [
                flock
                for flock in waiting
                if not _must_wait(flock, pending) and _is_near(flock, occupied)
            ]
            for flock in coming:
                _enter(flock, occupied)
            if not beginning and not coming:
                return waiting
            come = set(coming)
            waiting = [flock for flock in waiting if flock not in come]


def _must_wait(
    flock: _Flock, pending: Beginners, beside: AffinityRule | None = None
) -> bool:
    """Whether another pod has to be first, for a rule that would see the flock."""
    return any(
        rule in pending and rule is not beside and flock.pairs(rule)
        for rule in flock.meaning
    )


def _left(flocks: Sequence[_Flock], occupied: There) -> Sequence[_Flock]:
    """Return the pods of some flocks that cannot come one after the other if no pod may be a first one any more."""
    waiting = flocks
    while True:
        coming = {flock for flock in waiting if _is_near(flock, occupied)}
        if not coming:
            return waiting
        for flock in coming:
            _enter(flock, occupied)
        waiting = [flock for flock in waiting if flock not in coming]


def _is_near(flock: _Flock, occupied: There) -> bool:
    rule = flock.carried
    return rule is None or (
        rule.has_all_labels(flock.pods[0])
        and flock.pairs(rule) <= occupied[rule]
    )


def _enter(flock: _Flock, occupied: There) -> None:
    for rule in flock.meaning:
        if rule in occupied:
            occupied[rule] |= flock.pairs(rule)
