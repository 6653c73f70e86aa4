"""What a search still has to find, without the order and the combinations: more than it needs can be on offer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from dralloc.problem import Alternative, Charge, Constraint, Problem

__all__ = ["Costs", "Residual", "ResidualRequest", "fitting"]

Costs = Mapping[int, int]
"""Amounts by counter."""


@dataclass(frozen=True, slots=True)
class ResidualRequest:
    """One request that is still to be served, as a whole or in part.

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
    offers: Mapping[int, Sequence[Charge]]
    alternatives: Sequence[Alternative]

    @property
    def admin(self) -> bool:
        """Whether it asks for admin access, which nobody else stands in the way of."""
        return any(alternative.admin for alternative in self.alternatives)

    def covered_by(self, constraint: Constraint) -> bool:
        """Whether the constraint covers it, whichever alternative serves it."""
        return all(
            constraint.covers(alternative.name) for alternative in self.alternatives
        )

    def capacity_of(self, device: int, name: str) -> int:
        """How much of a capacity of the device it takes at least."""
        return min(dict(charge.capacity).get(name, 0) for charge in self.offers[device])

    def counters_of(self, problem: Problem, device: int, *, opening: bool) -> Costs:
        """How much it takes of each counter at least, with or without what the device consumes by itself."""
        costs = dict(problem.devices[device].consumes) if opening else {}
        by_request = [dict(charge.counters) for charge in self.offers[device]]
        for index in by_request[0]:
            costs[index] = costs.get(index, 0) + min(
                amounts.get(index, 0) for amounts in by_request
            )
        return costs


Residual = Sequence[ResidualRequest]
"""Everything that is still to be served."""


def fitting(amounts: Iterable[int], left: int) -> int:
    """How many of the smallest of some amounts fit into what is left."""
    smallest = sorted(amounts)
    return sum(
        total <= left or not last
        for last, total in zip(smallest, accumulate(smallest), strict=True)
    )
