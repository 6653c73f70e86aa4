"""New nodes for pods that have lost theirs, as far as nodes have enough and rules between pods allow it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Charge,
    Demand,
    DemandIndex,
    Device,
    NodeIndex,
    Problem,
)
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.inter_pod import DomainLedger
from dralloc.problem.ledger import Holding, Shortage
from dralloc.problem.solution import Placement, holdings_of, with_node_grants

__all__ = ["Resettling", "shortages_on"]


def shortages_on(
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
            and not any(shortages_on(self.problem, self.ledger, demand, node))
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
