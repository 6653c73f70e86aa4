"""Nodes that are not there yet: copies of some nodes of a problem."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import DeviceID, PoolID
from dralloc.problem.problem import Problem, Renumbered
from dralloc.problem.requests import Charge
from dralloc.problem.supply import Counter, Device, Node, PoolAccess, Usage

__all__ = ["replicate"]


def replicate(parts: Sequence[Problem]) -> Problem:
    """One problem out of parts with one node each, which may be the same part several times.

    Parameters
    ----------
    parts
        Cut out of one problem (see `dralloc.problem.subproblem`); nothing of them is in use.

    Returns
    -------
    A problem without demands. Its nodes are those of the parts in order, each with pools of its own; their devices
    follow one another as in the parts.
    """
    copies = _Copies()
    for part in parts:
        copies.add(part)
    return Problem(
        demands=(),
        nodes=tuple(copies.nodes),
        devices=tuple(copies.devices),
        counters=tuple(copies.counters),
        usage=Usage(frozenset(), {}, {}),
        eligibility=copies,
        features=parts[0].features,
    )


@dataclass
class _Copies:
    """The copies so far, and the eligibility of them all: each part answers for its own devices."""

    nodes: list[Node] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    origins: list[tuple[Renumbered, int]] = field(default_factory=list)
    """By device: who answers for it, and its index there."""
    numbers: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """Slots, groups and counter sets: what each of a copy is called here."""

    def add(self, part: Problem) -> None:
        """Add the node of a part under new names."""
        # What the part numbers from 0 on comes after everything that is there already.
        copy, devices, counters = len(self.nodes), len(self.devices), len(self.counters)
        moved = {number: counters + number for number in range(len(part.counters))}
        offers = Renumbered(part.eligibility, range(len(part.devices)), moved)
        for index, device in enumerate(part.devices):
            self.devices.append(self._device(device, copy, counters))
            self.origins.append((offers, index))
        for counter in part.counters:
            name = counter.id._replace(pool=_again(counter.id.pool, copy))
            self.counters.append(
                Counter(
                    name,
                    counter.total,
                    counter.free,
                    self._number("group", copy, counter.group),
                )
            )
        [node] = part.nodes
        pools = []
        for pool in node.pools:
            pool_id = PoolID(pool.id.driver, _again(pool.id.pool, copy))
            shifted = tuple(devices + device for device in pool.devices)
            pools.append(PoolAccess(pool_id, pool.state, shifted, pool.reason))
        self.nodes.append(Node(_again(node.name, copy), tuple(pools)))

    def _device(self, device: Device, copy: int, counters: int) -> Device:
        return device.renumbered(
            lambda sort, number: self._number(sort, copy, number),
            lambda counter: counters + counter,
            id=DeviceID(
                device.id.driver, _again(device.id.pool, copy), device.id.device
            ),
        )

    def _number(self, sort: str, copy: int, number: int) -> int:
        return self.numbers.setdefault((sort, copy, number), len(self.numbers))

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        offers, index = self.origins[device]
        return offers.selects(alternative, index)

    def admits(self, alternative: int, device: int) -> bool:
        offers, index = self.origins[device]
        return offers.admits(alternative, index)

    def charge(self, alternative: int, device: int) -> Charge | None:
        offers, index = self.origins[device]
        return offers.charge(alternative, index)

    def request_key(self, alternative: int) -> Hashable:
        # All parts are cut out of one problem, so any of them answers for alternatives.
        return self.origins[0][0].request_key(alternative)

    def device_key(self, device: int) -> Hashable:
        offers, index = self.origins[device]
        return offers.device_key(index)


def _again(name: str, copy: int) -> str:
    return f"{name} (copy {copy + 1})"
