"""What nodes have left of CPU, memory and the like, looked at for all nodes at once.

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

from dralloc.problem import Claim, Problem
from dralloc.problem.ledger import Ledger

__all__ = ["NOTHING", "FreeAmounts", "WantedAmounts"]

Floats = NDArray[np.float64]


class WantedAmounts:
    """What a demand takes of its node beside devices, beside what nodes have left of that.

    Parameters
    ----------
    pairs
        What nodes have left of each resource, and what the demand takes.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Sequence[tuple[Floats, float]] = ()) -> None:
        self._pairs = pairs

    def may_suffice(self, node: int) -> bool:
        """Whether a node may have enough."""
        for left, amount in self._pairs:  # noqa: SIM110 - asked for every node
            if left[node] < amount:
                return False
        return True

    def narrow(self, hopeful: NDArray[np.bool_], where: NDArray[np.intp]) -> None:
        """Strike out nodes that have too little; ``hopeful`` is about the nodes ``where``."""
        for left, amount in self._pairs:
            hopeful &= left[where] >= amount


NOTHING: Final = WantedAmounts()
"""For demands that take devices alone."""


class FreeAmounts:
    """What all nodes have left, kept up as demands come and go.

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
        self._devices = {
            number: device
            for number, node in enumerate(problem.nodes)
            for pool in node.pools
            if pool.is_of_node
            for device in pool.devices
        }
        devices = problem.devices
        self.names = sorted(
            {
                name
                for device in self._devices.values()
                for name in devices[device].capacity
            }
        )
        self.table = np.full((len(self.names), len(problem.nodes)), inf)
        self._left = dict(zip(self.names, self.table, strict=True))
        for node in self._devices:
            self.refresh(node)

    def wanted(self, claim: Claim) -> WantedAmounts:
        """What a synthetic claim takes."""
        [alternative] = claim.alternatives()
        key = self._problem.eligibility.request_key(alternative.index)
        if key not in self._wanted:
            pairs = [
                (self._left[name], amount) for name, amount in self.asked(claim).items()
            ]
            self._wanted[key] = WantedAmounts(pairs)
        return self._wanted[key]

    def asked(self, claim: Claim) -> dict[str, float]:
        """What a synthetic claim takes of each resource, at least."""
        [alternative] = claim.alternatives()
        amounts: dict[str, int] = {}
        for device in self._representatives:
            charge = self._problem.eligibility.charge(alternative.index, device)
            for name, amount in charge.capacity if charge else ():
                amounts[name] = min(amount, amounts.get(name, amount))
        return {name: float(amount) for name, amount in amounts.items() if amount}

    def refresh(self, node: int) -> None:
        """Something has come or gone on a node."""
        if node in self._devices:
            device = self._problem.devices[self._devices[node]]
            for name in device.capacity:
                self._left[name][node] = self._ledger.capacity_left(device, name)

    @cached_property
    def _representatives(self) -> Sequence[int]:
        """One of the devices that stand for nodes for each key: the others are charged the same."""
        key = self._problem.eligibility.device_key
        return list({key(device): device for device in self._devices.values()}.values())
