"""The cluster as it is when the demand that is explained has its turn: all that was granted before is in use."""

from __future__ import annotations

from dralloc.ask.explain.snapshot import DemandSnapshot
from dralloc.ask.scenario import Scenario
from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.write import allocated_claims
from dralloc.problem.solution import Solution

__all__ = ["at_the_moment"]


def at_the_moment(
    compiled: CompiledCluster, snapshot: DemandSnapshot
) -> Scenario:
    """Return the cluster with everything that was granted before the demand's turn."""
    placements = tuple(snapshot.placements)
    homes = {}
    for placement in placements:
        demand = compiled.problem.demands[placement.demand]
        if not compiled.is_claim(demand):
            homes[demand.key] = compiled.problem.nodes[placement.node].name
    return Scenario(compiled.cluster).settle(
        allocated_claims(compiled, Solution(placements)), homes
    )
