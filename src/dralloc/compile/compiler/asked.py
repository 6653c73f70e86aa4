"""What a demand asks for at least, however it is served: so nothing is gained by giving it more than it needs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from dralloc.problem import Alternative, Problem
from dralloc.problem.spending import amount_used

__all__ = ["asked_amounts"]


def asked_amounts(problem: Problem, resource: str) -> tuple[int, ...]:
    """By demand: what its claims use of a counter or capacity at least, in nanos (see `dralloc.problem.spending`).

    It is worked out with the devices that match, whatever is in use: 0 for a demand that nothing can serve.
    """
    eligibility, devices, counters = (
        problem.eligibility,
        problem.devices,
        problem.counters,
    )
    # One of the devices that match alike and have the same of the resource.
    kinds = {
        (eligibility.device_key(each), _has(problem, each, resource)): each
        for each in range(len(devices))
    }
    known: dict[Hashable, int] = {}

    def used(alternative: int) -> Iterator[int]:
        for number in kinds.values():
            if eligibility.selects(alternative, number) is True and eligibility.admits(
                alternative, number
            ):
                charge = eligibility.charge(alternative, number)
                if charge is not None:
                    yield amount_used(resource, devices[number], charge, counters)

    def least(alternative: Alternative) -> int:
        if alternative.admin:
            return 0
        key = eligibility.request_key(alternative.index)
        if key not in known:
            known[key] = min(used(alternative.index), default=0)
        return known[key] * (alternative.count or 1)

    return tuple(
        sum(
            min(map(least, request.alternatives))
            for claim in demand.claims
            for request in claim.requests
        )
        for demand in problem.demands
    )


def _has(problem: Problem, number: int, resource: str) -> Hashable:
    device = problem.devices[number]
    drawn = sorted(
        amount
        for each, amount in device.consumes
        if problem.counters[each].id.counter == resource
    )
    return tuple(drawn), device.shareable, device.capacity.get(resource)
