"""The reasons, beside devices, that keep a pod from a node.

First which nodes are not for a demand at all, and why; then what bars it at its turn: the node has too little left, or
other pods are there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from dralloc.ask.scenario import Scenario
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.api import Node, NodeSelector, NodeSelectorTerm, Pod
from dralloc.objects.api.base import changed
from dralloc.objects.api.selecting import (
    CORDON_TAINT,
    all_tolerated,
    goes_to_cordoned,
    selector_matches,
)
from dralloc.objects.choices import Ignored
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import amount, at_most, counted, listed
from dralloc.problem import (
    Charge,
    CounterIndex,
    Demand,
    DemandIndex,
    Device,
    NodeIndex,
    Problem,
    indices,
    numbered,
)
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    DomainLedger,
    InterPodRule,
    OneDomain,
    Spread,
)
from dralloc.problem.ledger import Holding, Shortage
from dralloc.problem.node_claims import resource_of
from dralloc.problem.node_footprints import before_footprints
from dralloc.problem.solution import Placement, holdings_of, with_node_grants
from dralloc.problem.subproblem import cut
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve

__all__ = [
    "CORDONED",
    "SHARED",
    "Bar",
    "Exclusions",
    "NodeBars",
    "Resettling",
    "SettledPods",
    "pod_of",
]

# ----------------------------------------------------------------------------
# Which nodes are not for a demand, and why: what `dralloc.compile.compiler.demands`
# leaves out, in words.

CORDONED = "node is cordoned (spec.unschedulable)"
SHARED = "a claim that is shared with a placed pod cannot be used from there"
OTHER = "node is not among those that it may use"


@dataclass
class Exclusions:
    """Tells for each node which rules of the pod and of the cluster leave it out.

    Parameters
    ----------
    compiled
        The objects behind the problem; without them there is one rule, the demand's list of nodes.
    """

    compiled: CompiledCluster | None = None
    _found: dict[tuple[ClaimKey, int], tuple[str, ...]] = field(
        default_factory=dict
    )

    def rules(self, demand: Demand, node: NodeIndex) -> tuple[str, ...]:
        """The rules that leave the node out for the demand; none if it may go there."""
        key = demand.key, node
        if key not in self._found:
            allowed = demand.nodes is None or node in demand.nodes
            self._found[key] = (
                () if allowed else tuple(self._named(demand, node)) or (OTHER,)
            )
        return self._found[key]

    def of_node(self, demand: Demand, node: Node) -> tuple[str, ...]:
        """The rules of the demand's pod that would leave out a node like this one."""
        return tuple(_of_pod(self.compiled, self._pod(demand), node))

    def of_running(self, demand: Demand, node: Node) -> tuple[str, ...]:
        """As `of_node`, for a pod that would be started again elsewhere: it may leave the node it is on."""
        pod = self._pod(demand)
        again = pod and changed(pod, spec=changed(pod.spec, node_name=None))
        return tuple(_of_pod(self.compiled, again, node, allocated=False))

    def _named(self, demand: Demand, node_index: NodeIndex) -> Iterator[str]:
        if self.compiled is None:
            return
        node, pod = (
            self._nodes[self.compiled.problem.nodes[node_index].name],
            self._pod(demand),
        )
        yield from _of_pod(self.compiled, pod, node)
        if node.spec.unschedulable and not (
            pod and (pod.spec.node_name or goes_to_cordoned(pod))
        ):
            yield CORDONED

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return (
            {node.name: node for node in self.compiled.cluster.nodes}
            if self.compiled is not None
            else {}
        )

    def _pod(self, demand: Demand) -> Pod | None:
        if demand.key not in self._by_key:
            self._by_key[demand.key] = (
                pod_of(self.compiled.cluster, demand)
                if self.compiled is not None
                else None
            )
        return self._by_key[demand.key]

    _by_key: dict[ClaimKey, Pod | None] = field(default_factory=dict)


def _of_pod(
    compiled: CompiledCluster | None,
    pod: Pod | None,
    node: Node,
    *,
    allocated: bool = True,
) -> Iterator[str]:
    if compiled is None or pod is None:
        return
    cluster, spec = compiled.cluster, pod.spec
    if spec.node_name:
        if spec.node_name != node.metadata.name:
            yield f"pod spec.nodeName is {spec.node_name}"
        return
    for label, value in spec.node_selector.items():
        if node.metadata.labels.get(label) != value:
            yield f"pod spec.nodeSelector: {label}={value}"
    affinity = spec.required_nodes
    if affinity and not selector_matches(affinity, node):
        yield f"pod spec.affinity.nodeAffinity: {_selector_text(affinity)}"
    for taint in (
        node.spec.taints if Ignored.TAINTS not in compiled.pods.ignored else ()
    ):
        is_cordon = node.spec.unschedulable and taint.key == CORDON_TAINT.key
        if not is_cordon and not all_tolerated((taint,), spec.tolerations):
            yield f"node taint {taint.key}{taint.value and '='}{taint.value}:{taint.effect} is not tolerated"
    for key in cluster.pod_claims(pod) if allocated else ():
        claim = cluster.claim(key)
        allocation = claim.status.allocation if claim is not None else None
        selector = allocation.node_selector if allocation is not None else None
        if selector is not None and not selector_matches(selector, node):
            yield f"claim {key} is allocated for {_selector_text(selector)}"


def _selector_text(selector: NodeSelector) -> str:
    """A node selector in short."""
    return " or ".join(map(_term, selector.node_selector_terms))


def _term(term: NodeSelectorTerm) -> str:
    requirements = (*term.match_expressions, *term.match_fields)
    return " and ".join(
        f"{requirement.key} {requirement.operator} {list(requirement.values)}"
        if requirement.values
        else f"{requirement.key} {requirement.operator}"
        for requirement in requirements
    )


def pod_of(cluster: Cluster, demand: Demand) -> Pod | None:
    """The pod of a demand; None if it is a claim that no pod uses (a pod may have the same name)."""
    lone = cluster.is_lone(demand.key, (claim.key for claim in demand.claims))
    return None if lone else cluster.pods_by_key.get(demand.key)


# ----------------------------------------------------------------------------
# What bars a pod from a node beside devices at its turn: the node has too little
# left, or other pods are there.

_TOO_MANY: Final = "Too many pods"
_OF_POD: Final = "pod level request for {} does not cover the devices"
_PORTS: Final = "didn't have free ports for the requested pod ports"
_UNMET: Final[Mapping[type[InterPodRule], str]] = {
    AntiAffinity: "didn't match pod anti-affinity rules",
    Affinity: "didn't match pod affinity rules",
    Spread: "didn't match pod topology spread constraints",
    OneDomain: "didn't match the domain of the others of its group",
}
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Bar:
    """A reason why a node will not do, in kube-scheduler's words, with the facts about this node: holders and amounts.

    Parameters
    ----------
    resource, left
        What a pod asks too much of, and how much of it is left, in nanos; empty for what is no amount.
    """

    text: str
    detail: str = ""
    resource: str = ""
    left: int = 0


class SettledPods:
    """The pods that have a node: those that run and use claims, and those that are placed; and what they leave there.

    Parameters
    ----------
    asked
        The demands that nodes are asked about, every one of them: also those that rules of a pod or of the cluster
        leave out.
    placements
        Placements of devices. The pods that run and use claims are holders of their nodes as those that are placed:
        without the claims, they are not there either.
    """

    def __init__(
        self,
        compiled: CompiledCluster,
        asked: Collection[DemandIndex],
        placements: Sequence[Placement],
    ) -> None:
        problem = compiled.problem
        self.running = compiled.pods.running
        self.incumbents = tuple(_running_users(compiled))
        demands = [
            *problem.demands,
            *(Demand(pod.key, ()) for pod in self.incumbents),
        ]
        for demand_index in asked:
            demands[demand_index] = replace(demands[demand_index], nodes=None)
        scenario = Scenario(compiled.cluster).unbind(
            {pod.key for pod in self.incumbents}
        )
        rules = compiled.pods.of(scenario.cluster)
        of_devices = replace(problem, demands=tuple(demands))
        # Once something does not count, something else may run short.
        self.whole = rules.applied(of_devices, complete=True)
        node_indices = {
            node.name: index for index, node in numbered(problem.nodes)
        }
        homes = (
            node_indices[pod.spec.node_name or ""] for pod in self.incumbents
        )
        settled = (
            Placement(DemandIndex(index), home, ())
            for index, home in enumerate(homes, len(problem.demands))
        )
        self.placements = {
            placement.demand: placement
            for placement in with_node_grants(
                self.whole, (*placements, *settled)
            )
        }
        self.users = self._by_claim(compiled)

    def _by_claim(
        self, compiled: CompiledCluster
    ) -> Mapping[ClaimKey, Sequence[DemandIndex]]:
        """Return, by claim, those of its users that have a node."""
        users: dict[ClaimKey, list[DemandIndex]] = defaultdict(list)
        for demand_index in self.placements:
            demand = self.whole.demands[demand_index]
            pod = compiled.cluster.pods_by_key.get(demand.key)
            allocated = () if pod is None else compiled.cluster.pod_claims(pod)
            open_claims = (
                claim.key for claim in demand.claims if not claim.is_synthetic
            )
            for key in dict.fromkeys((*open_claims, *allocated)):
                users[key].append(demand_index)
        return users

    @cached_property
    def ledger(self) -> ClaimLedger:
        """What they hold."""
        ledger = ClaimLedger(self.whole)
        for placement in self.placements.values():
            ledger.hold(holdings_of(self.whole, placement))
        return ledger

    @cached_property
    def domains(self) -> DomainLedger:
        """Who of them is where, for rules between pods."""
        domains = DomainLedger()
        for placement in self.placements.values():
            roles = self.whole.demands[placement.demand].roles
            domains.enter(roles, self.whole.nodes[placement.node].name)
        return domains

    def claims_on(self, node: NodeIndex) -> set[ClaimKey]:
        """The claims of those that have this node."""
        on_node = {
            demand
            for demand, placement in self.placements.items()
            if placement.node == node
        }
        return {
            key
            for key, users in self.users.items()
            if not on_node.isdisjoint(users)
        }

    @contextmanager
    def without(
        self, gone: Collection[DemandIndex], asked: NodeIndex | None = None
    ) -> Iterator[None]:
        """For a while, some of them are not there.

        Parameters
        ----------
        asked
            If only this node is asked about, what goes from others matters to rules between pods alone.
        """
        leaving = [self.placements[demand] for demand in gone]
        holdings = [
            holding
            for placement in leaving
            if asked in (None, placement.node)
            for holding in holdings_of(self.whole, placement)
        ]
        for placement in leaving:
            self._enter(placement, -1)
        self.ledger.release({holding.claim for holding in holdings})
        try:
            yield
        finally:
            self.ledger.hold(holdings)
            for placement in leaving:
                self._enter(placement)

    def _enter(self, placement: Placement, sign: int = 1) -> None:
        roles, name = (
            self.whole.demands[placement.demand].roles,
            self.whole.nodes[placement.node].name,
        )
        self.domains.enter(roles, name, sign)


class NodeBars:
    """Finds the reasons that keep a demand from nodes beside pods that have one; the exact model may use others."""

    def __init__(
        self, settled: SettledPods, demand_index: DemandIndex, *, exact: bool
    ) -> None:
        self.settled = settled
        self._whole = settled.whole
        self._exact = exact
        self._demand = self._whole.demands[demand_index]
        self._known: dict[
            frozenset[DemandIndex], dict[NodeIndex, tuple[Bar, ...]]
        ] = defaultdict(dict)

    def allows(self, node: NodeIndex) -> bool:
        """Whether nothing keeps the demand from a node. To say what does takes longer."""
        shortages = _shortages(
            self._whole, self.settled.ledger, self._demand, node
        )
        return not (
            any(shortages)
            or any(self._unmet(node))
            or any(self._short_for_devices(node))
        )

    def of(
        self, node: NodeIndex, released: Collection[ClaimKey] = ()
    ) -> tuple[Bar, ...]:
        """Return every reason that keeps the demand from a node, once the pods of some claims are gone."""
        gone = frozenset(
            demand
            for key in released
            for demand in self.settled.users.get(key, ())
        )
        # Without rules between pods, what goes from other nodes does not matter.
        if not self._demand.roles:
            gone = frozenset(
                demand
                for demand in gone
                if self.settled.placements[demand].node == node
            )
        bars = self._known[gone]
        if node not in bars:
            with self.settled.without(gone, node):
                bars[node] = (*self._short(node), *self._unmet(node)) or tuple(
                    self._short_for_devices(node)
                )
        return bars[node]

    @contextmanager
    def resettling(
        self, node: NodeIndex, released: Collection[ClaimKey]
    ) -> Iterator[Resettling]:
        """For a while, the demand is on a node, and the pods of some claims are gone, to be settled anew."""
        gone = {
            demand
            for key in released
            for demand in self.settled.users.get(key, ())
        }
        with self.settled.without(gone):
            resettling = Resettling(
                self._whole, self.settled.ledger, self.settled.domains, gone
            )
            resettling.settle(self._demand, node)
            try:
                yield resettling
            finally:
                resettling.revoke()

    def _short_for_devices(self, node: NodeIndex) -> Iterator[Bar]:
        """Yield resources of which upstream's allocator would find too little on the node or in the pod's requests.

        To the exact model other devices count, too, which upstream does not look for.
        """
        problem = self._whole
        if not problem.footprint_counters:
            return
        alone = self._demand.by_itself(nodes=None, roles=())
        part = cut(
            problem,
            [node],
            demands=[alone],
            ledger=self.settled.ledger,
            counters=indices(problem.counters),
        ).problem
        solution = first_fit(before_footprints(part))
        if (
            not solution.placements
            or first_fit(part).placements
            or (self._exact and solve(part).placements)
        ):
            return
        for counter_index, charged in _charged(
            part, solution.placements[0]
        ).items():
            counter = part.counters[counter_index]
            if charged > counter.free:
                resource = resource_of(counter.id.counter)
                text = (
                    f"Insufficient {resource}"
                    if counter.id.pool
                    else _OF_POD.format(resource)
                )
                yield Bar(
                    text,
                    f"{amount(charged)} requested with the devices, {amount(max(0, counter.free))} left",
                )

    def _short(self, node: NodeIndex) -> Iterator[Bar]:
        for device, shortage in _shortages(
            self._whole, self.settled.ledger, self._demand, node
        ):
            yield self._bar(node, device, shortage)

    def _bar(self, node: NodeIndex, device: Device, shortage: Shortage) -> Bar:
        index = shortage.subject if isinstance(shortage.subject, int) else None
        name = (
            str(shortage.subject)
            if index is None
            else self._whole.counters[CounterIndex(index)].id.counter
        )
        resource = resource_of(name)
        if name.startswith("podAntiAffinity"):
            return Bar(_UNMET[AntiAffinity])
        if not resource:
            return Bar(_PORTS)
        pods = list(self._holders(node, device, shortage))
        amounts = _held_against(shortage.requested, max(0, shortage.available))
        held = listed(
            [f"{name} ({amount(nanos)})" for name, nanos in pods], _NAMED
        )
        detail = f"{amounts}; held by {held}" if held else amounts
        if resource == "pods":
            return Bar(_TOO_MANY, detail)
        remaining = max(0, shortage.available)
        return Bar(f"Insufficient {resource}", detail, resource, remaining)

    def _holders(
        self, node: NodeIndex, device: Device, shortage: Shortage
    ) -> Iterator[tuple[str, int]]:
        """Yield the holders of a resource with their amounts: bound pods as one, then placed pods, largest first."""
        if isinstance(shortage.subject, int):
            # Devices take something of it, too (KEP-5517).
            counter = self._whole.counters[CounterIndex(shortage.subject)]
            bound = counter.total - counter.free
        else:
            bound = self._whole.usage.consumed[device.slot].get(
                shortage.subject, 0
            )
        holders = {
            ClaimKey(key.namespace, key.name.removesuffix("/node")): nanos
            for key, nanos in self.settled.ledger.holders(
                device, shortage
            ).items()
        }
        running = {pod.key for pod in self.settled.incumbents}
        bound += sum(nanos for key, nanos in holders.items() if key in running)
        if bound:
            yield (
                counted(
                    len(self.settled.running[self._whole.nodes[node].name]),
                    "bound pod",
                ),
                bound,
            )
        for key, nanos in sorted(holders.items(), key=lambda entry: -entry[1]):
            if key not in running:
                yield str(key), nanos

    def _unmet(self, node: NodeIndex) -> Iterator[Bar]:
        name = self._whole.nodes[node].name
        if node not in self._whole.candidate_nodes(self._demand):
            yield Bar(
                "didn't match rules between pods, because of pods that have a node"
            )
        for role in self._demand.roles:
            if not self.settled.domains.allows((role,), name):
                yield Bar(_UNMET[type(role.rule)])


def _shortages(
    problem: Problem, ledger: ClaimLedger, demand: Demand, node: NodeIndex
) -> Iterator[tuple[Device, Shortage]]:
    """Yield each resource of which a node has too little for a demand: the synthetic device and the shortage."""
    claim = demand.claims[0] if demand.claims else None
    if claim is None or not claim.is_synthetic:
        return
    [index] = problem.nodes[node].pools[-1].devices
    device = problem.devices[index]
    [alternative] = claim.alternatives()
    charge = problem.eligibility.charge(alternative.index, index) or Charge()
    for shortage in ledger.shortages(device, charge):
        yield device, shortage


@dataclass
class Resettling:
    """Finds new nodes for pods that have lost theirs, one pod after the other.

    Parameters
    ----------
    ledger, domains
        What is held at the moment, and who is where; changed until `revoke`.
    leaving
        Those that have lost their nodes, by the number of their demands.
    """

    problem: Problem
    ledger: ClaimLedger
    domains: DomainLedger
    leaving: Collection[DemandIndex]
    _settled: list[tuple[Demand, NodeIndex]] = field(default_factory=list)

    def demand(self, pod: ClaimKey) -> Demand | None:
        """Return a pod's demand beside devices; None if it requests nothing and no rule is about it."""
        demands = (self.problem.demands[index] for index in self.leaving)
        return next((demand for demand in demands if demand.key == pod), None)

    def may_go(self, demand: Demand, node: NodeIndex) -> bool:
        """Whether the node has enough for it, and rules between pods allow it."""
        return (
            node in self.problem.candidate_nodes(demand)
            and self.domains.allows(demand.roles, self.problem.nodes[node].name)
            and not any(_shortages(self.problem, self.ledger, demand, node))
        )

    def settle(self, demand: Demand, node: NodeIndex) -> None:
        """Enter what it takes there."""
        self.domains.enter(demand.roles, self.problem.nodes[node].name)
        self.ledger.hold(self._holdings(demand, node))
        self._settled.append((demand, node))

    def revoke(self) -> None:
        """Undo all that was entered."""
        for demand, node in self._settled:
            self.domains.enter(demand.roles, self.problem.nodes[node].name, -1)
            self.ledger.release(
                [holding.claim for holding in self._holdings(demand, node)]
            )
        self._settled.clear()

    def _holdings(self, demand: Demand, node: NodeIndex) -> Sequence[Holding]:
        alone = replace(
            self.problem,
            demands=(
                demand.by_itself(claims=demand.claims[: _synthetic(demand)]),
            ),
        )
        [placement] = with_node_grants(
            alone, [Placement(DemandIndex(0), node, ())]
        )
        return list(holdings_of(alone, placement))


def _synthetic(demand: Demand) -> int:
    """Return how many of the first claims are synthetic (see `dralloc.problem.node_claims`): one or none."""
    return int(bool(demand.claims) and demand.claims[0].is_synthetic)


def _running_users(compiled: CompiledCluster) -> Iterator[Pod]:
    """The pods that run and use claims, if it matters what else they take of their nodes."""
    if not compiled.may_bind:
        return
    pending = {demand.key for demand in compiled.problem.demands}
    names = {node.name for node in compiled.problem.nodes}
    for pod in compiled.cluster.pods:
        if (
            pod.spec.node_name in names
            and pod.key not in pending
            and compiled.cluster.pod_claims(pod)
        ):
            yield pod


def _charged(problem: Problem, placement: Placement) -> Counter[CounterIndex]:
    amounts: Counter[CounterIndex] = Counter()
    for claim, grants in zip(
        problem.demands[placement.demand].claims, placement.grants, strict=True
    ):
        for request, choice, device in grants:
            charge = (
                problem.eligibility.charge(
                    claim.requests[request].alternatives[choice].index, device
                )
                or Charge()
            )
            amounts.update(
                {
                    counter: amount
                    for counter, amount in charge.counters
                    if counter in problem.footprint_counters
                }
            )
    return amounts


def _held_against(requested: int, available: int) -> str:
    """Return both amounts, in a form in which the larger one is seen to be larger."""
    available_text = at_most(available)
    if available_text == amount(requested):
        available_text = amount(available)
    return f"{amount(requested)} requested, {available_text} left"
