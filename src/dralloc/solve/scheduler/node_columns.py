"""Columns over all nodes: what they have, what is requested of them, and what they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.pods.node_requests import PODS
from dralloc.solve.scheduler.node_info import NodeInfo

__all__ = ["NodeColumns", "TooLargeError"]

Numbers = NDArray[np.int64]

_LARGEST: Final = 2**50
"""Amounts below that can be multiplied by a hundred, and divided as floats, without losing anything."""

_NOBODY: Final = 2**40
"""The lowest priority on a node without pods: above all priorities."""


class TooLargeError(Exception):
    """An amount is too large to be counted in columns; nodes have to be looked at one by one."""


class NodeColumns:
    """Columns that are filled when somebody asks, and kept up as nodes change.

    Amounts of several resources are a table: a row for each node, a column for each resource.

    Parameters
    ----------
    nodes
        In the scheduler's order.
    changes
        Positions of nodes on which something has changed; it grows.
    """

    def __init__(
        self, nodes: Sequence[NodeInfo], changes: Sequence[int]
    ) -> None:
        self._nodes = nodes
        self._changes = changes
        self._columns: dict[Hashable, Numbers] = {}
        self._seen: dict[Hashable, int] = {}
        self._traits: dict[Hashable, Numbers] = {}
        self._numbers_of_domains: dict[str, dict[str, int]] = defaultdict(dict)

    def allocatable(self, resources: tuple[str, ...]) -> Numbers:
        """Return what nodes have of resources."""
        return self.trait(
            ("allocatable", resources),
            lambda node: [
                _checked(node.allocatable.get(resource, 0))
                for resource in resources
            ],
        )

    def requested(self, resources: tuple[str, ...]) -> Numbers:
        """Return what is requested of nodes."""
        return self._column(
            ("requested", resources),
            lambda node: [
                _checked(node.requested.get(resource, 0))
                for resource in resources
            ],
        )

    def free(self, resources: tuple[str, ...]) -> Numbers:
        """Return what nodes have of resources that is not requested of them; nothing where more is."""
        return self._column(
            ("free", resources),
            lambda node: [
                max(
                    _checked(node.allocatable.get(resource, 0))
                    - _checked(node.requested.get(resource, 0)),
                    0,
                )
                for resource in resources
            ],
        )

    def occupied(self, resources: tuple[str, ...]) -> Numbers:
        """Return what is requested of nodes as scores count it."""
        return self._column(
            ("occupied", resources),
            lambda node: [
                _checked(node.counted_in_scores(resource))
                for resource in resources
            ],
        )

    @property
    def limited(self) -> Numbers:
        """Whether nodes say what they have."""
        return self.trait("limited", lambda node: node.is_limited)

    @property
    def pod_room(self) -> Numbers:
        """The number of pods that may be on nodes in addition."""
        return self._column(PODS, lambda node: _checked(node.pod_room))

    @property
    def lowest_priority(self) -> Numbers:
        """The lowest priority of a pod on each node."""

        def lowest(node: NodeInfo) -> int:
            return min(
                [pod.kind.priority for pod in node.pods], default=_NOBODY
            )

        return self._column("lowest priority", lowest)

    def domains(self, topology_key: str) -> tuple[Numbers, Mapping[str, int]]:
        """By node the index of its domain, -1 without one, and the indices of the domains."""
        index_of = self._numbers_of_domains[topology_key]

        def number(node: NodeInfo) -> int:
            domain = node.labels.get(topology_key)
            if domain is None:
                return -1
            return index_of.setdefault(domain, len(index_of))

        return self.trait(("domain", topology_key), number), index_of

    def trait(
        self, key: Hashable, read: Callable[[NodeInfo], int | list[int]]
    ) -> Numbers:
        """Something about nodes that never changes, read once."""
        return self.once(
            key,
            lambda: np.array([read(node) for node in self._nodes], np.int64),
        )

    def once(self, key: Hashable, work_out: Callable[[], Numbers]) -> Numbers:
        """A column of something that never changes, worked out once."""
        if key not in self._traits:
            self._traits[key] = work_out()
        return self._traits[key]

    def _column(
        self, key: Hashable, read: Callable[[NodeInfo], int | list[int]]
    ) -> Numbers:
        values = self._columns.get(key)
        if values is None:
            values = np.array([read(node) for node in self._nodes], np.int64)
            self._columns[key] = values
        elif self._seen[key] < len(self._changes):
            # Only where something has changed since the column was read last.
            for position in set(self._changes[self._seen[key] :]):
                values[position] = read(self._nodes[position])
        self._seen[key] = len(self._changes)
        return values


def _checked(amount: int) -> int:
    if not -_LARGEST < amount < _LARGEST:
        raise TooLargeError
    return amount
