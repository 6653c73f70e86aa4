"""Screening of a node: whether each request of a demand would find enough devices if it were alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from itertools import islice

from dralloc.context.context import Context
from dralloc.context.lift import Lift
from dralloc.problem import Alternative, Charge, Demand, Device, PoolState, Request
from dralloc.problem.ledger import Shortage

__all__ = ["Screening"]


class Screening:
    """Necessary, never sufficient: nodes that fail here need no search."""

    def __init__(self, context: Context, demand: Demand, lift: Lift) -> None:
        self._context = context
        self._lift = lift
        self._requests = [request for claim in demand.claims for request in claim.requests]
        self._lifted: dict[Hashable, bool] = {}
        self._by_key: dict[int, dict[Hashable, bool]] = defaultdict(dict)

    def on(self, node: int) -> bool:
        """Whether the node might serve every request."""
        return all(self._serves(request, node) for request in self._requests)

    def _serves(self, request: Request, node: int) -> bool:
        return any(self._has_enough(alternative, node) for alternative in request.alternatives)

    def _has_enough(self, alternative: Alternative, node: int) -> bool:
        if alternative.count is None:
            pools = self._context.problem.nodes[node].pools
            return all(pool.state is PoolState.USABLE for pool in pools)
        found = islice(self._found(alternative, node), alternative.count)
        return sum(1 for _ in found) == alternative.count

    def _found(self, alternative: Alternative, node: int) -> Iterator[int]:
        """The devices on a node that could be had for an alternative."""
        fits, offers = self._by_key[alternative.index], self._context.offers
        for pool in self._context.problem.nodes[node].pools:
            for device, key in zip(pool.devices, offers.device_keys(pool.devices), strict=True):
                if key not in fits:
                    fits[key] = offers.could_serve(alternative.index, device)
                if fits[key] and self._is_left(alternative, device, node):
                    yield device

    def serves(self, alternative: Alternative, number: int, node: int) -> bool:
        """Whether a device on a node could be had for an alternative that asks for nothing else."""
        return self._context.offers.could_serve(alternative.index, number) and self._is_left(alternative, number, node)

    def _is_left(self, alternative: Alternative, number: int, node: int) -> bool:
        if not self._context.problem.on_node(number, node):
            return False
        device, ledger = self._context.problem.devices[number], self._context.ledger
        if not (alternative.admin or ledger.is_free(device)):
            return False
        charge = self._context.offers.charge(alternative.index, number) or Charge()
        fits = ledger.fits(device, charge, admin=alternative.admin)
        if fits or not self._lift.limits:
            return fits
        short = ledger.shortages(device, charge, admin=alternative.admin)
        return all(self._is_lifted(device, one) for one in short)

    def _is_lifted(self, device: Device, shortage: Shortage) -> bool:
        key = device.id.driver, shortage.scarcity, shortage.what
        if key not in self._lifted:
            self._lifted[key] = self._lift.covers(self._context.problem, device, shortage)
        return self._lifted[key]
