"""Residual requests: what a search still has to find, without the order and the combinations.

More than it needs can be on offer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dralloc.problem import (
    Alternative,
    Charge,
    Constraint,
    CounterIndex,
    DeviceIndex,
    Problem,
)

__all__ = ["Costs", "Residual", "ResidualRequest", "fitting"]

Costs = Mapping[CounterIndex, int]
"""Amounts by counter."""


@dataclass(frozen=True, slots=True)
class ResidualRequest:
    """A request that is still to be served, as a whole or in part.

    Parameters
    ----------
    claim
        Index of its claim in the demand.
    need
        How many devices it needs at least, whichever alternative serves it.
    offers
        For each device that can still be had, what some alternative would take of it.
    alternatives
        Those that can still serve it.
    """

    claim: int
    need: int
    offers: Mapping[DeviceIndex, Sequence[Charge]]
    alternatives: Sequence[Alternative]

    @property
    def admin(self) -> bool:
        """Whether it asks for admin access, which no other allocation can prevent."""
        return any(alternative.admin for alternative in self.alternatives)

    def covered_by(self, constraint: Constraint) -> bool:
        """Whether the constraint covers it, whichever alternative serves it."""
        return all(
            constraint.covers(alternative.name)
            for alternative in self.alternatives
        )

    def capacity_of(self, device: DeviceIndex, name: str) -> int:
        """Return the least amount of a capacity of the device that it takes."""
        return min(
            dict(charge.capacity).get(name, 0) for charge in self.offers[device]
        )

    def counters_of(
        self, problem: Problem, device: DeviceIndex, *, opening: bool
    ) -> Costs:
        """Return the least amount of each counter that it takes, with or without the device's own consumption."""
        costs = dict(problem.devices[device].consumes) if opening else {}
        by_request = [dict(charge.counters) for charge in self.offers[device]]
        for index in by_request[0]:
            costs[index] = costs.get(index, 0) + min(
                amounts.get(index, 0) for amounts in by_request
            )
        return costs


Residual = Sequence[ResidualRequest]
"""Everything that is still to be served."""


def fitting(amounts: Iterable[int], free: int) -> int:
    """Return how many of the smallest amounts fit into the free amount."""
    count = total = 0
    for amount in sorted(amounts):
        total += amount
        # What costs nothing fits even where more is in use than there is.
        if total > free and amount:
            break
        count += 1
    return count
