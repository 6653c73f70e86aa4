"""How many devices of each node requests can get at most, looked at for all nodes at once.

A bound begins with all devices that may serve the request, and falls to those that were free when somebody counted.
As devices only become scarcer, a count stays a bound until something is released.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.problem import Alternative, Problem
from dralloc.problem.ledger import Ledger
from dralloc.solve.first_fit.candidates import CandidateIndex, CandidateList, NodePool

__all__ = ["DeviceBound", "FreeDevices"]


class DeviceBound(NamedTuple):
    """What equal alternatives can get of each node.

    Parameters
    ----------
    offered
        How many devices may serve them, whatever is in use.
    most
        How many of them can still be had at most.
    failing
        Whether a selector fails on some device.
    """

    offered: NDArray[np.int64]
    most: NDArray[np.int64]
    failing: NDArray[np.bool_]


class FreeDevices:
    """The bounds of all alternatives, by their canonical keys."""

    def __init__(self, problem: Problem, ledger: Ledger, index: CandidateIndex) -> None:
        self._problem = problem
        self._ledger = ledger
        self._index = index
        self._bounds: dict[Hashable, DeviceBound] = {}

    def bound(self, alternative: Alternative) -> DeviceBound:
        """What an alternative that asks for a number of devices can get of each node."""
        key = (
            self._problem.eligibility.request_key(alternative.index),
            alternative.admin,
        )
        if key not in self._bounds:
            pools = self._pools
            # The last stands for the pools that a node has fewer than others.
            counts = [
                *(self._index.count(pool, alternative) for pool in self._index.kinds),
                (0, 0),
            ]
            offered, failing = np.array(counts, np.int64).T
            of_nodes = offered[pools].sum(axis=1)
            self._bounds[key] = DeviceBound(
                of_nodes, of_nodes.copy(), failing[pools].any(axis=1)
            )
        return self._bounds[key]

    def forget(self, nodes: NDArray[np.intp]) -> None:
        """Something has been released on these nodes: nobody knows how many devices are free there."""
        for bound in self._bounds.values():
            bound.most[nodes] = bound.offered[nodes]

    def count(self, alternative: Alternative, listed: CandidateList) -> int:
        """How many of the devices listed for an alternative can be had now, each by itself."""
        devices, eligibility, ledger = (
            self._problem.devices,
            self._problem.eligibility,
            self._ledger,
        )
        found = 0
        for number in listed.devices[listed.start :]:
            charge = eligibility.charge(alternative.index, number)
            if charge is not None and ledger.fits(
                devices[number], charge, admin=alternative.admin
            ):
                found += 1
        return found

    @cached_property
    def dedicated(self) -> NDArray[np.bool_]:
        """By node, whether each of its devices is for one demand at a time."""
        return np.array(
            [
                not any(pool.shared for pool in self._of_devices(node))
                for node in self._problem.all_nodes
            ]
        )

    def _of_devices(self, node: int) -> Iterator[NodePool]:
        """The pools of a node, but for what stands for the node itself."""
        accesses = zip(
            self._index.pools(node), self._problem.nodes[node].pools, strict=True
        )
        return (pool for pool, access in accesses if not access.is_of_node)

    @cached_property
    def _pools(self) -> NDArray[np.intp]:
        """By node the numbers of its kinds of pools, and -1 behind them."""
        numbers = [
            [pool.kind.number for pool in self._of_devices(node)]
            for node in self._problem.all_nodes
        ]
        widest = max(map(len, numbers), default=0)
        return np.array(
            [[*row, *[-1] * (widest - len(row))] for row in numbers], np.intp
        ).reshape(len(numbers), widest)
