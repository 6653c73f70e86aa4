"""Nodes with the pods on them, in the order in which the scheduler goes through them.

Source: ``framework/types.go`` (NodeInfo), ``backend/cache/node_tree.go`` of ``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.pods import HostPort, PodInfo
from dralloc.compile.pods.node_requests import CPU, MEMORY, PODS, amounts_of
from dralloc.objects.api import Node
from dralloc.problem import NodeIndex

__all__ = ["NodeInfo", "NodesAt", "by_zones"]

_ZONES = (
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
)

_REGIONS = (
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/region",
)


class NodeInfo:
    """A node, and what the pods on it use.

    Parameters
    ----------
    number
        Its index in the problem.
    place
        Its index in the order of the scheduler.
    usages
        Numbers of what nodes have and of what is requested of them (see `usage`).
    """

    def __init__(
        self,
        node: Node,
        number: NodeIndex,
        place: int,
        usages: dict[Hashable, int],
    ) -> None:
        self.node = node
        self.number = number
        self.place = place
        self.name = node.metadata.name
        self.labels: Mapping[str, str] = node.metadata.labels
        self.allocatable = amounts_of(node.status.allocatable)
        self.pods: list[PodInfo] = []
        self.requested: dict[str, int] = {}
        self.occupied: dict[str, int] = {CPU: 0, MEMORY: 0}
        self.ports: list[HostPort] = []
        self._usages = usages
        self._usage: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether it says what it has. One that does not limits nothing."""
        return bool(self.allocatable)

    @property
    def pod_room(self) -> int:
        """The number of pods that may be on it in addition."""
        return self.allocatable.get(PODS, 0) - len(self.pods)

    def counted_in_scores(self, resource: str) -> int:
        """Return what is requested of it as scores of other pods count it."""
        amounts = self.occupied if resource in (CPU, MEMORY) else self.requested
        return amounts.get(resource, 0)

    def lacking(self, requests: Mapping[str, int]) -> list[str]:
        """The resources of which more is requested than is free."""
        allocatable, used = self.allocatable, self.requested
        # More may be requested than there is, if the node has shrunk: then nothing is
        # free, and who requests nothing lacks nothing.
        return [
            name
            for name, amount in requests.items()
            if amount > max(allocatable.get(name, 0) - used.get(name, 0), 0)
        ]

    @property
    def usage(self) -> int:
        """A number for what it has and what is requested of it by how many pods: equal nodes have the same."""
        if self._usage is None:
            key = (
                frozenset(self.allocatable.items()),
                frozenset(self.requested.items()),
                frozenset(self.occupied.items()),
                len(self.pods),
            )
            self._usage = self._usages.setdefault(key, len(self._usages))
        return self._usage

    def add(self, pod: PodInfo) -> None:
        """Put a pod on the node."""
        self.pods.append(pod)
        self.ports += pod.kind.host_ports
        self._count(pod, 1)

    def remove(self, pod: PodInfo) -> None:
        """Take a pod off the node."""
        self.pods.remove(pod)
        for port in pod.kind.host_ports:
            self.ports.remove(port)
        self._count(pod, -1)

    def _count(self, pod: PodInfo, sign: int) -> None:
        self._usage = None
        for name, amount in pod.requests.items():
            self.requested[name] = self.requested.get(name, 0) + sign * amount
        for name in (CPU, MEMORY):
            self.occupied[name] += sign * pod.occupied.get(name, 0)


class NodesAt(Sequence[NodeInfo]):
    """Nodes by their positions; most often nobody asks for more than one of them."""

    def __init__(
        self, nodes: Sequence[NodeInfo], positions: NDArray[np.intp]
    ) -> None:
        self._nodes, self._places = nodes, positions

    def __getitem__(self, index: Any) -> Any:
        return self._nodes[self._places[index]]

    def __iter__(self) -> Iterator[NodeInfo]:
        return map(self._nodes.__getitem__, self._places.tolist())

    def __len__(self) -> int:
        return len(self._places)


def by_zones(
    nodes: Sequence[Node], heard_of: Sequence[NodeIndex]
) -> list[NodeIndex]:
    """Indices of the nodes as the scheduler goes through them: one of each zone in turn, each as it heard of them."""
    zones: dict[tuple[str, str], list[NodeIndex]] = {}
    for node_index in heard_of:
        zones.setdefault(_zone(nodes[node_index].metadata.labels), []).append(
            node_index
        )
    order: list[NodeIndex] = []
    for rank in zip_longest(*zones.values()):
        order += [node_index for node_index in rank if node_index is not None]
    return order


def _zone(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return region and zone; the labels of old go before those of today."""
    return _first_label(labels, _REGIONS), _first_label(labels, _ZONES)


def _first_label(labels: Mapping[str, str], keys: Sequence[str]) -> str:
    return next((labels[key] for key in keys if key in labels), "")
