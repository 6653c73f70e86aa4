"""Who is in the way of a demand, node by node and device by device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from dralloc.budget import Budget
from dralloc.explain.change import Change
from dralloc.explain.situation import Situation
from dralloc.names import ClaimKey
from dralloc.problem import Alternative, Charge
from dralloc.problem.ledger import counter_consumption
from dralloc.spending import amount_used

__all__ = ["Blockers"]


class Blockers:
    """Finds the claims that hold what the demand could use."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._context = situation.lab.turn.context
        self._requests = [request for claim in situation.lab.turn.demand.claims for request in claim.requests]
        self._priorities = self._read_priorities()
        self._known: dict[int, set[ClaimKey] | None] = {}

    def order(self) -> list[int]:
        """The nodes where releasing claims could help, those with the fewest claims in the way first."""
        nodes = self._situation.lab.allowed(Change())
        costs = {node: len(found) for node in nodes if (found := self._cheapest(node)) is not None}
        return sorted(costs, key=lambda node: (costs[node], node))

    def cheapest(self, node: int) -> set[ClaimKey]:
        """The claims in the way of the devices that the fewest claims hold."""
        return self._cheapest(node) or set()

    def _cheapest(self, node: int) -> set[ClaimKey] | None:
        if node not in self._known:
            self._known[node] = self._sum(node)
        return self._known[node]

    def _sum(self, node: int) -> set[ClaimKey] | None:
        total: set[ClaimKey] = set()
        for request in self._requests:
            options = [self._of_alternative(each, node) for each in request.alternatives]
            usable = [option for option in options if option is not None]
            if not usable:
                return None
            total |= min(usable, key=len)
        return total

    def _of_alternative(self, alternative: Alternative, node: int) -> set[ClaimKey] | None:
        held = [self._of_device(alternative, device) for device in self._devices(alternative, node)]
        if alternative.count is None:
            return set().union(*held) if held else None
        if len(held) < alternative.count:
            return None
        return set().union(*sorted(held, key=len)[: alternative.count])

    def every(self, node: int) -> set[ClaimKey]:
        """The claims in the way of any device that the demand could use."""
        return self._under_caps.union(*(self._of_device(each, device) for each, device in self._options(node)))

    def users(self, node: int) -> set[ClaimKey]:
        """The claims that use anything of what the demand could use, even if enough of it is left for one device."""
        return self.every(node).union(*(self._beside(each, device) for each, device in self._options(node)))

    def _options(self, node: int) -> Iterator[tuple[Alternative, int]]:
        for request in self._requests:
            for each in request.alternatives:
                for device in self._devices(each, node):
                    yield each, device

    def _beside(self, alternative: Alternative, number: int) -> set[ClaimKey]:
        """The claims that share a device, or what it draws on."""
        device, ledger = self._context.problem.devices[number], self._context.ledger
        charge = self._context.offers.charge(alternative.index, number) or Charge()
        users: list[Iterable[ClaimKey]] = [ledger.holders_of_device(device.slot)]
        users += (
            ledger.holders_of_counter(counter) for counter, _ in counter_consumption(device, charge, opening=True)
        )
        users += (ledger.users_of_set(counter_set) for counter_set, _ in device.compatibility)
        return set().union(*users) - self._situation.lab.turn.own

    def _devices(self, alternative: Alternative, node: int) -> list[int]:
        offers, problem = self._context.offers, self._context.problem
        return [
            device
            for device in problem.nodes[node].devices()
            if offers.selects(alternative.index, device) is True
            and offers.charge(alternative.index, device) is not None
            and offers.admits(alternative.index, device)
            and problem.on_node(device, node)
        ]

    def _of_device(self, alternative: Alternative, number: int) -> set[ClaimKey]:
        device, ledger = self._context.problem.devices[number], self._context.ledger
        charge = self._context.offers.charge(alternative.index, number) or Charge()
        found = {
            claim
            for shortage in ledger.shortages(device, charge, admin=alternative.admin)
            for claim in ledger.holders(device, shortage)
        }
        return (found | self._over_cap(number, charge)) - self._situation.lab.turn.own

    def _over_cap(self, number: int, charge: Charge) -> set[ClaimKey]:
        """Who uses what is capped, if the device alone would take more than the cap leaves."""
        device, counters, caps = self._context.problem.devices[number], self._context.problem.counters, self._caps
        short = (one for one in caps if amount_used(one.resource, device, charge, counters) > (one.left or 0))
        return {claim for budget in short for claim in self._situation.lab.turn.caps.users(budget)}

    @cached_property
    def _caps(self) -> tuple[Budget, ...]:
        """The caps of the demand's namespace."""
        namespaces = {claim.key.namespace for claim in self._situation.lab.turn.demand.claims}
        return tuple(one for one in self._situation.lab.turn.caps.budgets if one.namespace in namespaces)

    @cached_property
    def _under_caps(self) -> set[ClaimKey]:
        """Who uses what is capped for the demand."""
        turn = self._situation.lab.turn
        return {claim for budget in self._caps for claim in turn.caps.users(budget)} - turn.own

    # Priorities.

    def priority(self, claim: ClaimKey) -> int:
        """The highest priority of the pods that use a claim; 0 if nobody does."""
        return self._priorities.get(claim, 0)

    def by_priority(self, claims: Iterable[ClaimKey]) -> list[ClaimKey]:
        """The claims, those of the highest priority first."""
        return sorted(claims, key=lambda claim: (-self.priority(claim), claim))

    def _read_priorities(self) -> dict[ClaimKey, int]:
        found: dict[ClaimKey, int] = {}
        compiled = self._situation.compiled
        for pod in compiled.cluster.pods if compiled is not None else ():
            for key in compiled.cluster.pod_claims(pod) if compiled is not None else ():
                found[key] = max(pod.spec.priority or 0, found.get(key, pod.spec.priority or 0))
        return found
