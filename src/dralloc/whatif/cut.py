"""Some nodes of a problem as a small problem of their own, so that nothing depends on the size of the whole."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from dralloc.errors import AllocationError
from dralloc.problem import Charge, Demand, Device, Eligibility, Node, Problem

__all__ = ["at_home", "cut"]


def cut(problem: Problem, nodes: Sequence[int]) -> Problem:
    """The inventory of some islands (see `dralloc.whatif.alike`), without demands."""
    return _Cut(problem, nodes).problem()


def at_home(demands: Sequence[Demand], node: int) -> list[Demand]:
    """The demands as they are on this node cut out alone: without rules about nodes, or with nowhere to go."""
    return [replace(one, nodes=None if one.nodes is None or node in one.nodes else ()) for one in demands]


class _Cut:
    def __init__(self, problem: Problem, nodes: Sequence[int]) -> None:
        self.whole = problem
        self.nodes = [problem.nodes[node] for node in nodes]
        self.devices = list(dict.fromkeys(device for node in self.nodes for device in node.devices()))
        self.place = {device: number for number, device in enumerate(self.devices)}
        self.counters = self._counters()

    def _counters(self) -> dict[int, int]:
        """The counters that the devices draw on, and with them those that close a group because they are overdrawn."""
        groups = {self.whole.devices[device].group for device in self.devices}
        found = (number for number, counter in enumerate(self.whole.counters) if counter.group in groups)
        return {number: place for place, number in enumerate(found)}

    def problem(self) -> Problem:
        devices = tuple(self._device(self.whole.devices[device]) for device in self.devices)
        return Problem(
            demands=(),
            nodes=tuple(self._node(node) for node in self.nodes),
            devices=devices,
            counters=tuple(self.whole.counters[number] for number in self.counters),
            usage=self.whole.usage_of({device.slot for device in devices}),
            eligibility=_Renumbered(self.whole.eligibility, self.devices, self.counters),
            features=self.whole.features,
        )

    def _device(self, device: Device) -> Device:
        return replace(device, consumes=_renumbered(device.consumes, self.counters)) if device.consumes else device

    def _node(self, node: Node) -> Node:
        pools = (replace(pool, devices=tuple(self.place[one] for one in pool.devices)) for pool in node.pools)
        return Node(node.name, tuple(pools))


def _renumbered(amounts: Sequence[tuple[int, int]], numbers: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple((numbers[counter], amount) for counter, amount in amounts)


@dataclass(frozen=True)
class _Renumbered:
    """The eligibility of the whole under the part's numbers."""

    whole: Eligibility
    devices: Sequence[int]
    counters: Mapping[int, int]

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        return self.whole.selects(alternative, self.devices[device])

    def admits(self, alternative: int, device: int) -> bool:
        return self.whole.admits(alternative, self.devices[device])

    def charge(self, alternative: int, device: int) -> Charge | None:
        charge = self.whole.charge(alternative, self.devices[device])
        if charge is None or not charge.counters:
            return charge
        return replace(charge, counters=_renumbered(charge.counters, self.counters))

    def kind(self, alternative: int) -> Hashable:
        return self.whole.kind(alternative)

    def look(self, device: int) -> Hashable:
        return self.whole.look(self.devices[device])
