"""Suggestions to add a node: which node types would hold the demand if there were one more of them, empty."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from dralloc.api import Node
from dralloc.api.disclosure import HOSTNAME_LABEL
from dralloc.api.objects import changed
from dralloc.context.context import alternatives_in
from dralloc.context.node_rules import CORDONED
from dralloc.explain.change import Change, Cost, Suggestion
from dralloc.explain.oracle import FeasibilityOracle
from dralloc.inventory.reach import NodeIndex

__all__ = ["added_nodes"]

_MOST = 8


def added_nodes(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """For each node type one of its nodes, if an empty node like it could take the demand."""
    snapshot = oracle.snapshot
    if snapshot.demand.claims != snapshot.whole.claims or not snapshot.whole.claims:
        return
    if not oracle.exact and oracle.gives_up(Change()):
        return
    fitting = (one for one in _types(oracle) if one.is_allowed() and one.holds())
    for rank, one in enumerate(fitting):
        yield Suggestion(f"add a node like {one.node.name}", "fits on the new node", Cost.NODE, rank)


def _types(oracle: FeasibilityOracle) -> list[_AddedNode]:
    """One for each node type: nodes that offer devices of equal classes in the same order."""
    look = oracle.snapshot.context.offers.device_key
    found: dict[Hashable, _AddedNode] = {}
    for number in oracle.snapshot.problem.all_nodes:
        added = _AddedNode(oracle, number)
        if added.local:
            found.setdefault(tuple(map(look, added.local)), added)
    return list(found.values())[:_MOST]


class _AddedNode:
    """An empty node like one that there is."""

    def __init__(self, oracle: FeasibilityOracle, number: int) -> None:
        self.oracle = oracle
        self.number = number
        self.node = oracle.snapshot.problem.nodes[number]
        self.sources = oracle.compiled.inventory.sources
        # The devices that come with the node: those of slices that name it.
        local = (each for each in self.node.devices() if self.sources[each].slice.spec.node_name == self.node.name)
        self.local = list(local)

    def is_allowed(self) -> bool:
        """Whether the pod could go to the new node."""
        snapshot = self.oracle.snapshot
        if set(snapshot.rules(self.number)) - {CORDONED}:
            return False
        return not snapshot.exclusions.of_node(snapshot.whole, self._renamed())

    def holds(self) -> bool:
        """Whether the demand fits on the new node."""
        oracle, context = self.oracle, self.oracle.snapshot.context
        demand, lift = oracle.wanted(Change()), oracle.lift(Change())
        ledger = context.ledger.copy()
        ledger.vacate(frozenset(self.local))
        context = replace(context, ledger=ledger)
        reached = frozenset((*self.local, *self._reached()))
        relevant = context.relevant(self.number, alternatives_in([demand]))
        part = context.cut([self.number], [device for device in relevant if device in reached], [demand], lift)
        found = oracle.within(part, demand, lift)
        return found is not None and found.node >= 0

    def _reached(self) -> Iterator[int]:
        """The devices of the node's pools that a new node with its labels would reach, too."""
        new = NodeIndex([self._renamed()])
        for number in self.node.devices():
            source, device = self.sources[number], self.oracle.snapshot.problem.devices[number]
            if new.of_slice(source.slice) and (device.nodes is None or new.of_device(source.device)):
                yield number

    def _renamed(self) -> Node:
        """The node's object under a new name, which its host name follows."""
        nodes = self.oracle.compiled.cluster.nodes
        node = next(node for node in nodes if node.metadata.name == self.node.name)
        name = f"{self.node.name}-new"
        labels = {key: name if key == HOSTNAME_LABEL else value for key, value in node.metadata.labels.items()}
        return changed(node, metadata=changed(node.metadata, name=name, labels=labels))
