"""Everything on the nodes, with counts of pods by domain that are kept up as pods come and go."""

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
from typing import TYPE_CHECKING, Final

import numpy as np

from dralloc.compile.pods.kinds import PodInfo, PodKind
from dralloc.compile.pods.selectors import Term
from dralloc.objects.api import Node
from dralloc.solve.scheduler.node_columns import NodeColumns
from dralloc.solve.scheduler.nodes import NodeInfo, by_zones

if TYPE_CHECKING:
    from dralloc.solve.scheduler.plugin import Rejection

__all__ = ["EVERY_NODE", "Snapshot", "Tally", "image_names"]

EVERY_NODE: Final = ""
"""Stands for a topology key with which every node is a domain of its own."""


@dataclass(eq=False)
class Tally:
    """How many pods of some sort there are in each domain.

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
        """How often a pod of a kind counts, worked out once."""
        weight = self._weights.get(kind.inter_pod_key)
        if weight is None:
            weight = self._weights[kind.inter_pod_key] = self.weigh(kind)
        return weight

    def count(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        """Enter or revoke a pod."""
        weight = self.weight(pod.kind)
        if not weight or (self.places is not None and node.place not in self.places):
            return
        domain = node.labels.get(self.topology_key) if self.topology_key else node.name
        if domain is not None:
            self.counts[domain] = self.counts.get(domain, 0) + sign * weight
            if not self.counts[domain]:
                del self.counts[domain]

    def on(self, node: NodeInfo) -> int:
        """How many there are in the node's domain."""
        return self.counts.get(
            node.labels.get(self.topology_key, "") if self.topology_key else node.name,
            0,
        )


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
    ``changes``: places of nodes on which something has changed, in order, some more than once. ``states``: by place a
    number that a node had before only if everything on it is as it was then. ``numbers``: by place the index of the
    node in the problem. ``columns``: what nodes have and are, for all of them at once. ``carried``: for each
    sort of terms (`PodKind.required_anti_affinity`, ...) the terms that pods on nodes have, with the number of pods
    that have them by domain.
    """

    def __init__(self, nodes: Sequence[Node], heard_of: Sequence[int]) -> None:
        order = by_zones(nodes, heard_of)
        usages: dict[Hashable, int] = {}
        self.nodes = tuple(
            NodeInfo(nodes[number], number, place, usages)
            for place, number in enumerate(order)
        )
        # What is against nodes for what they are, with a number for each.
        self.rejections: dict[Rejection, int] = {}
        self._heard_of = [nodes[number] for number in heard_of]
        self.by_name = {node.name: node for node in self.nodes}
        self.numbers = np.array(order, np.intp)
        self.changes: list[int] = []
        self.states = np.zeros(len(order), np.int64)
        self._latest_state = 0
        self.columns = NodeColumns(self.nodes, self.changes)
        self._tallies: dict[Hashable, Tally] = {}
        # By key between pods: in how many tallies it was looked for, and those in which it counts.
        self._tallies_of_kind: dict[Hashable, tuple[int, list[Tally]]] = {}
        self.carried: dict[str, dict[Term, Tally]] = defaultdict(dict)

    @cached_property
    def images(self) -> Mapping[str, int]:
        """What finding an image counts for: its size, less the fewer nodes have it (upstream: as float64).

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
        for sort in ("required_affinity", "required_anti_affinity", "preferred"):
            for term in getattr(pod.kind, sort):
                if term not in self.carried[sort]:
                    weigh = partial(_times, sort, term)
                    self.carried[sort][term] = self.tally(
                        (sort, term), term.topology_key, weigh
                    )
        node.add(pod)
        self.note_change(node.place)
        for tally in self._counting(pod.kind):
            tally.count(pod, node, 1)

    def remove(self, pod: PodInfo, node: NodeInfo) -> None:
        """Take a pod off a node."""
        node.remove(pod)
        self.note_change(node.place)
        for tally in self._counting(pod.kind):
            tally.count(pod, node, -1)

    def note_change(self, place: int) -> None:
        """Know that something has changed on a node, or about the devices that it sees."""
        self.changes.append(place)
        self._latest_state += 1
        self.states[place] = self._latest_state

    def states_at(self, places: Iterable[int]) -> dict[int, int]:
        """The states of some nodes."""
        return {place: int(self.states[place]) for place in places}

    def restore(self, states: Mapping[int, int]) -> None:
        """Know that nodes are as they were in these states."""
        for place, state in states.items():
            self.states[place] = state

    def _counting(self, kind: PodKind) -> Sequence[Tally]:
        """The tallies in which pods of a kind count."""
        key = kind.inter_pod_key
        looked_at, found = self._tallies_of_kind.get(key, (0, []))
        if looked_at < len(self._tallies):
            found += [
                tally
                for tally in list(self._tallies.values())[looked_at:]
                if tally.weight(kind)
            ]
            self._tallies_of_kind[key] = len(self._tallies), found
        return found

    def tally(
        self,
        key: Hashable,
        topology_key: str,
        weigh: Callable[[PodKind], int],
        places: Container[int] | None = None,
    ) -> Tally:
        """The count of some sort of pods by domain; ``key`` stands for the sort and the places."""
        identity = key, topology_key
        if identity not in self._tallies:
            tally = self._tallies[identity] = Tally(topology_key, weigh, places)
            for node in self.nodes:
                for pod in node.pods:
                    tally.count(pod, node, 1)
        return self._tallies[identity]


def image_names(node: Node) -> Set[str]:
    """Names of the images that a node has."""
    return {name for image in node.status.images for name in image.names}


def _times(sort: str, term: Term, kind: PodKind) -> int:
    """How often a kind has a term."""
    terms: tuple[Term, ...] = getattr(kind, sort)
    return terms.count(term)
