"""What a search still has to find, without the order and the combinations: more than it needs can be on offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dralloc.problem import Alternative, Charge, Constraint, Problem
from dralloc.problem.ledger import Ledger

__all__ = ["Costs", "Residual", "ResidualRequest", "multiplicities"]

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
        return all(constraint.covers(alternative.name) for alternative in self.alternatives)

    def capacity_of(self, device: int, name: str) -> int:
        """How much of a capacity of the device it takes at least."""
        return min(dict(charge.capacity).get(name, 0) for charge in self.offers[device])

    def counters_of(self, problem: Problem, device: int, *, opening: bool) -> Costs:
        """How much it takes of each counter at least, with or without what the device consumes by itself."""
        costs = dict(problem.devices[device].consumes) if opening else {}
        by_request = [dict(charge.counters) for charge in self.offers[device]]
        for index in by_request[0]:
            costs[index] = costs.get(index, 0) + min(amounts.get(index, 0) for amounts in by_request)
        return costs


Residual = Sequence[ResidualRequest]
"""Everything that is still to be served."""


def multiplicities(problem: Problem, ledger: Ledger, residual: Residual) -> Iterator[tuple[int, int]]:
    """For each shareable device how many of the requests its capacities could serve together, at the very most."""
    users: dict[int, list[ResidualRequest]] = {}
    for request in residual:
        for device in request.offers:
            if problem.devices[device].shareable:
                users.setdefault(device, []).append(request)
    for device, mine in users.items():
        capacities = problem.devices[device].capacity
        yield device, min((_fitting(problem, ledger, device, name, mine) for name in capacities), default=len(mine))


def _fitting(problem: Problem, ledger: Ledger, device: int, name: str, residual: Residual) -> int:
    """How many of the smallest requests fit into what is left of a capacity."""
    left = ledger.capacity_left(problem.devices[device], name)
    for number, amount in enumerate(sorted(request.capacity_of(device, name) for request in residual)):
        left -= amount
        if left < 0 < amount:
            return number
    return len(residual)
