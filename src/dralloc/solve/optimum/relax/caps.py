"""Caps of what namespaces may use, as amounts: of these, each demand takes what its requests use at least, anywhere.

A claim that several demands use is left out: it is paid for once, with any of them.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from dralloc.objects.names import ClaimKey
from dralloc.objects.user_rules import BudgetKey
from dralloc.problem import (
    Alternative,
    Charge,
    Demand,
    DemandIndex,
    Device,
    DeviceIndex,
    Problem,
    numbered,
)
from dralloc.problem.solution import amount_used

__all__ = ["CappedAmounts", "capped_amounts_of"]


class CappedAmounts(NamedTuple):
    """How much a namespace may use of something, and what its demands use at least if that is anything. In nanos."""

    key: BudgetKey
    limit: int
    takes: Mapping[DemandIndex, int]


def capped_amounts_of(problem: Problem) -> Iterator[CappedAmounts]:
    """Give out the caps of a problem, with what demands take of them."""
    users = Tally(
        claim.key for demand in problem.demands for claim in demand.claims
    )
    least_uses_of: dict[str, _LeastUses] = {}
    for budget in problem.budgets:
        if budget.left is None:
            continue
        resource = budget.resource
        if resource not in least_uses_of:
            least_uses_of[resource] = _LeastUses(problem, resource, users)
        least_uses = least_uses_of[resource]
        takes: dict[DemandIndex, int] = {}
        for index, demand in numbered(problem.demands):
            if demand.key.namespace == budget.namespace:
                amount = least_uses.of_demand(demand)
                if amount:
                    takes[index] = amount
        yield CappedAmounts(budget.key, budget.left, takes)


class _LeastUses:
    """What demands use at least of what has a cap."""

    def __init__(
        self, problem: Problem, resource: str, users: Mapping[ClaimKey, int]
    ) -> None:
        self._problem = problem
        self._resource = resource
        self._users = users
        self._known: dict[Hashable, int] = {}
        # Of devices about which everything is the same that matters here, one.
        self._samples: dict[Hashable, DeviceIndex] = {}
        for index, device in numbered(problem.devices):
            by_itself = self._used(device, Charge())
            key = problem.eligibility.device_key(index), by_itself
            self._samples.setdefault(key, index)

    def of_demand(self, demand: Demand) -> int:
        """Return what a demand uses at least."""
        own_claims = [
            claim
            for claim in demand.claims
            if not claim.is_synthetic and self._users[claim.key] == 1
        ]
        return sum(
            min(map(self._of_alternative, request.alternatives))
            for claim in own_claims
            for request in claim.requests
        )

    def _of_alternative(self, alternative: Alternative) -> int:
        """Return what an alternative uses at least; in allocation mode ``All`` that is one device."""
        if alternative.admin:
            return 0
        key = self._problem.eligibility.request_key(alternative.index)
        if key not in self._known:
            self._known[key] = self._of_device(alternative)
        return (alternative.count or 1) * self._known[key]

    def _of_device(self, alternative: Alternative) -> int:
        """Return what any device that may serve an alternative uses at least; 0 if there is none."""
        eligibility = self._problem.eligibility
        uses = []
        for index in self._samples.values():
            charge = eligibility.charge(alternative.index, index)
            if (
                charge is not None
                and eligibility.selects(alternative.index, index) is True
            ):
                uses.append(self._used(self._problem.devices[index], charge))
        return min(uses, default=0)

    def _used(self, device: Device, charge: Charge) -> int:
        return amount_used(
            self._resource, device, charge, self._problem.counters
        )
