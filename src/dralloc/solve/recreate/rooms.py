"""What nodes have left of CPU, memory and the like, and which demands that is enough for."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from statistics import mean

from dralloc.problem import (
    AlternativeIndex,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
)
from dralloc.problem.ledger import Ledger
from dralloc.solve.recreate.cells import Cell, PackedRow, packed

__all__ = ["NodeRooms"]


class NodeRooms:
    """What nodes have for demands beside devices.

    Parameters
    ----------
    base
        What is in use by those who stay.
    demands
        Those whose claims on nodes are asked about here; all others ask for
        nothing.
    device_of
        By node, the device that stands for it (see `dralloc.problem.node_claims`); None if the node can serve no claim
        on a node.

    Attributes
    ----------
    room
        By node, what is left, packed.
    guards
        A bit above each amount.
    spaciousness
        By node, what is left of all resources together, each as a part of what nodes have of it. Floats, which only
        say where to look first.
    bulk
        By demand, what it takes, in the same unit.
    """

    def __init__(
        self,
        problem: Problem,
        base: Ledger,
        demands: Collection[DemandIndex],
        device_of: list[DeviceIndex | None],
    ) -> None:
        self._problem = problem
        free_on_nodes = [
            _free_amounts(problem, base, device) for device in device_of
        ]
        names = sorted({name for free in free_on_nodes for name in free})
        amounts_by_name = {
            name: _amounts_of(name, free_on_nodes) for name in names
        }
        layout = Cell()
        self._rows: Mapping[str, PackedRow] = {
            name: layout.row(name, max(amounts))
            for name, amounts in amounts_by_name.items()
        }
        # Nobody has any of it: so whoever fits nowhere asks for it.
        self._impossible = 1 << layout.row(None, 0).shift
        self._usual = {
            name: max(1.0, mean(amounts))
            for name, amounts in amounts_by_name.items()
        }
        self.guards = layout.guards
        self.room = [self._packed(free) for free in free_on_nodes]
        self.spaciousness = [self._size(free.items()) for free in free_on_nodes]
        self.bulk = [0.0] * len(problem.demands)
        kinds: dict[Hashable, list[int]] = {}
        self._asked_of: list[list[int]] = []
        for device in device_of:
            kind = (
                None
                if device is None
                else problem.eligibility.device_key(device)
            )
            if kind not in kinds:
                kinds[kind] = self._asked(device, demands)
            self._asked_of.append(kinds[kind])

    def asked_of(self, node: NodeIndex) -> list[int]:
        """Return by demand what it takes of a node, packed."""
        return self._asked_of[node]

    def take(self, demand: DemandIndex, node: NodeIndex) -> None:
        """Let a demand take what it needs, which must be there."""
        self.room[node] -= self._asked_of[node][demand]
        self.spaciousness[node] -= self.bulk[demand]

    def give_back(self, demand: DemandIndex, node: NodeIndex) -> None:
        """Give back what a demand took."""
        self.room[node] += self._asked_of[node][demand]
        self.spaciousness[node] += self.bulk[demand]

    def _asked(
        self, node_device: DeviceIndex | None, demands: Collection[DemandIndex]
    ) -> list[int]:
        """Return by demand what it takes of nodes for which such a device stands."""
        asked = [0] * len(self._problem.demands)
        known: dict[Hashable, tuple[int, float]] = {}
        eligibility = self._problem.eligibility
        for demand in demands:
            claims = self._problem.demands[demand].claims
            if not (claims and claims[0].is_synthetic):
                continue
            [alternative] = claims[0].alternatives()
            key = eligibility.request_key(alternative.index)
            if key not in known:
                known[key] = self._ask(alternative.index, node_device)
            asked[demand], self.bulk[demand] = known[key]
        return asked

    def _ask(
        self, alternative: AlternativeIndex, node_device: DeviceIndex | None
    ) -> tuple[int, float]:
        if node_device is None:
            return self._impossible, 0.0
        charge = self._problem.eligibility.charge(alternative, node_device)
        if charge is None:
            return self._impossible, 0.0
        need = packed(
            (self._rows[name], amount) for name, amount in charge.capacity
        )
        if need is None:
            return self._impossible, 0.0
        return need, self._size(charge.capacity)

    def _packed(self, amounts: Mapping[str, int]) -> int:
        return sum(
            amount << self._rows[name].shift for name, amount in amounts.items()
        )

    def _size(self, amounts: Iterable[tuple[str, int]]) -> float:
        return sum(amount / self._usual[name] for name, amount in amounts)


def _amounts_of(
    name: str, free_on_nodes: Iterable[Mapping[str, int]]
) -> list[int]:
    """Return how much of a resource is left on each node."""
    return [free.get(name, 0) for free in free_on_nodes]


def _free_amounts(
    problem: Problem, base: Ledger, node_device: DeviceIndex | None
) -> dict[str, int]:
    """Return what is left of each resource of a node."""
    if node_device is None:
        return {}
    device = problem.devices[node_device]
    return {
        name: max(0, base.capacity_left(device, name))
        for name in device.capacity
    }
