"""What a demand asks for at least, however it is served: so nothing is gained by giving it more than it needs."""

from __future__ import annotations

from collections.abc import Hashable

from dralloc.problem import Alternative, Demand, Device, Problem
from dralloc.spending import amount_used

__all__ = ["asked_amounts", "asked_devices"]


def asked_devices(demand: Demand) -> int:
    """The devices that its claims take at least: of each request the alternative with the fewest, one of ``All``.

    Admin access takes none (KEP-5018).
    """
    requests = (request for claim in demand.claims for request in claim.requests)
    return sum(min(0 if each.admin else each.count or 1 for each in request.alternatives) for request in requests)


def asked_amounts(problem: Problem, resource: str) -> tuple[int, ...]:
    """By demand: what its claims use of a counter or capacity at least, in nanos (see `dralloc.spending`).

    It is worked out with the devices that match, whatever is in use: 0 for a demand that nothing can serve.
    """
    return tuple(map(_Asked(problem, resource).amount, problem.demands))


class _Asked:
    def __init__(self, problem: Problem, resource: str) -> None:
        self.problem = problem
        self.resource = resource
        self.representatives = self._representatives()
        self.known: dict[Hashable, int] = {}

    def _representatives(self) -> list[int]:
        """One of the devices that match alike and have the same of the resource."""
        found: dict[Hashable, int] = {}
        for number, device in enumerate(self.problem.devices):
            found.setdefault((self.problem.eligibility.device_key(number), self._own(device)), number)
        return list(found.values())

    def _own(self, device: Device) -> Hashable:
        counters = self.problem.counters
        drawn = sorted(amount for number, amount in device.consumes if counters[number].id.counter == self.resource)
        capacity = device.capacity.get(self.resource)
        return tuple(drawn), device.shareable, capacity.total if capacity else None

    def amount(self, demand: Demand) -> int:
        requests = (request for claim in demand.claims for request in claim.requests)
        return sum(min(map(self._least, request.alternatives)) for request in requests)

    def _least(self, alternative: Alternative) -> int:
        if alternative.admin:
            return 0
        key = self.problem.eligibility.request_key(alternative.index)
        if key not in self.known:
            self.known[key] = min(self._used(alternative.index), default=0)
        return self.known[key] * (alternative.count or 1)

    def _used(self, alternative: int) -> set[int]:
        eligibility, found = self.problem.eligibility, set[int]()
        for number in self.representatives:
            if eligibility.selects(alternative, number) is True and eligibility.admits(alternative, number):
                charge = eligibility.charge(alternative, number)
                if charge is not None:
                    device = self.problem.devices[number]
                    found.add(amount_used(self.resource, device, charge, self.problem.counters))
        return found
