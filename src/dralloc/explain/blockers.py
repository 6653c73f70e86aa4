"""Who is in the way of a demand, node by node and device by device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property

from dralloc.budget import Budget
from dralloc.explain.change import Change
from dralloc.explain.oracle import FeasibilityOracle
from dralloc.names import ClaimKey
from dralloc.problem import Alternative, Charge
from dralloc.spending import amount_used

__all__ = ["Blockers"]


class Blockers:
    """Finds the claims that hold what the demand could use."""

    def __init__(self, oracle: FeasibilityOracle) -> None:
        self._oracle = oracle
        self._snapshot = oracle.snapshot
        self._context = oracle.snapshot.context
        self._requests = [request for claim in oracle.snapshot.demand.claims for request in claim.requests]

    @cached_property
    def cheapest(self) -> Mapping[int, set[ClaimKey]]:
        """The claims in the way of the devices that the fewest claims hold, by node; the cheapest nodes first."""
        found = {node: self._cheapest(node) for node in self._oracle.allowed(Change())}
        known = {node: claims for node, claims in found.items() if claims is not None}
        return dict(sorted(known.items(), key=lambda item: (len(item[1]), item[0])))

    def _cheapest(self, node: int) -> set[ClaimKey] | None:
        total: set[ClaimKey] = set()
        for request in self._requests:
            options = (self._of_alternative(each, node) for each in request.alternatives)
            usable = [option for option in options if option is not None]
            if not usable:
                return None
            total |= min(usable, key=len)
        return total

    def _of_alternative(self, alternative: Alternative, node: int) -> set[ClaimKey] | None:
        held = [self._of_device(alternative, device) for device in self._devices(alternative, node)]
        if len(held) < (alternative.count or 1):
            return None
        return set().union(*sorted(held, key=len)[: alternative.count])

    def every(self, node: int) -> set[ClaimKey]:
        """The claims in the way of any device that the demand could use."""
        return self._under_caps.union(*(self._of_device(each, device) for each, device in self._options(node)))

    def users(self, node: int) -> set[ClaimKey]:
        """The claims that use anything of what the demand could use, even if enough of it is left for one device."""
        devices, ledger = self._context.problem.devices, self._context.ledger
        neighbours = (
            ledger.neighbours(devices[device], self._charge(each, device)) for each, device in self._options(node)
        )
        return self.every(node).union(*neighbours) - self._snapshot.own

    def _options(self, node: int) -> Iterator[tuple[Alternative, int]]:
        for request in self._requests:
            for each in request.alternatives:
                for device in self._devices(each, node):
                    yield each, device

    def _devices(self, alternative: Alternative, node: int) -> list[int]:
        offers, problem = self._context.offers, self._context.problem
        return [
            device
            for device in problem.nodes[node].devices()
            if offers.could_serve(alternative.index, device) and problem.on_node(device, node)
        ]

    def _charge(self, alternative: Alternative, device: int) -> Charge:
        return self._context.offers.charge(alternative.index, device) or Charge()

    def _of_device(self, alternative: Alternative, number: int) -> set[ClaimKey]:
        device, ledger = self._context.problem.devices[number], self._context.ledger
        charge = self._charge(alternative, number)
        shortages = ledger.shortages(device, charge, admin=alternative.admin)
        found = {claim for shortage in shortages for claim in ledger.holders(device, shortage)}
        # Who uses what is capped, if the device alone would take more than the cap leaves.
        counters = self._context.problem.counters
        short = (one for one in self._caps if amount_used(one.resource, device, charge, counters) > (one.left or 0))
        return found.union(*map(self._snapshot.caps.users, short)) - self._snapshot.own

    @cached_property
    def _caps(self) -> tuple[Budget, ...]:
        return self._snapshot.caps.of(self._snapshot.demand)

    @cached_property
    def _under_caps(self) -> set[ClaimKey]:
        """Who uses what is capped for the demand."""
        return set().union(*map(self._snapshot.caps.users, self._caps)) - self._snapshot.own

    def priority(self, claim: ClaimKey) -> int:
        """The highest priority of the pods that use a claim; 0 if nobody does."""
        return max(self._priorities.get(claim, (0,)))

    @cached_property
    def _priorities(self) -> Mapping[ClaimKey, list[int]]:
        cluster = self._oracle.compiled.cluster
        found: dict[ClaimKey, list[int]] = defaultdict(list)
        for pod in cluster.pods:
            for key in cluster.pod_claims(pod):
                found[key].append(pod.spec.priority or 0)
        return found
