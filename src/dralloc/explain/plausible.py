"""A glance at a node: whether each request of a demand would find enough devices if it were alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from itertools import islice

from dralloc.explain.scene import Lift, Scene
from dralloc.problem import Alternative, Charge, Demand, Device, PoolState, Request

__all__ = ["Plausible"]


class Plausible:
    """Necessary, never sufficient: nodes that fail here need no search."""

    def __init__(self, scene: Scene, demand: Demand, lift: Lift) -> None:
        self._scene = scene
        self._lift = lift
        self._requests = [request for claim in demand.claims for request in claim.requests]
        self._by_look: dict[int, dict[Hashable, bool]] = defaultdict(dict)

    def on(self, node: int) -> bool:
        """Whether the node might serve every request."""
        return all(self._serves(request, node) for request in self._requests)

    def _serves(self, request: Request, node: int) -> bool:
        return any(self._has_enough(alternative, node) for alternative in request.alternatives)

    def _has_enough(self, alternative: Alternative, node: int) -> bool:
        if alternative.count is None:
            pools = self._scene.problem.nodes[node].pools
            return all(pool.state is PoolState.USABLE for pool in pools)
        found = islice(self._found(alternative, node), alternative.count)
        return sum(1 for _ in found) == alternative.count

    def _found(self, alternative: Alternative, node: int) -> Iterator[int]:
        """The devices on a node that could be had for an alternative."""
        fits = self._by_look[alternative.index]
        for pool in self._scene.problem.nodes[node].pools:
            for device, look in zip(pool.devices, self._scene.offers.looks(pool.devices), strict=True):
                if look not in fits:
                    fits[look] = self._fits(alternative, device)
                if fits[look] and self._is_left(alternative, device, node):
                    yield device

    def serves(self, alternative: Alternative, number: int, node: int) -> bool:
        """Whether a device on a node could be had for an alternative that asks for nothing else."""
        return self._fits(alternative, number) and self._is_left(alternative, number, node)

    def _fits(self, alternative: Alternative, number: int) -> bool:
        """What does not depend on who holds what, and is the same for all devices of one look."""
        offers = self._scene.offers
        return (
            offers.selects(alternative.index, number) is True
            and offers.charge(alternative.index, number) is not None
            and offers.admits(alternative.index, number)
        )

    def _is_left(self, alternative: Alternative, number: int, node: int) -> bool:
        if not self._scene.problem.on_node(number, node):
            return False
        device = self._scene.problem.devices[number]
        charge = self._scene.offers.charge(alternative.index, number) or Charge()
        if not self._has_capacity(device, charge):
            return False
        if alternative.admin:
            return True
        return self._is_free(device) and self._has_counters(device, charge) and self._is_compatible(device)

    def _is_free(self, device: Device) -> bool:
        books = self._scene.books
        return device.slot not in books.held and (device.shareable or device.slot not in books.shares)

    def _has_capacity(self, device: Device, charge: Charge) -> bool:
        consumed = self._scene.books.consumed.get(device.slot, {})
        return all(
            consumed.get(name, 0) + amount <= device.capacity[name].total
            for name, amount in charge.capacity
            if (device.id.driver, name) not in self._lift.capacities
        )

    def _has_counters(self, device: Device, charge: Charge) -> bool:
        return all(self._is_lifted(number) for number, _ in self._scene.books.shortages(device, charge))

    def _is_compatible(self, device: Device) -> bool:
        if not device.compatibility or device.slot in self._scene.books.shares or device.id.driver in self._lift.groups:
            return True
        common = self._scene.books.compatibility()
        return all(groups & common.get(counter_set, groups) for counter_set, groups in device.compatibility)

    def _is_lifted(self, number: int) -> bool:
        id_ = self._scene.problem.counters[number].id
        return (id_.driver, id_.counter) in self._lift.counters
