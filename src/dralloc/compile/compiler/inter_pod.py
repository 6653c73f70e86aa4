"""Rules between pods: who carries them, whom they mean, and what pods that have a node mean for them.

Sources: ``framework/plugins/interpodaffinity/filtering.go`` and ``podtopologyspread/filtering.go`` of
``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain

from dralloc.compile.compiler.topology import Topology
from dralloc.compile.pods.kinds import PodKind
from dralloc.compile.pods.selectors import Selector, Term, spread_selector
from dralloc.objects.api import Node, TopologySpreadConstraint
from dralloc.objects.api.tolerating import all_tolerated
from dralloc.objects.choices import Ignored
from dralloc.problem import Demand, Problem
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    DomainLedger,
    InterPodRule,
    Role,
    Spread,
)

__all__ = ["bound_to_pods", "inter_pod_roles"]

Running = Sequence[tuple[str, PodKind]]
"""Names of nodes, each with the kind of a pod on it."""

_Found = tuple[InterPodRule, Set[PodKind], Set[PodKind]]
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
    for rule, carrying, counting in found:
        for kind in wanting:
            if kind in carrying or kind in counting:
                roles[kind].append(Role(rule, kind in carrying, kind in counting))
    return {kind: tuple(each) for kind, each in roles.items()}


def bound_to_pods(
    problem: Problem, roles: Mapping[int, tuple[Role, ...]], *, alone: bool = True
) -> tuple[Demand, ...]:
    """The demands with their roles (by index), as far as these depend on other demands, and with what nodes they leave.

    What only depends on pods that have a node is settled: it leaves a demand fewer nodes to go to, and that is all.

    Parameters
    ----------
    alone
        Whether there is one of each demand, which has nothing to fear from itself.
    """
    by_rule: dict[InterPodRule, list[Role]] = defaultdict(list)
    for role in chain.from_iterable(roles.values()):
        by_rule[role.rule].append(role)
    settled = {
        rule for rule, each in by_rule.items() if _is_settled(rule, each, alone=alone)
    }
    nobody = DomainLedger()
    known: dict[Hashable, tuple[int, ...] | None] = {}

    def bound(demand: Demand, its: tuple[Role, ...]) -> Demand:
        # Anti-affinity to pods that have a node stays, whatever comes.
        lasting = tuple(
            role
            for role in its
            if role.rule in settled or isinstance(role.rule, AntiAffinity)
        )
        key = demand.nodes, lasting
        if key not in known:
            nodes = problem.candidate_nodes(demand)
            left = tuple(
                node
                for node in nodes
                if nobody.allows(lasting, problem.nodes[node].name)
            )
            known[key] = demand.nodes if len(left) == len(nodes) else left
        open_roles = (role for role in its if role.rule not in settled)
        return replace(demand, nodes=known[key], roles=(*demand.roles, *open_roles))

    return tuple(
        bound(demand, roles[number]) if roles.get(number) else demand
        for number, demand in enumerate(problem.demands)
    )


def _is_settled(rule: InterPodRule, roles: Sequence[Role], *, alone: bool) -> bool:
    """Whether what a demand may do does not depend on other demands."""
    carrying, counting = (
        sum(role.carries for role in roles),
        sum(role.counts for role in roles),
    )
    both = sum(role.carries and role.counts for role in roles)
    if (alone and carrying == counting == both == 1) or not carrying or not counting:
        return True
    # Who means only each other, and pods that have a node, stays with these.
    return isinstance(rule, Affinity) and counting == both and any(rule.counted)


class _Rules:
    def __init__(
        self, wanting: Collection[PodKind], running: Running, nodes: Sequence[Node]
    ) -> None:
        self._wanting = wanting
        self._running = running
        self._every = dict.fromkeys((*wanting, *(kind for _, kind in running)))
        self._nodes = nodes
        self._domains = Topology(nodes).domains

    def _on(self, domains: Mapping[str, str], kinds: Set[PodKind]) -> Iterator[str]:
        """The domain of each pod of these kinds that has a node."""
        return (
            domains[node]
            for node, kind in self._running
            if node in domains and kind in kinds
        )

    def anti_affinities(self, by_host: Collection[Term]) -> Iterator[_Found]:
        for term in dict.fromkeys(
            term for kind in self._every for term in kind.required_anti_affinity
        ):
            if term not in by_host:
                domains = self._domains(term.topology_key)
                carrying = {
                    kind for kind in self._every if term in kind.required_anti_affinity
                }
                counting = {kind for kind in self._every if kind.is_meant_by(term)}
                there = (
                    frozenset(self._on(domains, kinds))
                    for kinds in (carrying, counting)
                )
                yield AntiAffinity(domains, *there), carrying, counting

    def affinities(self) -> Iterator[_Found]:
        for terms in dict.fromkeys(
            kind.required_affinity for kind in self._wanting if kind.required_affinity
        ):
            carrying = {
                kind for kind in self._wanting if kind.required_affinity == terms
            }
            counting = {
                kind for kind in self._every if all(map(kind.is_meant_by, terms))
            }
            domains = tuple(self._domains(term.topology_key) for term in terms)
            there = tuple(frozenset(self._on(each, counting)) for each in domains)
            yield Affinity(domains, there), carrying, counting

    def spreads(self) -> Iterator[_Found]:
        known: dict[
            Hashable, tuple[str, TopologySpreadConstraint, Selector, Mapping[str, str]]
        ] = {}
        carrying: dict[Hashable, set[PodKind]] = defaultdict(set)
        for kind in self._wanting:
            for one in kind.hard_spread:
                domains, selector = (
                    self._eligible(kind, one, kind.hard_spread),
                    spread_selector(one, kind.labels),
                )
                skew = one.topology_key, one.max_skew, one.min_domains
                key: Hashable = (kind.namespace, selector, skew, frozenset(domains))
                known.setdefault(key, (kind.namespace, one, selector, domains))
                carrying[key].add(kind)
        for key, (namespace, one, selector, domains) in known.items():
            same = {
                kind
                for kind in self._every
                if kind.namespace == namespace and not selector.is_empty
            }
            counting = {kind for kind in same if selector.matches(kind.labels)}
            there = Counter(self._on(domains, counting))
            yield (
                Spread(domains, there, one.max_skew, one.min_domains or 1),
                carrying[key],
                counting,
            )

    def _eligible(
        self,
        kind: PodKind,
        one: TopologySpreadConstraint,
        every: Collection[TopologySpreadConstraint],
    ) -> Mapping[str, str]:
        """The domains of nodes on which pods count (``nodeAffinityPolicy``, ``nodeTaintsPolicy``)."""
        return {
            node.name: node.metadata.labels[one.topology_key]
            for node in self._nodes
            if all(other.topology_key in node.metadata.labels for other in every)
            and (one.node_affinity_policy != "Honor" or kind.may_run_on(node))
            and (
                one.node_taints_policy != "Honor"
                or all_tolerated(node.spec.taints, kind.spec.tolerations)
            )
        }
