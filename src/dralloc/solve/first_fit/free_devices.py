"""Free devices: how many of each node requests can get at most, for all nodes at once.

A bound begins with all devices that may serve the request, and falls to those that were free when somebody counted. As
devices only become scarcer, a count stays a bound until something is released.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.problem import Alternative, NodeIndex, Problem
from dralloc.problem.ledger import Ledger
from dralloc.solve.first_fit.candidates import (
    CandidateIndex,
    CandidateList,
    NodePool,
)

__all__ = ["DeviceBound", "FreeDevices"]


class DeviceBound(NamedTuple):
    """A bound of the devices that equal alternatives can get of each node.

    Parameters
    ----------
    offered
        How many devices may serve them, whatever is in use.
    obtainable
        How many of them can still be had at most.
    failing
        Whether a selector fails on some device.
    """

    offered: NDArray[np.int64]
    obtainable: NDArray[np.int64]
    failing: NDArray[np.bool_]

    def devices(self, *, in_use: bool) -> NDArray[np.int64]:
        """By node, how many devices there are at most, with or without looking at what is in use."""
        if in_use:
            return self.obtainable
        return self.offered


class FreeDevices:
    """The bounds of all alternatives, by their canonical keys."""

    def __init__(
        self, problem: Problem, ledger: Ledger, index: CandidateIndex
    ) -> None:
        self._problem = problem
        self._ledger = ledger
        self._index = index
        self._bounds: dict[Hashable, DeviceBound] = {}

    def bound(self, alternative: Alternative) -> DeviceBound:
        """Return the number of devices of each node that an alternative which asks for a number of them can get."""
        key = (
            self._problem.eligibility.request_key(alternative.index),
            alternative.admin,
        )
        if key not in self._bounds:
            pools = self._pools
            # The last stands for the pools that a node has fewer than others.
            kinds = self._index.kinds
            counts = [self._index.count(pool, alternative) for pool in kinds]
            counts.append((0, 0))
            offered, failing = np.array(counts, np.int64).T
            of_nodes = offered[pools].sum(axis=1)
            fails_on = failing[pools].any(axis=1)
            self._bounds[key] = DeviceBound(of_nodes, of_nodes.copy(), fails_on)
        return self._bounds[key]

    def forget(self, nodes: NDArray[np.intp]) -> None:
        """Note a release on these nodes: the number of free devices there is not known any more."""
        for bound in self._bounds.values():
            bound.obtainable[nodes] = bound.offered[nodes]

    def count(self, alternative: Alternative, listed: CandidateList) -> int:
        """Return the number of devices listed for an alternative that can be had now, each by itself."""
        devices, eligibility = self._problem.devices, self._problem.eligibility
        admin = alternative.admin
        count = 0
        for device in listed.devices[listed.start :]:
            charge = eligibility.charge(alternative.index, device)
            if charge is None:
                continue
            count += self._ledger.fits(devices[device], charge, admin=admin)
        return count

    @cached_property
    def dedicated(self) -> NDArray[np.bool_]:
        """By node, whether each of its devices is for one demand at a time."""
        return np.array(
            [self._is_dedicated(node) for node in self._problem.all_nodes]
        )

    def _is_dedicated(self, node: NodeIndex) -> bool:
        return not any(pool.shared for pool in self._of_devices(node))

    def _of_devices(self, node: NodeIndex) -> Iterator[NodePool]:
        """The pools of a node, but for what stands for the node itself."""
        accesses = self._problem.nodes[node].pools
        pairs = zip(self._index.pools(node), accesses, strict=True)
        return (pool for pool, access in pairs if not access.is_of_node)

    @cached_property
    def _pools(self) -> NDArray[np.intp]:
        """By node the numbers of its kinds of pools, and -1 behind them."""
        pools_of = [
            list(self._of_devices(node)) for node in self._problem.all_nodes
        ]
        widest = max(map(len, pools_of), default=0)
        table = np.full((len(pools_of), widest), -1, np.intp)
        for row, pools in zip(table, pools_of, strict=True):
            row[: len(pools)] = [pool.kind.number for pool in pools]
        return table
