"""Rules between pods: who carries them, whom they mean, and what pods that have a node mean for them.

Sources: ``framework/plugins/interpodaffinity/filtering.go`` and ``podtopologyspread/filtering.go`` of
``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from dralloc.api import Node, TopologySpreadConstraint
from dralloc.api.tolerating import all_tolerated
from dralloc.choices import Ignored
from dralloc.compiler.topology import Topology
from dralloc.pods.kinds import PodKind
from dralloc.pods.selectors import Term, spread_selector
from dralloc.problem import Demand, Problem
from dralloc.problem.inter_pod import Affinity, AntiAffinity, DomainLedger, InterPodRule, Role, Spread

__all__ = ["bound_to_pods", "inter_pod_roles"]

Running = Sequence[tuple[str, PodKind]]
"""Names of nodes, each with the kind of a pod on it."""

_Found = tuple[InterPodRule, Callable[[PodKind], bool], Callable[[PodKind], bool]]
"""A rule, who carries it, and who counts for it."""


def inter_pod_roles(
    wanting: Collection[PodKind],
    running: Running,
    nodes: Sequence[Node],
    ignored: Collection[Ignored],
    by_host: Collection[Term],
) -> Mapping[PodKind, tuple[Role, ...]]:
    """What pods to be placed are to rules between pods, by kind.

    Parameters
    ----------
    ignored
        What does not count.
    by_host
        Terms of anti-affinity that are seen to elsewhere.
    """
    rules = _Rules(wanting, running, nodes)
    found: list[_Found] = []
    if Ignored.AFFINITY not in ignored:
        found += chain(rules.anti_affinities(by_host), rules.affinities())
    if Ignored.SPREAD not in ignored:
        found += rules.spreads()
    roles: dict[PodKind, list[Role]] = defaultdict(list)
    for rule, carries, counts in found:
        for kind in wanting:
            role = Role(rule, carries(kind), counts(kind))
            if role.carries or role.counts:
                roles[kind].append(role)
    return {kind: tuple(each) for kind, each in roles.items()}


def bound_to_pods(problem: Problem, roles: Mapping[int, tuple[Role, ...]]) -> tuple[Demand, ...]:
    """The demands with their roles (by index), as far as these depend on other demands, and with what nodes they leave.

    What only depends on pods that have a node is settled: it leaves a demand fewer nodes to go to, and that is all.
    """
    settled = {rule for rule, tally in _tallies(roles).items() if _is_settled(rule, tally)}
    nobody = DomainLedger()
    known: dict[Hashable, tuple[int, ...] | None] = {}

    def bound(demand: Demand, its: tuple[Role, ...]) -> Demand:
        # Anti-affinity to pods that have a node stays, whatever comes.
        lasting = tuple(role for role in its if role.rule in settled or isinstance(role.rule, AntiAffinity))
        key = demand.nodes, lasting
        if key not in known:
            nodes = problem.candidate_nodes(demand)
            left = tuple(node for node in nodes if nobody.allows(lasting, problem.nodes[node].name))
            known[key] = demand.nodes if len(left) == len(nodes) else left
        open_roles = (role for role in its if role.rule not in settled)
        return replace(demand, nodes=known[key], roles=(*demand.roles, *open_roles))

    return tuple(
        bound(demand, roles[number]) if roles.get(number) else demand for number, demand in enumerate(problem.demands)
    )


class _Tally(NamedTuple):
    """How many demands carry a rule, count for it, and do both."""

    carrying: int
    counting: int
    both: int


def _tallies(roles: Mapping[int, tuple[Role, ...]]) -> Mapping[InterPodRule, _Tally]:
    found: dict[InterPodRule, list[Role]] = defaultdict(list)
    for each in roles.values():
        for role in each:
            found[role.rule].append(role)
    return {
        rule: _Tally(
            sum(role.carries for role in each),
            sum(role.counts for role in each),
            sum(role.carries and role.counts for role in each),
        )
        for rule, each in found.items()
    }


def _is_settled(rule: InterPodRule, tally: _Tally) -> bool:
    """Whether what a demand may do does not depend on other demands."""
    if tally == _Tally(1, 1, 1) or not tally.carrying or not tally.counting:
        return True
    # Who means only each other, and pods that have a node, stays with these.
    return isinstance(rule, Affinity) and tally.counting == tally.both and any(rule.counted)


class _Rules:
    def __init__(self, wanting: Collection[PodKind], running: Running, nodes: Sequence[Node]) -> None:
        self._wanting = wanting
        self._running = running
        self._nodes = nodes
        self._domains = Topology(nodes).domains

    def _on(self, domains: Mapping[str, str], concerns: Callable[[PodKind], bool]) -> Iterator[str]:
        """The domain of each pod with a node that is concerned."""
        return (domains[node] for node, kind in self._running if node in domains and concerns(kind))

    def anti_affinities(self, by_host: Collection[Term]) -> Iterator[_Found]:
        every = chain(self._wanting, (kind for _, kind in self._running))
        for term in dict.fromkeys(term for kind in every for term in kind.required_anti_affinity):
            if term not in by_host:
                yield self._anti_affinity(term)

    def _anti_affinity(self, term: Term) -> _Found:
        def carries(kind: PodKind) -> bool:
            return term in kind.required_anti_affinity

        def counts(kind: PodKind) -> bool:
            return kind.is_meant_by(term)

        domains = self._domains(term.topology_key)
        rule = AntiAffinity(domains, frozenset(self._on(domains, carries)), frozenset(self._on(domains, counts)))
        return rule, carries, counts

    def affinities(self) -> Iterator[_Found]:
        for terms in dict.fromkeys(kind.required_affinity for kind in self._wanting if kind.required_affinity):
            yield self._affinity(terms)

    def _affinity(self, terms: tuple[Term, ...]) -> _Found:
        def carries(kind: PodKind) -> bool:
            return kind.required_affinity == terms

        def counts(kind: PodKind) -> bool:
            return all(map(kind.is_meant_by, terms))

        domains = tuple(self._domains(term.topology_key) for term in terms)
        return Affinity(domains, tuple(frozenset(self._on(each, counts)) for each in domains)), carries, counts

    def spreads(self) -> Iterator[_Found]:
        known: dict[Hashable, tuple[PodKind, TopologySpreadConstraint, Mapping[str, str]]] = {}
        carrying: dict[Hashable, set[PodKind]] = defaultdict(set)
        for kind in self._wanting:
            for one in kind.hard_spread:
                domains = self._eligible(kind, one, kind.hard_spread)
                key: Hashable = (
                    kind.namespace,
                    spread_selector(one, kind.labels),
                    (one.topology_key, one.max_skew, one.min_domains),
                    frozenset(domains),
                )
                known.setdefault(key, (kind, one, domains))
                carrying[key].add(kind)
        for key, kinds in carrying.items():
            yield self._spread(kinds, *known[key])

    def _spread(
        self, kinds: Collection[PodKind], first: PodKind, one: TopologySpreadConstraint, domains: Mapping[str, str]
    ) -> _Found:
        selector = spread_selector(one, first.labels)

        def counts(kind: PodKind) -> bool:
            return kind.namespace == first.namespace and not selector.is_empty and selector.matches(kind.labels)

        rule = Spread(domains, Counter(self._on(domains, counts)), one.max_skew, one.min_domains or 1)
        return rule, kinds.__contains__, counts

    def _eligible(
        self, kind: PodKind, one: TopologySpreadConstraint, every: Collection[TopologySpreadConstraint]
    ) -> Mapping[str, str]:
        """The domains of nodes on which pods count (``nodeAffinityPolicy``, ``nodeTaintsPolicy``)."""
        return {
            node.name: node.metadata.labels[one.topology_key]
            for node in self._nodes
            if all(other.topology_key in node.metadata.labels for other in every)
            and (one.node_affinity_policy != "Honor" or kind.may_run_on(node))
            and (one.node_taints_policy != "Honor" or all_tolerated(node.spec.taints, kind.spec.tolerations))
        }
