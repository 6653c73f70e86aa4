"""How many of a demand there would be if every device were looked at alone: never fewer than fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dralloc.problem import Alternative, Charge, Demand, Problem, Request
from dralloc.problem.ledger import Ledger

__all__ = ["PerDeviceBound"]


@dataclass(frozen=True)
class PerDeviceBound:
    """Counts devices for a demand.

    Each of its requests could be served so often by the devices that match and are free, as if no two of them shared
    counters and no other request wanted them; the scarcest request decides.
    """

    problem: Problem
    demand: Demand

    @cached_property
    def ledger(self) -> Ledger:
        """What is left of the inventory."""
        return Ledger(self.problem)

    def total(self, times: Mapping[int, int] | None = None) -> int | None:
        """The estimate; None if nothing limits it.

        Parameters
        ----------
        times
            How often each node counts; once if it is not listed.
        """
        requests = [
            request for claim in self.demand.claims for request in claim.requests
        ]
        found = [self._of_request(request, times or {}) for request in requests]
        return min((number for number in found if number is not None), default=None)

    def _of_request(self, request: Request, times: Mapping[int, int]) -> int | None:
        total = 0
        seen: set[int] = set()
        for node in self.problem.candidate_nodes(self.demand):
            for device in self.problem.nodes[node].devices():
                if device not in seen and self.problem.on_node(device, node):
                    seen.add(device)
                    uses = self._of_device(request, device)
                    if uses is None:
                        return None
                    total += uses * times.get(node, 1)
        return total // min(
            alternative.count or 1 for alternative in request.alternatives
        )

    def _of_device(self, request: Request, device: int) -> int | None:
        """How often the device could serve the request by whichever alternative; None for ever."""
        fitting = list(self._fitting(request.alternatives, device))
        if any(alternative.admin for alternative, _ in fitting):
            return None
        if not fitting or not self.problem.devices[device].shareable:
            return len(fitting[:1])
        return self._shares(device, [charge for _, charge in fitting])

    def _fitting(
        self, alternatives: Sequence[Alternative], device: int
    ) -> Iterator[tuple[Alternative, Charge]]:
        """The alternatives that the device could serve alone, with what they take."""
        offers, view = self.problem.eligibility, self.problem.devices[device]
        for one in alternatives:
            if offers.selects(one.index, device) is True and offers.admits(
                one.index, device
            ):
                charge = offers.charge(one.index, device)
                if charge is not None and self.ledger.may_fit(
                    view, charge, admin=one.admin
                ):
                    yield one, charge

    def _shares(self, device: int, charges: Sequence[Charge]) -> int | None:
        """How often the least demanding amounts fit, each by itself and all of them together."""
        taken = [
            dict[str | int, int]((*charge.capacity, *charge.counters))
            for charge in charges
        ]
        left = {name: self._left(device, name) for each in taken for name in each}
        limits = [
            (amount, min(each.get(name, 0) for each in taken))
            for name, amount in left.items()
        ]
        limits.append((sum(left.values()), min(sum(each.values()) for each in taken)))
        return min((amount // least for amount, least in limits if least), default=None)

    def _left(self, device: int, name: str | int) -> int:
        if isinstance(name, int):
            return self.ledger.free[name]
        return self.ledger.capacity_left(self.problem.devices[device], name)
