"""Suggestions to add a node: which node types would hold the demand if there were one more of them, empty."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import islice

from dralloc.ask.explain.change import Change, Cost, Suggestion
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.ask.explain.snapshot import DemandSnapshot
from dralloc.ask.scenario import Scenario
from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.write import allocated_claims
from dralloc.objects.api import Node
from dralloc.problem import Demand
from dralloc.problem.solution import Solution

__all__ = ["added_nodes"]

_MOST = 8


def added_nodes(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """For each node type one of its nodes, if an empty node like it could take the demand."""
    snapshot = oracle.snapshot
    if snapshot.demand.claims != snapshot.whole.claims or not snapshot.whole.claims:
        return
    if not oracle.exact and oracle.gives_up(Change()):
        return
    added = _AddedNodes(oracle)
    fitting = (node for node in islice(added.types(), _MOST) if added.holds(node))
    for rank, node in enumerate(fitting):
        yield Suggestion(
            f"add a node like {node.name}", "fits on the new node", Cost.NODE, rank
        )


class _AddedNodes:
    """Clusters with one more node, at the moment that is explained."""

    def __init__(self, oracle: FeasibilityOracle) -> None:
        self.oracle = oracle
        self.moment = _at_the_moment(oracle.compiled, oracle.snapshot)
        self.nodes = {node.name: node for node in self.moment.cluster.nodes}

    def types(self) -> Iterator[Node]:
        """A node of each type to which the pod could go: equal in what it has, and in the classes of its devices."""
        snapshot, sources = self.oracle.snapshot, self.oracle.compiled.inventory.sources
        look = snapshot.context.offers.device_key
        seen: set[Hashable] = set()
        for known in snapshot.problem.nodes:
            node = self.nodes[known.name]
            # The devices that come with the node: those of slices that name it.
            local = [
                each
                for each in known.devices()
                if sources[each].slice.spec.node_name == known.name
            ]
            key = tuple(map(look, local)), frozenset(node.status.allocatable.items())
            if (
                local
                and key not in seen
                and not snapshot.exclusions.of_node(snapshot.whole, node)
            ):
                seen.add(key)
                yield node

    def holds(self, node: Node) -> bool:
        """Whether the demand fits on a new node like this one, whatever else is asked of it there."""
        name = f"{node.name} (new)"
        scenario = self.moment.with_copy_of(node.name, name)
        if not self.oracle.snapshot.caps.budgets:
            # No device of another node alone can matter, but for what caps count.
            scenario = scenario.without_slices_of(self.nodes.keys())
        compiled = self.oracle.compiled.again(scenario.cluster, nodes=[name])
        number = next(
            place
            for place, one in enumerate(compiled.problem.nodes)
            if one.name == name
        )
        return self.oracle.fits(compiled, self._demand(compiled), number)

    def _demand(self, compiled: CompiledCluster) -> Demand:
        """The explained demand as it is in the changed cluster."""
        asked = self.oracle.compiled.problem.demands[self.oracle.snapshot.number]
        is_claim = self.oracle.compiled.is_claim(asked)
        pairs = zip(compiled.problem.demands, compiled.whole.demands, strict=True)
        return next(
            whole
            for one, whole in pairs
            if one.key == asked.key and compiled.is_claim(one) is is_claim
        )


def _at_the_moment(compiled: CompiledCluster, snapshot: DemandSnapshot) -> Scenario:
    """The cluster once everybody has what they have been granted when the demand comes."""
    placements = tuple(snapshot.placements)
    homes = {
        demand.key: compiled.problem.nodes[one.node].name
        for one in placements
        if not compiled.is_claim(demand := compiled.problem.demands[one.demand])
    }
    return Scenario(compiled.cluster).settle(
        allocated_claims(compiled, Solution(placements)), homes
    )
