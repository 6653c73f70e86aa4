"""What nodes have, what is requested of them, and what they are, as columns over all nodes in the scheduler's order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.pods.requests import CPU, MEMORY, PODS
from dralloc.solve.scheduler.nodes import NodeInfo

__all__ = ["NodeColumns", "Numbers", "TooLargeError"]

Numbers = NDArray[np.int64]

_LARGEST: Final = 2**50
"""Amounts below that can be multiplied by a hundred, and divided as floats, without losing anything."""

_NOBODY: Final = 2**40
"""The lowest priority on a node without pods: above all priorities."""


class TooLargeError(Exception):
    """An amount is too large to be counted in columns; nodes have to be looked at one by one."""


class _Column(NamedTuple):
    values: Numbers
    read: Callable[[NodeInfo], int]


class NodeColumns:
    """Columns that are filled when somebody asks, and kept up as nodes change.

    Parameters
    ----------
    nodes
        In the scheduler's order.
    changes
        Places of nodes on which something has changed; it grows.
    """

    def __init__(self, nodes: Sequence[NodeInfo], changes: Sequence[int]) -> None:
        self._nodes = nodes
        self._changes = changes
        self._columns: dict[Hashable, _Column] = {}
        self._seen: dict[Hashable, int] = {}
        self._traits: dict[Hashable, Numbers] = {}

    def allocatable(self, resource: str) -> Numbers:
        """What nodes have of a resource."""
        return self._column(
            ("allocatable", resource), lambda node: node.allocatable.get(resource, 0)
        )

    def requested(self, resource: str) -> Numbers:
        """What is requested of nodes."""
        return self._column(
            ("requested", resource), lambda node: node.requested.get(resource, 0)
        )

    def occupied(self, resource: str) -> Numbers:
        """What is requested of nodes as scores count it."""
        if resource not in (CPU, MEMORY):
            return self.requested(resource)
        return self._column(
            ("occupied", resource), lambda node: node.occupied[resource]
        )

    @property
    def limited(self) -> Numbers:
        """Whether nodes say what they have."""
        return self._column("limited", lambda node: node.is_limited)

    @property
    def pod_room(self) -> Numbers:
        """How many more pods may be on nodes."""
        return self._column(PODS, lambda node: node.pod_room)

    @property
    def lowest_priority(self) -> Numbers:
        """The lowest priority of a pod on each node."""
        return self._column(
            "lowest priority",
            lambda node: min([pod.kind.priority for pod in node.pods], default=_NOBODY),
        )

    def trait(self, key: Hashable, read: Callable[[NodeInfo], int]) -> Numbers:
        """Something about nodes that never changes, read once."""
        if key not in self._traits:
            self._traits[key] = np.array([read(node) for node in self._nodes], np.int64)
        return self._traits[key]

    def _column(self, key: Hashable, read: Callable[[NodeInfo], int]) -> Numbers:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = _Column(
                np.zeros(len(self._nodes), np.int64), read
            )
            places: Sequence[int] = range(len(self._nodes))
        else:
            places = self._changes[self._seen[key] :]
        for place in set(places):
            column.values[place] = _checked(read(self._nodes[place]))
        self._seen[key] = len(self._changes)
        return column.values


def _checked(amount: int) -> int:
    if not -_LARGEST < amount < _LARGEST:
        raise TooLargeError
    return amount
