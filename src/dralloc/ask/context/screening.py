"""Screening of a node: whether each request of a demand would find enough devices if it were alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Set
from itertools import islice

from dralloc.ask.context.context import Context
from dralloc.ask.context.lift import NO_LIFT, Lift
from dralloc.problem import Alternative, Charge, Demand, PoolState
from dralloc.problem.limits import Limit, limit_behind

__all__ = ["Screening"]


class Screening:
    """Necessary, never sufficient: nodes that fail here need no search. What it is asked for is found out once."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._could_serve: dict[int, dict[Hashable, bool]] = defaultdict(dict)
        self._short: dict[int, dict[int, Set[Limit]]] = defaultdict(dict)

    def on(self, node: int, demand: Demand, lift: Lift = NO_LIFT) -> bool:
        """Whether the node might serve every request."""
        requests = (request for claim in demand.claims for request in claim.requests)
        return all(
            any(self._has_enough(each, node, lift) for each in request.alternatives)
            for request in requests
        )

    def _has_enough(self, alternative: Alternative, node: int, lift: Lift) -> bool:
        if alternative.count is None:
            pools = self.context.problem.nodes[node].pools
            return all(pool.state is PoolState.USABLE for pool in pools)
        found = islice(self._found(alternative, node, lift), alternative.count)
        return sum(1 for _ in found) == alternative.count

    def _found(self, alternative: Alternative, node: int, lift: Lift) -> Iterator[int]:
        """The devices on a node that could be had for an alternative."""
        fits, offers = self._could_serve[alternative.index], self.context.offers
        for pool in self.context.problem.nodes[node].pools:
            for device, key in zip(
                pool.devices, offers.device_keys(pool.devices), strict=True
            ):
                if key not in fits:
                    fits[key] = offers.could_serve(alternative.index, device)
                if fits[key] and self._is_left(alternative, device, node, lift):
                    yield device

    def serves(
        self, alternative: Alternative, number: int, node: int, lift: Lift
    ) -> bool:
        """Whether a device on a node could be had for an alternative that asks for nothing else."""
        could_serve = self.context.offers.could_serve(alternative.index, number)
        return could_serve and self._is_left(alternative, number, node, lift)

    def _is_left(
        self, alternative: Alternative, number: int, node: int, lift: Lift
    ) -> bool:
        if not self.context.problem.on_node(number, node):
            return False
        known = self._short[alternative.index]
        if number not in known:
            known[number] = frozenset(self._limits(alternative, number))
        return known[number] <= lift.limits

    def _limits(self, alternative: Alternative, number: int) -> Iterator[Limit]:
        """What is short of a device for an alternative."""
        problem, ledger = self.context.problem, self.context.ledger
        device, charge = (
            problem.devices[number],
            self.context.offers.charge(alternative.index, number) or Charge(),
        )
        for shortage in ledger.shortages(device, charge, admin=alternative.admin):
            yield limit_behind(problem, device, shortage)
