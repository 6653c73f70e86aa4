"""Free amounts: what nodes have left of CPU, memory and the like, for all nodes at once.

Numbers are compared as floats here. Rounding keeps the order of integers, so that what looks too little is too little;
what looks enough may still lack a little, and is for the ledger to decide.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dralloc.problem import Claim, DeviceIndex, NodeIndex, Problem, numbered
from dralloc.problem.ledger import Ledger

__all__ = ["NOTHING", "FreeAmounts", "WantedAmounts"]

Floats = NDArray[np.float64]


class WantedAmounts:
    """The amounts that a demand takes of its node beside devices, and those that nodes have free.

    Parameters
    ----------
    pairs
        What nodes have free of each resource, and what the demand takes.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Sequence[tuple[Floats, float]] = ()) -> None:
        self._pairs = pairs

    def may_suffice(self, node: NodeIndex) -> bool:
        """Whether a node may have enough."""
        for free, amount in self._pairs:  # noqa: SIM110 - asked for every node
            if free[node] < amount:
                return False
        return True

    def narrow(
        self, hopeful: NDArray[np.bool_], where: NDArray[np.intp]
    ) -> None:
        """Strike out nodes that have too little; ``hopeful`` is about the nodes ``where``."""
        for free, amount in self._pairs:
            hopeful &= free[where] >= amount


NOTHING: Final = WantedAmounts()
"""For demands that take devices alone."""


class FreeAmounts:
    """The free amounts of all nodes, kept up as demands come and go.

    Attributes
    ----------
    names
        The resources that some node has an end of.
    table
        What is left, by resource and node; infinite where there is no end of it.
    """

    def __init__(self, problem: Problem, ledger: Ledger) -> None:
        self._problem = problem
        self._ledger = ledger
        self._wanted: dict[Hashable, WantedAmounts] = {}
        self._devices: dict[NodeIndex, DeviceIndex] = {}
        names: set[str] = set()
        for node_index, node in numbered(problem.nodes):
            for pool in node.pools:
                if pool.is_of_node:
                    # The only device of such a pool stands for the node.
                    for device in pool.devices:
                        self._devices[node_index] = device
                        names.update(problem.devices[device].capacity)
        self.names = sorted(names)
        self.table = np.full((len(self.names), len(problem.nodes)), inf)
        self._left = dict(zip(self.names, self.table, strict=True))
        for node_with_limits in self._devices:
            self.refresh(node_with_limits)

    def wanted(self, claim: Claim) -> WantedAmounts:
        """Return the amounts that a synthetic claim takes."""
        [alternative] = claim.alternatives()
        key = self._problem.eligibility.request_key(alternative.index)
        if key not in self._wanted:
            pairs = [
                (self._left[name], amount)
                for name, amount in self.asked(claim).items()
            ]
            self._wanted[key] = WantedAmounts(pairs)
        return self._wanted[key]

    def asked(self, claim: Claim) -> dict[str, float]:
        """Return the least amount of each resource that a synthetic claim takes."""
        [alternative] = claim.alternatives()
        amounts: dict[str, int] = {}
        for device in self._representatives:
            charge = self._problem.eligibility.charge(alternative.index, device)
            for name, amount in charge.capacity if charge else ():
                amounts[name] = min(amount, amounts.get(name, amount))
        return {
            name: float(amount) for name, amount in amounts.items() if amount
        }

    def refresh(self, node: NodeIndex) -> None:
        """Something has come or gone on a node."""
        if node in self._devices:
            device = self._problem.devices[self._devices[node]]
            for name in device.capacity:
                self._left[name][node] = self._ledger.capacity_left(
                    device, name
                )

    @cached_property
    def _representatives(self) -> Sequence[DeviceIndex]:
        """Return one device that stands for a node for each key: the others are charged the same."""
        key = self._problem.eligibility.device_key
        by_key = {key(device): device for device in self._devices.values()}
        return list(by_key.values())
