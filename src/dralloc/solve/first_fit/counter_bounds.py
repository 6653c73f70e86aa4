"""Necessary conditions about counters: what is on offer must not cost more than there is (KEP-4815, KEP-5941)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from dralloc.problem import Problem
from dralloc.problem.ledger import Ledger
from dralloc.solve.first_fit.residual_requests import (
    Costs,
    Residual,
    ResidualRequest,
    fitting,
)

__all__ = ["counters_suffice"]

Prices = Mapping[int, Costs]
"""What each device on offer costs at least."""

Name = tuple[str, str, str]
"""What counters of a pool's sets are called: driver, pool, counter."""


def counters_suffice(problem: Problem, ledger: Ledger, residual: Residual) -> bool:
    """Whether the counters could cover the residual requests, each alone and all together."""
    prices = [
        {
            device: _costs(problem, ledger, request, device, alone=len(residual) == 1)
            for device in request.offers
        }
        for request in residual
    ]
    names: dict[Name, set[int]] = defaultdict(set)
    for each in prices:
        for costs in each.values():
            for index in costs:
                id_ = problem.counters[index].id
                names[id_.driver, id_.pool, id_.counter].add(index)
    return all(
        _sums_suffice(ledger, residual, prices, counters)
        and _enough_fit(problem, ledger, residual, prices, counters)
        for counters in names.values()
    )


def _costs(
    problem: Problem,
    ledger: Ledger,
    request: ResidualRequest,
    device: int,
    *,
    alone: bool,
) -> Costs:
    """What a device on offer costs. What opens a shareable device counts only where nobody else can have done so."""
    known = problem.devices[device]
    opening = not known.shareable or (alone and not ledger.is_open(known))
    return request.counters_of(problem, device, opening=opening)


def _sums_suffice(
    ledger: Ledger, residual: Residual, prices: Sequence[Prices], counters: set[int]
) -> bool:
    """Whether each of these counters, and all together, cover the cheapest devices that each request can have."""
    least: dict[int, int] = defaultdict(int)
    total = 0
    for request, each in zip(residual, prices, strict=True):
        by_counter: dict[int, list[int]] = defaultdict(list)
        sums = []
        for costs in each.values():
            mine = [(index, costs[index]) for index in costs if index in counters]
            sums.append(sum(amount for _, amount in mine))
            for index, amount in mine:
                by_counter[index].append(amount)
        total += sum(sorted(sums)[: request.need])
        for index, amounts in by_counter.items():
            # The other devices cost nothing of it.
            paid = request.need - (len(each) - len(amounts))
            least[index] += sum(sorted(amounts)[: max(paid, 0)])
    left = {index: max(ledger.free[index], 0) for index in counters}
    return total <= sum(left.values()) and all(
        amount <= left[index] for index, amount in least.items()
    )


def _enough_fit(
    problem: Problem,
    ledger: Ledger,
    residual: Residual,
    prices: Sequence[Prices],
    counters: set[int],
) -> bool:
    """Whether as many devices as are needed fit into these counters, counting the first of each device."""
    together: dict[int, Costs] = {}
    for request, each in zip(residual, prices, strict=True):
        if _fitting(ledger, each.values(), counters) < request.need:
            return False
        for device, costs in each.items():
            known = together.get(device)
            together[device] = (
                costs
                if known is None
                else {
                    index: min(amount, known.get(index, 0))
                    for index, amount in costs.items()
                }
            )
    if any(problem.devices[device].shareable for device in together):
        return True
    return _fitting(ledger, together.values(), counters) >= sum(
        request.need for request in residual
    )


def _fitting(ledger: Ledger, prices: Iterable[Costs], counters: set[int]) -> int:
    """How many devices at these prices fit at most."""
    users: dict[int | None, list[int]] = defaultdict(list)
    for costs in prices:
        index = next((index for index in costs if index in counters), None)
        users[index].append(0 if index is None else costs[index])
    return sum(
        fitting(amounts, 0 if index is None else ledger.free[index])
        for index, amounts in users.items()
    )
