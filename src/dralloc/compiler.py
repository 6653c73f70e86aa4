"""From a cluster to the problem that the solvers read.

Demands are ordered as the scheduler would take pods: higher priority first, then older first, then as given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dralloc.api import Node as ApiNode
from dralloc.api import NodeSelector, Pod, ResourceClaim
from dralloc.cluster import Cluster
from dralloc.errors import DrallocError
from dralloc.features import ALL_FEATURES, Features
from dralloc.garbage import without_garbage_collection
from dralloc.inventory import Inventory, take_inventory
from dralloc.inventory.nodes import selector_matches
from dralloc.match import MatchTable
from dralloc.match.requests import compile_claim
from dralloc.names import ClaimKey
from dralloc.problem import Claim, Demand, Problem

__all__ = ["Compiled", "compile_cluster"]


@dataclass(frozen=True)
class Compiled:
    """A problem with the objects behind its numbers, which the writer needs."""

    problem: Problem
    inventory: Inventory
    table: MatchTable
    cluster: Cluster


@without_garbage_collection()
def compile_cluster(cluster: Cluster, features: Features = ALL_FEATURES, nodes: Sequence[str] = ()) -> Compiled:
    """Compile what a cluster wants and has.

    Parameters
    ----------
    nodes
        Names of the nodes to place on, in search order; all nodes of the cluster if there are none.

    Raises
    ------
    DrallocError
        A named node does not exist.
    """
    chosen = _choose(cluster.nodes, nodes)
    attributes = frozenset(
        constraint.match_attribute or constraint.distinct_attribute or ""
        for claim in cluster.claims
        if claim.status.allocation is None
        for constraint in claim.spec.devices.constraints
    )
    inventory = take_inventory(cluster.slices, chosen, cluster.claims, attributes, features)
    table = MatchTable(inventory, features)
    demands = _Demands(cluster, chosen, table, features)
    problem = Problem(
        demands=demands.in_order(),
        nodes=inventory.nodes,
        devices=inventory.devices,
        counters=inventory.counters,
        usage=inventory.usage,
        eligibility=table,
        features=features,
    )
    return Compiled(problem, inventory, table, cluster)


def _choose(nodes: Sequence[ApiNode], names: Sequence[str]) -> tuple[ApiNode, ...]:
    if not names:
        return tuple(nodes)
    by_name = {node.metadata.name: node for node in nodes}
    for name in names:
        if name not in by_name:
            raise DrallocError(f'node "{name}" does not exist: neither a Node object nor a slice names it')
    return tuple(by_name[name] for name in names)


@dataclass(frozen=True)
class _Demands:
    cluster: Cluster
    nodes: Sequence[ApiNode]
    table: MatchTable
    features: Features

    def in_order(self) -> tuple[Demand, ...]:
        """All demands, weighted: one more for each distinct priority below."""
        found = [*self._of_pods(), *self._of_lone_claims()]
        found.sort(key=lambda entry: (-entry[1].priority, entry[0] is None, entry[0] or ""))
        return _weighted([demand for _, demand in found])

    def _of_pods(self) -> Iterator[tuple[str | None, Demand]]:
        compiled: dict[ClaimKey, Claim] = {}
        for pod in self.cluster.pods:
            if pod.spec.scheduling_gates:
                continue
            claims = []
            selectors = []
            for key in self.cluster.pod_claims(pod):
                claim = self.cluster.claim(key)
                if claim is None:
                    reason = "; ".join(self.cluster.unresolved.get(pod.key, ()))
                    claims.append(Claim(key, "", (), defect=f"pod {pod.key}: {reason}"))
                elif claim.status.allocation is None:
                    if key not in compiled:
                        compiled[key] = self._compile(claim)
                    claims.append(compiled[key])
                elif claim.status.allocation.node_selector is not None:
                    selectors.append(claim.status.allocation.node_selector)
            if claims:
                nodes = self._nodes_for(pod, selectors)
                demand = Demand(pod.key, tuple(claims), priority=pod.spec.priority or 0, nodes=nodes)
                yield pod.metadata.creation_timestamp, demand

    def _of_lone_claims(self) -> Iterator[tuple[str | None, Demand]]:
        used = {key for claims in self.cluster.claims_of_pods.values() for key in claims}
        for claim in self.cluster.claims:
            if claim.key not in used and claim.status.allocation is None:
                nodes = self._schedulable([*range(len(self.nodes))])
                yield claim.metadata.creation_timestamp, Demand(claim.key, (self._compile(claim),), nodes=nodes)

    def _compile(self, claim: ResourceClaim) -> Claim:
        return compile_claim(claim, self.cluster.classes, self.table, self.features)

    def _nodes_for(self, pod: Pod, selectors: Sequence[NodeSelector]) -> tuple[int, ...] | None:
        """The nodes that the pod itself and its allocated claims allow."""
        if pod.spec.node_name:
            return tuple(index for index, node in enumerate(self.nodes) if node.metadata.name == pod.spec.node_name)
        affinity = pod.spec.affinity and pod.spec.affinity.node_affinity and pod.spec.affinity.node_affinity.required
        every = [*selectors, affinity] if affinity else selectors
        wanted = pod.spec.node_selector.items()
        return self._schedulable(
            [
                index
                for index, node in enumerate(self.nodes)
                if wanted <= node.metadata.labels.items()
                and all(selector_matches(selector, node) for selector in every)
            ]
        )

    def _schedulable(self, nodes: Sequence[int]) -> tuple[int, ...] | None:
        kept = tuple(index for index in nodes if not self.nodes[index].spec.unschedulable)
        return None if len(kept) == len(self.nodes) else kept


def _weighted(demands: Sequence[Demand]) -> tuple[Demand, ...]:
    weights = {priority: rank for rank, priority in enumerate(sorted({demand.priority for demand in demands}), 1)}
    return tuple(
        Demand(demand.key, demand.claims, demand.priority, weights[demand.priority], demand.nodes, demand.gang)
        for demand in demands
    )
