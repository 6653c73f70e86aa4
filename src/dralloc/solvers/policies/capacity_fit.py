"""How many alternatives fit on one shared device, for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from dralloc.problem import Alternative, Charge, Problem
from dralloc.problem.ledger import Ledger
from dralloc.solvers.policies.node_components import NodeComponent

__all__ = ["CapacityFit"]


@dataclass(frozen=True, slots=True)
class CapacityFit:
    """What each alternative takes of an equivalent device.

    Parameters
    ----------
    served
        Whether the device can serve it at all.
    names, steps, amounts
        The charged capacities; for each its greatest common factor, and the amounts in such steps (by alternative).
    """

    served: NDArray[np.bool_]
    names: tuple[str, ...]
    steps: tuple[int, ...]
    amounts: NDArray[np.int64]

    @classmethod
    def of(
        cls, problem: Problem, component: NodeComponent, alternatives: Sequence[Alternative], served: Sequence[bool]
    ) -> CapacityFit:
        """Read the charges of the only device of a component, which can be shared and consumes no counters."""
        [device] = component.devices
        charges = [problem.eligibility.charge(one.index, device) or Charge() for one in alternatives]
        names = tuple(problem.devices[device].capacity)
        amounts = [[dict(charge.capacity).get(name, 0) for charge in charges] for name in names]
        steps = tuple(gcd(*each) or 1 for each in amounts)
        scaled = [[amount // step for amount in each] for each, step in zip(amounts, steps, strict=True)]
        # What does not fit 64 bits, numpy keeps as exact integers of Python.
        return cls(np.array(served), names, steps, np.array(scaled).reshape(len(names), len(charges)))

    def now(self, problem: Problem, ledger: Ledger, component: NodeComponent) -> NDArray[np.int64]:
        """1 for each alternative that could have the device now, otherwise 0."""
        device = problem.devices[component.devices[0]]
        found = self.served
        for name, step, amounts in zip(self.names, self.steps, self.amounts, strict=True):
            found = found & (amounts <= ledger.capacity_left(device, name) // step)
        return found.astype(np.int64)
