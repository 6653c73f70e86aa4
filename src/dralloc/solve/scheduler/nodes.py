"""Nodes with the pods that are on them, in the order in which the scheduler goes through them.

Source: ``framework/types.go`` (NodeInfo), ``backend/cache/node_tree.go`` of ``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.pods.kinds import HostPort, PodInfo
from dralloc.compile.pods.requests import CPU, MEMORY, PODS, amounts_of
from dralloc.objects.api import Node

__all__ = ["NodeInfo", "NodesAt", "by_zones"]

_ZONES = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGIONS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


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
        self, node: Node, number: int, place: int, usages: dict[Hashable, int]
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
        """How many more pods may be on it."""
        return self.allocatable.get(PODS, 0) - len(self.pods)

    def lacking(self, wanted: Mapping[str, int]) -> list[str]:
        """The resources of which more is wanted than is left."""
        there, used = self.allocatable, self.requested
        return [
            name
            for name, amount in wanted.items()
            if amount > max(there.get(name, 0) - used.get(name, 0), 0)
        ]

    @property
    def usage(self) -> int:
        """A number for what it has and what is requested of it by how many pods: equal nodes have the same."""
        if self._usage is None:
            amounts = (
                frozenset(each.items())
                for each in (self.allocatable, self.requested, self.occupied)
            )
            self._usage = self._usages.setdefault(
                (*amounts, len(self.pods)), len(self._usages)
            )
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
    """Nodes by their places; most often nobody asks for more than one of them."""

    def __init__(self, nodes: Sequence[NodeInfo], places: NDArray[np.intp]) -> None:
        self._nodes, self._places = nodes, places

    def __getitem__(self, index: Any) -> Any:
        return self._nodes[self._places[index]]

    def __iter__(self) -> Iterator[NodeInfo]:
        return map(self._nodes.__getitem__, self._places.tolist())

    def __len__(self) -> int:
        return len(self._places)


def by_zones(nodes: Sequence[Node], heard_of: Sequence[int]) -> list[int]:
    """Indices of the nodes as the scheduler goes through them: one of each zone in turn, each as it heard of them."""
    zones: dict[tuple[str, str], list[int]] = {}
    for number in heard_of:
        zones.setdefault(_zone(nodes[number].metadata.labels), []).append(number)
    return [
        number
        for rank in zip_longest(*zones.values())
        for number in rank
        if number is not None
    ]


def _zone(labels: Mapping[str, str]) -> tuple[str, str]:
    region, zone = (
        next((labels[key] for key in keys if key in labels), "")
        for keys in (_REGIONS, _ZONES)
    )
    return region, zone
