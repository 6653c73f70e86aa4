"""Suggestions to add a node: which node types would hold the demand if there were one more of them, empty."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import islice

from dralloc.ask.explain.changes import Change, Cost, Suggestion
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.ask.explain.settled_scenario import at_the_moment
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.api import Node
from dralloc.objects.api.disclosure import HOSTNAME_LABEL
from dralloc.problem import (
    CounterIndex,
    Demand,
    DeviceIndex,
    NodeIndex,
    numbered,
)
from dralloc.problem.equivalence import Recurrence, device_traits
from dralloc.problem.inter_pod import Affinity

__all__ = ["added_nodes"]

_MOST_NODES = 8


def added_nodes(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """Return, for each node type, one of its nodes if an empty node like it could take the demand."""
    snapshot = oracle.snapshot
    if (
        snapshot.demand.claims != snapshot.whole.claims
        or not snapshot.whole.claims
    ):
        return
    if not oracle.exact and oracle.gives_up(Change()):
        return
    added = _AddedNodes(oracle)
    types = list(islice(added.types(), _MOST_NODES))
    for rank, node in enumerate(added.holding(types)):
        yield Suggestion(
            f"add a node like {node.name}",
            "fits on the new node",
            Cost.NODE,
            rank,
        )


class _AddedNodes:
    """Clusters with one more node, at the moment that is explained."""

    def __init__(self, oracle: FeasibilityOracle) -> None:
        self.oracle = oracle
        self.moment = at_the_moment(oracle.compiled, oracle.snapshot)
        self.nodes = {node.name: node for node in self.moment.cluster.nodes}

    def types(self) -> Iterator[Node]:
        """A node of each type to which the pod could go: equal in what it and its devices have."""
        snapshot, sources = (
            self.oracle.snapshot,
            self.oracle.compiled.inventory.sources,
        )
        seen: set[Hashable] = set()
        for index, problem_node in numbered(snapshot.problem.nodes):
            node = self.nodes[problem_node.name]
            # The devices that come with the node: those of slices that name it.
            local = [
                device
                for device in problem_node.devices()
                if sources[device].slice.spec.node_name == problem_node.name
            ]
            key = (
                self._offer(local),
                frozenset(node.status.allocatable.items()),
                tuple(self._company(node, index)),
            )
            if (
                local
                and key not in seen
                and not snapshot.exclusions.of_node(snapshot.whole, node)
            ):
                seen.add(key)
                yield node

    def _offer(self, devices: Sequence[DeviceIndex]) -> Hashable:
        """Return all that tells an empty node with these devices from another: the amounts of its counters, too."""
        snapshot = self.oracle.snapshot
        problem, look = snapshot.problem, snapshot.context.offers.device_key
        number_of: dict[tuple[str, int], int] = {}

        def number(sort: str, index: int) -> int:
            return number_of.setdefault((sort, index), len(number_of))

        views = [problem.devices[device] for device in devices]
        recurrence = Recurrence(
            sorted({name for device in views for name in device.attributes})
        )
        offered = tuple(
            (
                look(index),
                device_traits(device, number),
                recurrence.of(device.attributes),
            )
            for index, device in zip(devices, views, strict=True)
        )
        totals = tuple(
            problem.counters[CounterIndex(index)].total
            for sort, index in number_of
            if sort == "counter"
        )
        return offered, tuple(recurrence.names), totals

    @cached_property
    def _bound(self) -> Demand:
        """The explained demand with rules between pods, beside those that run."""
        whole = self.oracle.compiled.whole
        return whole.demands[self.oracle.snapshot.number]

    @cached_property
    def _candidates(self) -> frozenset[NodeIndex]:
        """The nodes to which these rules let it go."""
        whole = self.oracle.compiled.whole
        return frozenset(whole.candidate_nodes(self._bound))

    def _company(self, node: Node, index: NodeIndex) -> Iterator[Hashable]:
        """Yield where rules between pods see a node: whether the pod may go there, and the domains of each rule."""
        own = node.metadata.labels
        yield index in self._candidates
        for rule in dict.fromkeys(role.rule for role in self._bound.roles):
            of_rule = (
                rule.domains if isinstance(rule, Affinity) else [rule.domains]
            )
            for domains in of_rule:
                domain = domains.get(node.name)
                # A new node has a domain of its own for its name.
                yield None if domain == own.get(HOSTNAME_LABEL) else domain

    def holding(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes of which the demand fits on a new one, whatever else is asked of it there.

        The new nodes are there together, as compiling takes longer than all else. Each is empty, and the demand is
        tried on it alone. None matters to another one, not even where pods are spread over domains: a copy is in the
        domains of its original, and in one of its own name, which has nobody in it.
        """
        if not nodes:
            return []
        names = [f"{node.name} (new)" for node in nodes]
        scenario = self.moment
        for node, name in zip(nodes, names, strict=True):
            scenario = scenario.with_copy_of(node.name, name)
        if not self.oracle.snapshot.caps.budgets:
            # No device of another node alone can matter, but for what caps count.
            scenario = scenario.without_slices_of(self.nodes.keys())
        compiled = self.oracle.compiled.again(scenario.cluster, nodes=names)
        node_indices = {
            problem_node.name: index
            for index, problem_node in numbered(compiled.problem.nodes)
        }
        demand = self._demand(compiled)
        return [
            node
            for node, name in zip(nodes, names, strict=True)
            if self.oracle.fits(compiled, demand, node_indices[name])
        ]

    def _demand(self, compiled: CompiledCluster) -> Demand:
        """The explained demand as it is in the changed cluster."""
        explained = self.oracle.compiled.problem.demands[
            self.oracle.snapshot.number
        ]
        is_claim = self.oracle.compiled.is_claim(explained)
        pairs = zip(
            compiled.problem.demands, compiled.whole.demands, strict=True
        )
        return next(
            with_pod_rules
            for demand, with_pod_rules in pairs
            if demand.key == explained.key
            and compiled.is_claim(demand) is is_claim
        )
