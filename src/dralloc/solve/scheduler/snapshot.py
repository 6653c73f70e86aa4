"""The snapshot: everything on the nodes, with counts of pods by domain that are kept up as pods come and go."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Container,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import numpy as np

from dralloc.compile.pods import PodInfo, PodKind
from dralloc.compile.pods.selectors import Term
from dralloc.objects.api import Node
from dralloc.problem import NodeIndex
from dralloc.solve.scheduler.node_columns import NodeColumns
from dralloc.solve.scheduler.node_info import NodeInfo, by_zones
from dralloc.solve.scheduler.verdicts import Rejection

__all__ = ["EVERY_NODE", "EligibleNodes", "Snapshot", "Tally", "image_names"]

EVERY_NODE: Final = ""
"""Stands for a topology key with which every node is a domain of its own."""


@dataclass(eq=False)
class Tally:
    """The number of pods of some sort in each domain.

    Parameters
    ----------
    topology_key
        The label of nodes whose values are the domains.
    weigh
        How often a pod of a kind counts, by what rules between pods know of it.
    places
        The only nodes that count; None for all.
    counts
        By domain; domains without such pods are left out.
    """

    topology_key: str
    weigh: Callable[[PodKind], int]
    places: Container[int] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    _weights: dict[Hashable, int] = field(default_factory=dict)

    def weight(self, kind: PodKind) -> int:
        """Return how often a pod of a kind counts, worked out once."""
        weight = self._weights.get(kind.inter_pod_key)
        if weight is None:
            weight = self._weights[kind.inter_pod_key] = self.weigh(kind)
        return weight

    def count(self, kind: PodKind, node: NodeInfo, pod_count: int) -> None:
        """Enter so many pods of a kind, or revoke them."""
        weight = self.weight(kind)
        if not weight or (
            self.places is not None and node.place not in self.places
        ):
            return
        domain = (
            node.labels.get(self.topology_key)
            if self.topology_key
            else node.name
        )
        if domain is not None:
            self.counts[domain] = (
                self.counts.get(domain, 0) + pod_count * weight
            )
            if not self.counts[domain]:
                del self.counts[domain]

    def on(self, node: NodeInfo) -> int:
        """Return how many there are in the node's domain."""
        if not self.topology_key:
            return self.counts.get(node.name, 0)
        # The value of a label may be empty, so a node without it has no value here.
        domain = node.labels.get(self.topology_key)
        return 0 if domain is None else self.counts.get(domain, 0)


class EligibleNodes(NamedTuple):
    """The nodes on which pods count for a constraint, by position, and their domains."""

    places: frozenset[int]
    domains: frozenset[str]


class Snapshot:
    """The nodes in the scheduler's order and the pods on them.

    Parameters
    ----------
    nodes
        As the problem has them.
    heard_of
        Indices of the nodes in the order in which the scheduler heard of them.

    Notes
    -----
    ``changes``: positions of nodes on which something has changed, in order, some more than once. ``states``: by
    position a number that a node had before only if everything on it is as it was then. ``numbers``: by position the
    index of the node in the problem. ``columns``: what nodes have and are, for all of them at once. ``carried``: for
    each sort of terms (`PodKind.required_anti_affinity`, ...) the terms that pods on nodes have, with the number of
    pods that have them by domain. ``eligible``: on which nodes pods count for constraints, by all that makes a
    difference.
    """

    def __init__(
        self, nodes: Sequence[Node], heard_of: Sequence[NodeIndex]
    ) -> None:
        order = by_zones(nodes, heard_of)
        usages: dict[Hashable, int] = {}
        self.nodes = tuple(
            NodeInfo(nodes[node_index], node_index, position, usages)
            for position, node_index in enumerate(order)
        )
        # What is against nodes for what they are, with a number for each.
        self.rejections: dict[Rejection, int] = {}
        # What plugins say that look at nothing of nodes that changes, by what they read of pods.
        self.answers: dict[Hashable, Any] = {}
        self._heard_of = [nodes[node_index] for node_index in heard_of]
        self.by_name = {node.name: node for node in self.nodes}
        self.numbers = np.array(order, np.intp)
        self.changes: list[int] = []
        self.states = np.zeros(len(order), np.int64)
        self._latest_state = 0
        self.columns = NodeColumns(self.nodes, self.changes)
        self._tallies: dict[Hashable, Tally] = {}
        # By key between pods: in how many tallies it was looked for, and those in which it counts.
        self._tallies_of_kind: dict[Hashable, tuple[int, list[Tally]]] = {}
        # By key between pods: a kind with it, and the number of such pods by position.
        self._places_of_kinds: dict[
            Hashable, tuple[PodKind, dict[int, int]]
        ] = {}
        self.carried: dict[str, dict[Term, Tally]] = defaultdict(dict)
        self.eligible: dict[Hashable, EligibleNodes] = {}

    @cached_property
    def images(self) -> Mapping[str, int]:
        """The worth of finding an image: its size, less the fewer nodes have it (upstream: as float64).

        The size is what the first node says that the scheduler heard of.
        """
        sizes: dict[str, int] = {}
        nodes: Counter[str] = Counter()
        for node in self._heard_of:
            nodes.update(image_names(node))
            for image in node.status.images:
                for name in image.names:
                    sizes.setdefault(name, image.size_bytes)
        return {
            name: int(float(size) * (nodes[name] / len(self.nodes)))
            for name, size in sizes.items()
        }

    def add(self, pod: PodInfo, node: NodeInfo) -> None:
        """Put a pod on a node."""
        for sort in (
            "required_affinity",
            "required_anti_affinity",
            "preferred",
        ):
            for term in getattr(pod.kind, sort):
                if term not in self.carried[sort]:
                    weigh = partial(_times, sort, term)
                    tally = self.tally((sort, term), term.topology_key, weigh)
                    self.carried[sort][term] = tally
        node.add(pod)
        self.note_change(node.place)
        self._count(pod.kind, node, 1)

    def remove(self, pod: PodInfo, node: NodeInfo) -> None:
        """Take a pod off a node."""
        node.remove(pod)
        self.note_change(node.place)
        self._count(pod.kind, node, -1)

    def _count(self, kind: PodKind, node: NodeInfo, pod_count: int) -> None:
        """Enter so many pods of a kind in the counts by domain, or revoke them."""
        for tally in self._counting(kind):
            tally.count(kind, node, pod_count)
        _, pod_counts = self._places_of_kinds.setdefault(
            kind.inter_pod_key, (kind, {})
        )
        pod_counts[node.place] = pod_counts.get(node.place, 0) + pod_count
        if not pod_counts[node.place]:
            del pod_counts[node.place]

    def note_change(self, position: int) -> None:
        """Know that something has changed on a node, or about the devices that it sees."""
        self.changes.append(position)
        self._latest_state += 1
        self.states[position] = self._latest_state

    def states_at(self, positions: Iterable[int]) -> dict[int, int]:
        """The states of some nodes."""
        return {position: int(self.states[position]) for position in positions}

    def restore(self, states: Mapping[int, int]) -> None:
        """Know that nodes are as they were in these states."""
        for position, state in states.items():
            self.states[position] = state

    def _counting(self, kind: PodKind) -> Sequence[Tally]:
        """The tallies in which pods of a kind count."""
        key = kind.inter_pod_key
        looked_at, counting = self._tallies_of_kind.get(key, (0, []))
        if looked_at < len(self._tallies):
            new_tallies = list(self._tallies.values())[looked_at:]
            counting += [tally for tally in new_tallies if tally.weight(kind)]
            self._tallies_of_kind[key] = len(self._tallies), counting
        return counting

    def tally(
        self,
        key: Hashable,
        topology_key: str,
        weigh: Callable[[PodKind], int],
        positions: Container[int] | None = None,
    ) -> Tally:
        """The count of some sort of pods by domain; ``key`` stands for the sort and the positions."""
        identity = key, topology_key
        if identity not in self._tallies:
            tally = self._tallies[identity] = Tally(
                topology_key, weigh, positions
            )
            for kind, places_of_kind in self._places_of_kinds.values():
                if tally.weight(kind):
                    for position, pod_count in places_of_kind.items():
                        tally.count(kind, self.nodes[position], pod_count)
        return self._tallies[identity]


def image_names(node: Node) -> Set[str]:
    """Names of the images that a node has."""
    return {name for image in node.status.images for name in image.names}


def _times(sort: str, term: Term, kind: PodKind) -> int:
    """Return how often a kind has a term."""
    terms: tuple[Term, ...] = getattr(kind, sort)
    return terms.count(term)
