"""The amount that a demand asks for at least, however it is served.

So nothing is gained by giving it more than it needs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Demand,
    DeviceIndex,
    Problem,
    indices,
)
from dralloc.problem.solution import amount_used

__all__ = ["asked_amounts"]


def asked_amounts(problem: Problem, resource: str) -> tuple[int, ...]:
    """Return, by demand, what its claims use of a counter or capacity at least (see `dralloc.problem.solution`).

    It is worked out with the devices that match, whatever is in use: 0 for a demand that nothing can serve.
    """
    eligibility, devices, counters = (
        problem.eligibility,
        problem.devices,
        problem.counters,
    )
    # One of the devices that match alike and have the same of the resource stands for all of them.
    representatives = {
        (
            eligibility.device_key(device),
            _has(problem, device, resource),
        ): device
        for device in indices(devices)
    }
    least_of_equal: dict[Hashable, int] = {}

    def used(alternative: AlternativeIndex) -> Iterator[int]:
        for device in representatives.values():
            if eligibility.selects(
                alternative, device
            ) is True and eligibility.admits(alternative, device):
                charge = eligibility.charge(alternative, device)
                if charge is not None:
                    yield amount_used(
                        resource, devices[device], charge, counters
                    )

    def least(alternative: Alternative) -> int:
        if alternative.admin:
            return 0
        key = eligibility.request_key(alternative.index)
        if key not in least_of_equal:
            least_of_equal[key] = min(used(alternative.index), default=0)
        return least_of_equal[key] * (alternative.count or 1)

    def of_demand(demand: Demand) -> int:
        total = 0
        for claim in demand.claims:
            for request in claim.requests:
                total += min(map(least, request.alternatives))
        return total

    return tuple(map(of_demand, problem.demands))


def _has(
    problem: Problem, device_index: DeviceIndex, resource: str
) -> Hashable:
    device = problem.devices[device_index]
    drawn = sorted(
        amount
        for counter, amount in device.consumes
        if problem.counters[counter].id.counter == resource
    )
    return tuple(drawn), device.shareable, device.capacity.get(resource)
