"""The rules that bind pods to nodes and to each other beside devices, in the terms of the problem.

First rules between pods; then these together with what pods take of their nodes
(`dralloc.compile.compiler.node_amounts`). Pods that are on nodes count as what is used there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import (
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import replace
from functools import cached_property, reduce
from itertools import chain
from operator import or_

from dralloc.compile.compiler.node_amounts import (
    Footprints,
    HostExclusion,
    HostPorts,
    NodeAmounts,
    NodeResources,
)
from dralloc.compile.compiler.topology import Topology
from dralloc.compile.pods import PodInfo, PodKind, PodKinds
from dralloc.compile.pods.selectors import Selector, Term, spread_selector
from dralloc.objects.api import Node, Pod, TopologySpreadConstraint
from dralloc.objects.api.disclosure import HOSTNAME_LABEL
from dralloc.objects.api.selecting import all_tolerated
from dralloc.objects.choices import Ignored
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Demand,
    DemandIndex,
    NodeIndex,
    Numbered,
    Problem,
    numbered,
)
from dralloc.problem.indices import summed
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    DomainLedger,
    InterPodRule,
    Role,
    Spread,
)
from dralloc.problem.node_claims import NodeStock, resource_of, with_node_claims
from dralloc.problem.node_footprints import PodUse, with_footprints

__all__ = ["PodRules", "has_rules_between"]

# ----------------------------------------------------------------------------
# Rules between pods: who carries them, whom they mean, and what pods that have a node
# mean for them.
#
# Sources: ``framework/plugins/interpodaffinity/filtering.go`` and
# ``podtopologyspread/filtering.go`` of ``kubernetes/pkg/scheduler``.

Running = Sequence[tuple[str, PodKind]]
"""Names of nodes, each with the kind of a pod on it."""

_Found = tuple[InterPodRule, Set[PodKind], Set[PodKind]]
"""A rule, who carries it, and who counts for it."""


def _inter_pod_roles(
    wanting: Collection[PodKind],
    running: Running,
    nodes: Sequence[Node],
    ignored: Collection[Ignored],
    by_host: Collection[Term],
) -> Mapping[PodKind, tuple[Role, ...]]:
    """Return the roles of pods to be placed in rules between pods, by kind.

    Parameters
    ----------
    ignored
        What does not count.
    by_host
        Terms of anti-affinity that are seen to elsewhere.
    """
    rules = _Rules(wanting, running, nodes)
    rules_found: list[_Found] = []
    if Ignored.AFFINITY not in ignored:
        rules_found += chain(rules.anti_affinities(by_host), rules.affinities())
    if Ignored.SPREAD not in ignored:
        rules_found += rules.spreads()
    roles: dict[PodKind, list[Role]] = defaultdict(list)
    for rule, carrying, counting in rules_found:
        for kind in wanting:
            if kind in carrying or kind in counting:
                roles[kind].append(
                    Role(rule, kind in carrying, kind in counting)
                )
    return {kind: tuple(roles_of_kind) for kind, roles_of_kind in roles.items()}


def _bound_to_pods(
    problem: Problem,
    roles: Mapping[DemandIndex, tuple[Role, ...]],
    *,
    alone: bool = True,
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
        rule
        for rule, its_roles in by_rule.items()
        if _is_settled(rule, its_roles, alone=alone)
    }
    # Nobody is entered in it: it tells what pods that have a node allow already.
    nobody = DomainLedger()
    allowed_nodes: dict[Hashable, tuple[NodeIndex, ...] | None] = {}

    def bound(demand: Demand, demand_roles: tuple[Role, ...]) -> Demand:
        # Anti-affinity to pods that have a node stays, whatever comes.
        lasting = tuple(
            role
            for role in demand_roles
            if role.rule in settled or isinstance(role.rule, AntiAffinity)
        )
        key = demand.nodes, lasting
        if key not in allowed_nodes:
            nodes = problem.candidate_nodes(demand)
            allowed = tuple(
                node
                for node in nodes
                if nobody.allows(lasting, problem.nodes[node].name)
            )
            allowed_nodes[key] = (
                demand.nodes if len(allowed) == len(nodes) else allowed
            )
        open_roles = (role for role in demand_roles if role.rule not in settled)
        return replace(
            demand, nodes=allowed_nodes[key], roles=(*demand.roles, *open_roles)
        )

    return tuple(
        bound(demand, roles[demand_index])
        if roles.get(demand_index)
        else demand
        for demand_index, demand in numbered(problem.demands)
    )


def _is_settled(
    rule: InterPodRule, roles: Sequence[Role], *, alone: bool
) -> bool:
    """Whether what a demand may do does not depend on other demands."""
    carrying, counting = (
        sum(role.carries for role in roles),
        sum(role.counts for role in roles),
    )
    carrying_and_counting = sum(role.carries and role.counts for role in roles)
    if (
        (alone and carrying == counting == carrying_and_counting == 1)
        or not carrying
        or not counting
    ):
        return True
    # Who means only each other, and pods that have a node, stays with these.
    return (
        isinstance(rule, Affinity)
        and counting == carrying_and_counting
        and any(rule.counted)
    )


class _Rules:
    def __init__(
        self,
        wanting: Collection[PodKind],
        running: Running,
        nodes: Sequence[Node],
    ) -> None:
        self._wanting = wanting
        self._running = running
        self._all_kinds = dict.fromkeys(
            (*wanting, *(kind for _, kind in running))
        )
        self._nodes = nodes
        self._domains = Topology(nodes).domains

    def _on(
        self, domains: Mapping[str, str], kinds: Set[PodKind]
    ) -> Iterator[str]:
        """The domain of each pod of these kinds that has a node."""
        return (
            domains[node]
            for node, kind in self._running
            if node in domains and kind in kinds
        )

    def anti_affinities(self, by_host: Collection[Term]) -> Iterator[_Found]:
        for term in dict.fromkeys(
            term
            for kind in self._all_kinds
            for term in kind.required_anti_affinity
        ):
            if term not in by_host:
                domains = self._domains(term.topology_key)
                carrying = {
                    kind
                    for kind in self._all_kinds
                    if term in kind.required_anti_affinity
                }
                counting = {
                    kind for kind in self._all_kinds if kind.is_meant_by(term)
                }
                rule = AntiAffinity(
                    domains,
                    carried=frozenset(self._on(domains, carrying)),
                    counted=frozenset(self._on(domains, counting)),
                )
                yield rule, carrying, counting

    def affinities(self) -> Iterator[_Found]:
        for terms in dict.fromkeys(
            kind.required_affinity
            for kind in self._wanting
            if kind.required_affinity
        ):
            carrying = {
                kind
                for kind in self._wanting
                if kind.required_affinity == terms
            }
            counting = {
                kind
                for kind in self._all_kinds
                if all(map(kind.is_meant_by, terms))
            }
            domains = tuple(self._domains(term.topology_key) for term in terms)
            counted = tuple(
                frozenset(self._on(of_term, counting)) for of_term in domains
            )
            yield Affinity(domains, counted), carrying, counting

    def spreads(self) -> Iterator[_Found]:
        # Constraints that say the same of the same nodes are one rule, whichever pods they are written in.
        constraints: dict[
            Hashable,
            tuple[str, TopologySpreadConstraint, Selector, Mapping[str, str]],
        ] = {}
        carrying: dict[Hashable, set[PodKind]] = defaultdict(set)
        for kind in self._wanting:
            for constraint in kind.hard_spread:
                domains = self._eligible(kind, constraint)
                selector = spread_selector(constraint, kind.labels)
                skew = (
                    constraint.topology_key,
                    constraint.max_skew,
                    constraint.min_domains,
                )
                key: Hashable = (
                    kind.namespace,
                    selector,
                    skew,
                    frozenset(domains),
                )
                constraints.setdefault(
                    key, (kind.namespace, constraint, selector, domains)
                )
                carrying[key].add(kind)
        for key, (
            namespace,
            constraint,
            selector,
            domains,
        ) in constraints.items():
            counting: set[PodKind] = set()
            # Thousands of kinds have few labels that differ.
            for kinds in self._by_labels[namespace].values():
                if not selector.is_empty and selector.matches(kinds[0].labels):
                    counting.update(kinds)
            rule = Spread(
                domains,
                Counter(self._on(domains, counting)),
                constraint.max_skew,
                constraint.min_domains or 1,
            )
            yield rule, carrying[key], counting

    @cached_property
    def _by_labels(self) -> Mapping[str, Mapping[Hashable, list[PodKind]]]:
        """All kinds of pods, by namespace and by their labels."""
        by_labels: dict[str, dict[Hashable, list[PodKind]]] = defaultdict(dict)
        for kind in self._all_kinds:
            labels = frozenset(kind.labels.items())
            by_labels[kind.namespace].setdefault(labels, []).append(kind)
        return by_labels

    def _eligible(
        self, kind: PodKind, constraint: TopologySpreadConstraint
    ) -> Mapping[str, str]:
        """The domains of nodes on which pods count (``nodeAffinityPolicy``, ``nodeTaintsPolicy``)."""
        # Upstream counts on nodes only that have the labels of all constraints of the pod.
        labels = {spread.topology_key for spread in kind.hard_spread}
        return {
            node.name: node.metadata.labels[constraint.topology_key]
            for node in self._nodes
            if labels <= node.metadata.labels.keys()
            and (
                constraint.node_affinity_policy != "Honor"
                or kind.may_run_on(node)
            )
            and (
                constraint.node_taints_policy != "Honor"
                or all_tolerated(node.spec.taints, kind.spec.tolerations)
            )
        }


class PodRules:
    """The amounts that pods take of nodes, and the rules between pods.

    Parameters
    ----------
    nodes
        In the order of the problem.
    backed
        The extended resources that classes of devices stand for.
    ignored
        What does not count.
    """

    def __init__(
        self,
        cluster: Cluster,
        nodes: Sequence[Node],
        backed: frozenset[str],
        ignored: frozenset[Ignored],
    ) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._backed = backed
        self.ignored = ignored

    def of(self, cluster: Cluster) -> PodRules:
        """The same rules for the pods of another cluster with these nodes."""
        return PodRules(cluster, self._nodes, self._backed, self.ignored)

    @cached_property
    def may_bind(self) -> bool:
        """Whether nodes list resources, or pods say anything beside devices that may bind them or others."""
        return any(node.status.allocatable for node in self._nodes) or any(
            map(_has_rules, self._cluster.pods)
        )

    @cached_property
    def _kinds(self) -> PodKinds:
        return PodKinds(self._cluster.namespaces)

    @cached_property
    def infos(self) -> Mapping[ClaimKey, PodInfo]:
        """The pods by key."""
        return {
            info.key: info for info in self._kinds.infos(self._cluster.pods)
        }

    @cached_property
    def running(self) -> Mapping[str, Sequence[PodInfo]]:
        """The pods that have a node, by its name."""
        running: dict[str, list[PodInfo]] = defaultdict(list)
        for pod in self._cluster.pods:
            if pod.spec.node_name:
                running[pod.spec.node_name].append(self.infos[pod.key])
        return running

    def bound(self, pods: Collection[Pod]) -> Iterator[Pod]:
        """Return those of some pods that ask for more of nodes, or of other pods, than devices."""
        listed = any(node.status.allocatable for node in self._nodes)
        infos = self._kinds.infos(pods)
        said = {
            info.key: self._said(info.kind, listed=listed) for info in infos
        }
        return (pod for pod in pods if not said[pod.key] <= self.ignored)

    def bound_to_others(
        self, pods: Collection[Pod]
    ) -> Mapping[ClaimKey, Collection[Ignored]]:
        """Return the rules of some pods about other pods that are more than an amount of their node, by pod.

        Anti-affinity by node is such an amount (`dralloc.compile.compiler.node_amounts.HostExclusion`).
        """
        kinds = {pod.key: self.infos[pod.key].kind for pod in pods}
        by_host = self._by_host(set(kinds.values()), ())
        said = {
            key: self._said_of_others(kind, by_host) - self.ignored
            for key, kind in kinds.items()
        }
        return {key: rules for key, rules in said.items() if rules}

    def _said(self, kind: PodKind, *, listed: bool) -> set[Ignored]:
        """Return the rules that bind such pods; their requests are one if nodes list what they have."""
        resources = (
            name
            for name, amount in kind.requests.items()
            if amount and listed and name not in self._backed
        )
        said = {Ignored.of_resource(name) for name in resources}
        said |= {Ignored.PORTS for _ in kind.host_ports}
        return said | self._said_of_others(kind)

    def _said_of_others(
        self, kind: PodKind, but: Collection[Term] = ()
    ) -> set[Ignored]:
        """Return the rules of such pods about other pods, but for some terms of anti-affinity."""
        apart = (
            term for term in kind.required_anti_affinity if term not in but
        )
        said = {Ignored.AFFINITY for _ in (*kind.required_affinity, *apart)}
        return said | {Ignored.SPREAD for _ in kind.hard_spread}

    def applied(
        self,
        problem: Problem,
        *,
        complete: bool = False,
        copies: int = 1,
        by_host: bool = True,
        gone: Collection[ClaimKey] = (),
    ) -> Problem:
        """A problem of devices with all that binds its pods to nodes and to each other.

        Parameters
        ----------
        complete
            Whether also that counts which cannot run short before something else does.
        copies
            How many there may be of each demand at once.
        by_host
            Whether anti-affinity by node is an amount of nodes. If not, it is a rule between pods as any other: one
            that pods may break which run.
        gone
            Pods that ran, and are not there any more: they take nothing of their nodes, and no rule is about them.
        """
        if self.ignored:
            problem = _without_footprints(problem, self.ignored)
        footprints = Footprints(self._cluster, problem.devices)
        if not (self.may_bind or footprints):
            return problem
        wanting = dict(self._wanting(problem.demands))
        pod_counts = Counter(info.kind for info in wanting.values())
        kinds = Counter(
            {kind: copies * times for kind, times in pod_counts.items()}
        )
        running = [
            (node, pod.kind)
            for node, pods in self.running.items()
            for pod in pods
        ]
        # As they appear: terms are numbered in this order. A set of kinds would be in the order of their addresses.
        running_kinds = list(dict.fromkeys(kind for _, kind in running))
        apart = (
            ()
            if Ignored.AFFINITY in self.ignored or not by_host
            else self._by_host(kinds, running_kinds)
        )
        staying = [
            (node, pod.kind)
            for node, pods in self.running.items()
            for pod in pods
            if pod.key not in gone
        ]
        roles = _inter_pod_roles(
            kinds, staying, self._nodes, self.ignored, apart
        )
        if roles:
            of_demands = {
                demand: roles.get(info.kind, ())
                for demand, info in wanting.items()
            }
            bound = _bound_to_pods(problem, of_demands, alone=copies == 1)
            problem = replace(problem, demands=bound)
        resources = NodeResources(kinds, footprints.resources, self.ignored)
        sorts = (resources, *self._sorts(kinds, running_kinds, apart))
        all_kinds = dict.fromkeys((*kinds, *running_kinds))
        amounts_of = {kind: _asked(kind, sorts) for kind in all_kinds}
        stocks = list(self._stocks(resources, sorts, amounts_of, gone))
        demanded = {
            demand: self._beside_devices(info, amounts_of[info.kind])
            for demand, info in wanting.items()
        }
        always = frozenset(
            chain.from_iterable(demanded.values()) if complete else ()
        )
        if not footprints:
            return with_node_claims(problem, stocks, demanded, always, copies)
        for demand, info in wanting.items():
            pod = self._cluster.pods_by_key[info.key]
            held = resources.of_devices(footprints.held(pod))
            amounts = demanded[demand]
            demanded[demand] = summed((*amounts.items(), *held.items()))
        always |= resources.of_footprints
        with_claims = with_node_claims(
            problem, stocks, demanded, always, copies
        )
        uses = self._uses(with_claims, footprints)
        return with_footprints(with_claims, uses, copies)

    def _stocks(
        self,
        resources: NodeResources,
        sorts: Sequence[NodeAmounts],
        amounts_of: Mapping[PodKind, dict[str, int]],
        gone: Collection[ClaimKey],
    ) -> Iterator[NodeStock]:
        """Give out what each node has, and what the pods on it use of that."""
        for node in self._nodes:
            used: dict[ClaimKey, dict[str, int]] = {}
            for pod in self.running.get(node.name, ()):
                if pod.key in gone:
                    continue
                of_devices = resources.asked(pod) if pod.of_devices else {}
                used[pod.key] = amounts_of[pod.kind] | of_devices
            total = reduce(or_, (sort.there(node) for sort in sorts))
            yield NodeStock(total, used)

    def _uses(
        self, problem: Problem, footprints: Footprints
    ) -> Mapping[int, PodUse]:
        """Return what devices take of nodes when pods use them, by demand."""
        pods = self._cluster.pods_by_key
        return {
            demand_index: footprints.use(pods[demand.key])
            for demand_index, demand in numbered(problem.demands)
            if demand.key in pods and not self._is_claim(demand)
        }

    def _wanting(
        self, demands: Numbered[DemandIndex, Demand]
    ) -> Iterator[tuple[DemandIndex, PodInfo]]:
        """The pods to be placed that have no node yet, by the index of their demand."""
        settled = {pod.key for pods in self.running.values() for pod in pods}
        for demand_index, demand in numbered(demands):
            if (
                demand.key in self.infos
                and demand.key not in settled
                and not self._is_claim(demand)
            ):
                yield demand_index, self.infos[demand.key]

    def _sorts(
        self,
        wanting: Counter[PodKind],
        running: Collection[PodKind],
        apart: Collection[Term],
    ) -> Iterator[NodeAmounts]:
        if Ignored.PORTS not in self.ignored and any(
            kind.host_ports for kind in wanting
        ):
            yield HostPorts((*wanting, *running))
        if apart:
            most_running = max(map(len, self.running.values()), default=0)
            yield HostExclusion(apart, wanting.total() + most_running)

    def _by_host(
        self, wanting: Collection[PodKind], running: Collection[PodKind]
    ) -> Collection[Term]:
        """The terms of anti-affinity whose domain is the node, and the pods that each means among its own."""
        names = [
            node.metadata.labels[HOSTNAME_LABEL]
            for node in self._nodes
            if HOSTNAME_LABEL in node.metadata.labels
        ]
        if len(set(names)) < len(names):
            # Two nodes are one domain for these terms: they are rules between pods like any other.
            return ()
        having = [
            (term, kind)
            for kind in wanting
            for term in kind.required_anti_affinity
        ]
        strict = {term for term, kind in having if not kind.is_meant_by(term)}
        terms: dict[Term, None] = {}
        for kind in (*wanting, *running):
            for term in kind.required_anti_affinity:
                if term.topology_key == HOSTNAME_LABEL and term not in strict:
                    terms[term] = None
        return terms

    def _is_claim(self, demand: Demand) -> bool:
        return self._cluster.is_lone(
            demand.key, (claim.key for claim in demand.claims)
        )

    def _beside_devices(
        self, pod: PodInfo, amounts: Mapping[str, int]
    ) -> Mapping[str, int]:
        """Return the requests of a pod of its node, without extended resources claimed as devices (KEP-5004)."""
        if self._backed.isdisjoint(map(resource_of, amounts)):
            return amounts
        claims = (
            self._cluster.claim(key)
            for key in self._cluster.claims_of_pods[pod.key]
        )
        claimed = any(claim and claim.is_extended for claim in claims)
        return {
            name: amount
            for name, amount in amounts.items()
            if not (claimed and resource_of(name) in self._backed)
        }


def _without_footprints(
    problem: Problem, ignored: Collection[Ignored]
) -> Problem:
    """The problem in which devices take nothing of what does not count."""
    return replace(
        problem,
        devices=tuple(
            replace(
                device,
                footprint=tuple(
                    part
                    for part in device.footprint
                    if Ignored.of_resource(part.resource) not in ignored
                ),
            )
            if device.footprint
            else device
            for device in problem.devices
        ),
    )


def _asked(kind: PodKind, sorts: Iterable[NodeAmounts]) -> dict[str, int]:
    """Return what pods of a kind ask of a node, of all sorts."""
    return reduce(or_, (sort.asked(kind) for sort in sorts))


def has_rules_between(pods: Iterable[Pod]) -> bool:
    """Whether any of the pods may say something about others."""
    return any(
        pod.spec.topology_spread_constraints
        or (
            pod.spec.affinity
            and (
                pod.spec.affinity.pod_affinity
                or pod.spec.affinity.pod_anti_affinity
            )
        )
        for pod in pods
    )


def _has_rules(pod: Pod) -> bool:
    """Whether anything in a pod may bind it, or others, to nodes even if these list no resources."""
    spec = pod.spec
    containers = (*spec.init_containers, *spec.containers)
    ports = any(container.ports for container in containers)
    return bool(spec.affinity or spec.topology_spread_constraints or ports)
