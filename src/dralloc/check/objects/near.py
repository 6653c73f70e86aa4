"""Required affinity and anti-affinity between pods.

Source: ``framework/plugins/interpodaffinity/filtering.go`` of ``kubernetes/pkg/scheduler``.

Anti-affinity does not depend on an order: of two pods of which one keeps the other away, whoever comes last is refused.
Affinity does. Whoever has terms comes where there is, for each of them, somebody in the domain of the node; that
somebody is meant by all of the terms, and came before. If there is nobody yet whom they mean, on any node with one of
their labels, then a pod which they mean itself may begin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

import networkx as nx

from dralloc.api import PodAffinity
from dralloc.check.objects.whereabouts import AffinityTerm, PodOnNode, Whereabouts, domain_of, term_of

__all__ = ["affinity_holds_in_order", "affinity_holds_in_some_order", "nobody_is_too_near"]

_FILTER: Final = "InterPodAffinity"

Pair = tuple[str, str]
"""A topology key and a value: a domain."""


def nobody_is_too_near(whereabouts: Whereabouts) -> Iterator[str]:
    """Nobody whom a term of anti-affinity means is in one domain with somebody else who has it."""
    for term, having in _anti_affinity(whereabouts).items():
        meant = whereabouts.meant_by(term)
        meant_when_it_comes = whereabouts.meant_by(whereabouts.of_incoming(term))
        if not any(pod.is_newcomer for pod in (*having, *meant)):
            continue
        by_domain = [_by_domain(pods, term.topology_key) for pods in (having, meant, meant_when_it_comes)]
        for domain, here in by_domain[0].items():
            together = _Together(
                f"{term.topology_key}={domain}", here, *(each.get(domain, ()) for each in by_domain[1:])
            )
            yield from together.violations(whereabouts)


def _anti_affinity(whereabouts: Whereabouts) -> Mapping[AffinityTerm, list[PodOnNode]]:
    """The pods that have each term."""
    having: dict[AffinityTerm, list[PodOnNode]] = defaultdict(list)
    for pod in whereabouts.everybody:
        affinity = pod.pod.spec.affinity
        for given in affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ():
            having[term_of(given, pod)].append(pod)
    return having


def _by_domain(pods: Sequence[PodOnNode], topology_key: str) -> Mapping[str, list[PodOnNode]]:
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
        """One for each newcomer that came although somebody was there, as the one or as the other.

        In a free order, which makes no difference here, they come as they are listed.
        """
        for pod, other in _after_the_first(whereabouts, self.having, self.meant_when_it_comes):
            yield f"{pod}: its anti-affinity keeps it away from {other}, in {self.domain}"
        for pod, other in _after_the_first(whereabouts, self.meant, self.having):
            yield f"{pod}: anti-affinity of {other} keeps it out of {self.domain}"


def _after_the_first(
    whereabouts: Whereabouts, pods: Sequence[PodOnNode], others: Sequence[PodOnNode]
) -> Iterator[tuple[PodOnNode, PodOnNode]]:
    """Newcomers that passed the filter when one of the others was there already, each with the first of these."""
    if others:
        first = min(others, key=lambda other: other.position)
        yield from (
            (pod, first) for pod in pods if first.position < pod.position and whereabouts.has_filter(pod, _FILTER)
        )


@dataclass(eq=False)
class _AffinityRule:
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
        domains = ((term.topology_key, domain_of(pod.node, term.topology_key)) for term in self.terms)
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


class _AffinityRules:
    """The rules of affinity of newcomers."""

    def __init__(self, whereabouts: Whereabouts) -> None:
        self._whereabouts = whereabouts
        self._rules: dict[tuple[AffinityTerm, ...], _AffinityRule] = {}
        self.carried: dict[PodOnNode, _AffinityRule] = {}
        for pod in whereabouts.newcomers:
            affinity = pod.pod.spec.affinity
            required = (affinity.pod_affinity or PodAffinity()).required if affinity else ()
            if required and whereabouts.has_filter(pod, _FILTER):
                terms = tuple(whereabouts.of_incoming(term_of(given, pod)) for given in required)
                self.carried[pod] = self._rule(terms)
        self.meaning: dict[PodOnNode, list[_AffinityRule]] = defaultdict(list)
        for rule in self._rules.values():
            for pod in rule.meant:
                self.meaning[pod].append(rule)

    def _rule(self, terms: tuple[AffinityTerm, ...]) -> _AffinityRule:
        if terms not in self._rules:
            everybody = [set(self._whereabouts.meant_by(term)) for term in terms]
            meant = set.intersection(*everybody)
            rule = _AffinityRule(terms, frozenset(pod for pod in meant if pod.is_newcomer))
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
    rules = _AffinityRules(whereabouts)
    for pod in whereabouts.newcomers if rules.carried else ():
        if pod in rules.carried and not rules.carried[pod].lets_come(pod):
            yield _nobody_is_near(pod)
        rules.enter(pod)


def _nobody_is_near(pod: PodOnNode) -> str:
    return f"{pod}: nobody whom its affinity means can have been near node {pod.node.name} before it"


def affinity_holds_in_some_order(whereabouts: Whereabouts) -> Iterator[str]:
    """There is one order of newcomers in which each finds somebody whom its affinity means, or may begin."""
    rules = _AffinityRules(whereabouts)
    for flocks in _apart(_flocks(rules)):
        for flock in _SomeOrder(flocks).fewest_stuck():
            yield from (_nobody_is_near(pod) for pod in flock.pods)


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

    carried: _AffinityRule | None
    meaning: Sequence[_AffinityRule]
    pods: list[PodOnNode] = field(default_factory=list)

    def pairs(self, rule: _AffinityRule) -> set[Pair]:
        """The domains of a rule in which they are."""
        return rule.pairs(self.pods[0])

    @property
    def may_begin(self) -> bool:
        """Whether one of them may come if nobody is there whom its terms mean."""
        rule = self.carried
        return rule is not None and rule in self.meaning and not rule.there and rule.has_all_labels(self.pods[0])


def _flocks(rules: _AffinityRules) -> Sequence[_Flock]:
    every = dict.fromkeys((*rules.carried.values(), *chain.from_iterable(rules.meaning.values())))
    keys = sorted({term.topology_key for rule in every for term in rule.terms})
    flocks: dict[Hashable, _Flock] = {}
    for pod in dict.fromkeys((*rules.carried, *rules.meaning)):
        carried, meaning = rules.carried.get(pod), tuple(rules.meaning.get(pod, ()))
        domains = tuple(domain_of(pod.node, key) for key in keys)
        flocks.setdefault((carried, meaning, domains), _Flock(carried, meaning)).pods.append(pod)
    return list(flocks.values())


def _apart(flocks: Sequence[_Flock]) -> Iterator[Sequence[_Flock]]:
    """The flocks, apart if no rule is about both, directly or by way of others."""
    graph: nx.Graph[_Flock | _AffinityRule] = nx.Graph()
    for flock in flocks:
        graph.add_edges_from((flock, rule) for rule in flock.meaning)
        if flock.carried is not None:
            graph.add_edge(flock, flock.carried)
    for part in nx.connected_components(graph):
        yield [flock for flock in flocks if flock in part] if len(part) < graph.number_of_nodes() else flocks


Beginners = Mapping[_AffinityRule, _Flock]
"""Of some rules, the flock of which one pod came first of all whom the rule means."""


class _SomeOrder:
    """Looks for an order in which all flocks can have come.

    Who comes later finds no less than who comes earlier, but for those who begin. So once it is settled who begins,
    everybody comes as soon as possible, and nobody whom a rule means comes before the one who begins for it. Who began
    is tried out where somebody cannot have come without.
    """

    def __init__(self, flocks: Sequence[_Flock]) -> None:
        self._flocks = flocks

    def fewest_stuck(self) -> Sequence[_Flock]:
        """The flocks that cannot have come; nobody if there is an order."""
        best = self._flocks
        to_try: list[Beginners] = [{}]
        tried: set[frozenset[tuple[_AffinityRule, _Flock]]] = set()
        while to_try:
            beginners = to_try.pop()
            if frozenset(beginners.items()) in tried:
                continue
            tried.add(frozenset(beginners.items()))
            stuck = self._stuck(beginners)
            if not stuck:
                return ()
            best = min(best, stuck, key=len)
            choices = [(flock.carried, flock) for flock in stuck if flock.carried not in beginners and flock.may_begin]
            to_try += ({**beginners, rule: flock} for rule, flock in reversed(choices) if rule is not None)
            if len(choices) > 1:
                # First of all one guess for all of them, as they seldom are in each other's way.
                guess = {rule: flock for rule, flock in reversed(choices) if rule is not None}
                to_try.append({**beginners, **guess})
        return best

    def _stuck(self, beginners: Beginners) -> Sequence[_Flock]:
        """Who cannot have come if these began."""
        there = {rule: set(rule.there) for flock in self._flocks for rule in _rules_of(flock)}
        pending = dict(beginners)
        waiting = self._flocks
        while True:
            beginning = [rule for rule, flock in pending.items() if not _must_wait(flock, pending, beside=rule)]
            for rule in beginning:
                _enter(pending.pop(rule), there)
            coming = [flock for flock in waiting if not _must_wait(flock, pending) and _is_near(flock, there)]
            for flock in coming:
                _enter(flock, there)
            if not beginning and not coming:
                return waiting
            come = set(coming)
            waiting = [flock for flock in waiting if flock not in come]


def _rules_of(flock: _Flock) -> Iterator[_AffinityRule]:
    yield from flock.meaning
    if flock.carried is not None:
        yield flock.carried


def _must_wait(flock: _Flock, pending: Beginners, beside: _AffinityRule | None = None) -> bool:
    """Whether somebody else has to begin before, for a rule that would see the flock."""
    return any(rule in pending and rule is not beside and flock.pairs(rule) for rule in flock.meaning)


def _is_near(flock: _Flock, there: Mapping[_AffinityRule, set[Pair]]) -> bool:
    rule = flock.carried
    return rule is None or (rule.has_all_labels(flock.pods[0]) and flock.pairs(rule) <= there[rule])


def _enter(flock: _Flock, there: Mapping[_AffinityRule, set[Pair]]) -> None:
    for rule in flock.meaning:
        there[rule] |= flock.pairs(rule)
