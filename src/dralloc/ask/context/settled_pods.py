"""The pods that have a node: those that run and use claims, and those that are placed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

from dralloc.ask.scenario import Scenario
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.api import Pod
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, DemandIndex, NodeIndex, numbered
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.inter_pod import DomainLedger
from dralloc.problem.solution import Placement, holdings_of, with_node_grants

__all__ = ["SettledPods"]


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
