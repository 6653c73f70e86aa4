"""Counter bounds: what is on offer must not cost more than there is (KEP-4815, KEP-5941)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from dralloc.problem import CounterIndex, DeviceIndex, Problem
from dralloc.problem.ledger import Ledger
from dralloc.solve.first_fit.residual_requests import (
    Costs,
    Residual,
    ResidualRequest,
    fitting,
)

__all__ = ["counters_suffice"]

Prices = Mapping[DeviceIndex, Costs]
"""What each device on offer costs at least."""

Name = tuple[str, str, str]
"""What counters of a pool's sets are called: driver, pool, counter."""


def counters_suffice(
    problem: Problem, ledger: Ledger, residual: Residual
) -> bool:
    """Whether the counters could cover the residual requests, each alone and all together."""
    alone = len(residual) == 1
    prices: list[Prices] = []
    names: dict[Name, set[CounterIndex]] = defaultdict(set)
    for request in residual:
        of_request: dict[DeviceIndex, Costs] = {}
        for device in request.offers:
            costs = _costs(problem, ledger, request, device, alone=alone)
            of_request[device] = costs
            for index in costs:
                id_ = problem.counters[index].id
                names[id_.driver, id_.pool, id_.counter].add(index)
        prices.append(of_request)
    return all(
        _sums_suffice(ledger, residual, prices, counters)
        and _enough_fit(problem, ledger, residual, prices, counters)
        for counters in names.values()
    )


def _costs(
    problem: Problem,
    ledger: Ledger,
    request: ResidualRequest,
    device: DeviceIndex,
    *,
    alone: bool,
) -> Costs:
    """Return the cost of a device. What opens a shareable device counts only where no share can have opened it."""
    offered = problem.devices[device]
    opening = not offered.shareable or (alone and not ledger.is_open(offered))
    return request.counters_of(problem, device, opening=opening)


def _sums_suffice(
    ledger: Ledger,
    residual: Residual,
    prices: Sequence[Prices],
    counters: set[CounterIndex],
) -> bool:
    """Whether each of these counters, and all together, cover the cheapest devices that each request can have."""
    least: dict[CounterIndex, int] = defaultdict(int)
    total = 0
    for request, device_prices in zip(residual, prices, strict=True):
        by_counter: dict[CounterIndex, list[int]] = defaultdict(list)
        sums = []
        for costs in device_prices.values():
            device_sum = 0
            for index, amount in costs.items():
                if index in counters:
                    device_sum += amount
                    by_counter[index].append(amount)
            sums.append(device_sum)
        total += sum(sorted(sums)[: request.need])
        for index, amounts in by_counter.items():
            # The other devices cost nothing of it.
            paid = request.need - (len(device_prices) - len(amounts))
            least[index] += sum(sorted(amounts)[: max(paid, 0)])
    free = {index: max(ledger.free[index], 0) for index in counters}
    if total > sum(free.values()):
        return False
    return all(amount <= free[index] for index, amount in least.items())


def _enough_fit(
    problem: Problem,
    ledger: Ledger,
    residual: Residual,
    prices: Sequence[Prices],
    counters: set[CounterIndex],
) -> bool:
    """Whether as many devices as are needed fit into these counters, counting the first of each device."""
    cheapest: dict[DeviceIndex, Costs] = {}
    for request, device_prices in zip(residual, prices, strict=True):
        if _fitting(ledger, device_prices.values(), counters) < request.need:
            return False
        for device, costs in device_prices.items():
            if device in cheapest:
                # Nobody knows which of the requests gets it: the least of both.
                before = cheapest[device]
                costs = {  # noqa: PLW2901
                    index: min(amount, before.get(index, 0))
                    for index, amount in costs.items()
                }
            cheapest[device] = costs
    # A shared device may serve several requests, so devices are not to be counted.
    if any(problem.devices[device].shareable for device in cheapest):
        return True
    need = sum(request.need for request in residual)
    return _fitting(ledger, cheapest.values(), counters) >= need


def _fitting(
    ledger: Ledger, prices: Iterable[Costs], counters: set[CounterIndex]
) -> int:
    """Return the largest number of devices that fit at these prices."""
    users: dict[int | None, list[int]] = defaultdict(list)
    for costs in prices:
        index = next((index for index in costs if index in counters), None)
        users[index].append(0 if index is None else costs[index])
    return sum(
        fitting(amounts, 0 if index is None else ledger.free[index])
        for index, amounts in users.items()
    )
