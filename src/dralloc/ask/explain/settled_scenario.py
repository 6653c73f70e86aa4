"""The cluster at the turn of the demand that is explained."""

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
    """The cluster at the demand's turn: with everything that was granted before."""
    placements = tuple(snapshot.placements)
    homes = {}
    for placement in placements:
        demand = compiled.problem.demands[placement.demand]
        if not compiled.is_claim(demand):
            homes[demand.key] = compiled.problem.nodes[placement.node].name
    return Scenario(compiled.cluster).settle(
        allocated_claims(compiled, Solution(placements)), homes
    )
