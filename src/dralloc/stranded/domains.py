"""Domains: devices that have to be looked at together, because a claim or a counter connects them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from networkx.utils import UnionFind

from dralloc.explain.scene import Part
from dralloc.stranded.ground import Ground
from dralloc.stranded.measures import Measure

__all__ = ["Domain", "find_domains"]


@dataclass(frozen=True)
class Domain:
    """Some devices that no claim and no counter connects with others.

    Parameters
    ----------
    ground
        Where they are.
    nodes
        For each node that reaches any of them, those that it reaches, in search order.
    pieces
        The smaller domains that it falls into if every claim took one device.
    """

    ground: Ground
    nodes: Mapping[int, tuple[int, ...]]
    pieces: tuple[Domain, ...] = ()

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The devices, in search order."""
        return tuple(dict.fromkeys(device for devices in self.nodes.values() for device in devices))

    @cached_property
    def counters(self) -> frozenset[int]:
        """The counters that they draw on."""
        return frozenset(counter for device in self.devices for counter in self.ground.draws(device))

    @cached_property
    def slots(self) -> frozenset[int]:
        """The physical devices."""
        return frozenset(self.ground.problem.devices[device].slot for device in self.devices)

    def free(self, measure: Measure) -> int:
        """How much of a measure is free in it, in nanos."""
        return sum(
            sum(max(0, self.ground.scene.books.free[number]) for number in unit.counters & self.counters)
            + (unit.free if unit.slot in self.slots else 0)
            for unit in self.ground.measures.units[measure]
        )

    def state(self, measure: Measure) -> Hashable:
        """What can be taken of a measure depends on this alone, so it is worked out once for equal domains."""
        pools = [self.ground.problem.devices[device].id.pool_id == measure.pool for device in self.devices]
        counters = self.ground.measures.counters(measure)
        measured = tuple(number in counters for number in self._part.counters)
        return measure.kind, measure.name, self._signature, tuple(pools), measured

    @cached_property
    def _part(self) -> Part:
        return self.ground.scene.cut(self.nodes, self.ground.problem.demands)

    @cached_property
    def _signature(self) -> int:
        counters = self.ground.problem.counters
        named = tuple(
            (counters[number].id.driver, counters[number].id.counter, number in self.ground.measures.positional)
            for number in self._part.counters
        )
        schedulable = tuple(node in self.ground.schedulable for node in self.nodes)
        return self.ground.number((self._part.signature(), named, schedulable))


def find_domains(ground: Ground) -> list[Domain]:
    """Divide the devices that some claim selects, in the order in which they are searched."""
    pieces: dict[Hashable, list[Domain]] = defaultdict(list)
    together = _joined(ground, claims=True)
    for piece in _divided(ground, _joined(ground, claims=False)):
        pieces[together[min(piece.slots)]].append(piece)
    return [
        Domain(ground, domain.nodes, tuple(pieces[together[min(domain.slots)]]))
        for domain in _divided(ground, together)
    ]


def _divided(ground: Ground, joined: UnionFind[Hashable]) -> Iterator[Domain]:
    nodes: dict[Hashable, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for node, devices in ground.reached.items():
        for device in devices:
            nodes[joined[ground.problem.devices[device].slot]][node].append(device)
    for members in nodes.values():
        yield Domain(ground, {node: tuple(devices) for node, devices in members.items()})


def _joined(ground: Ground, *, claims: bool) -> UnionFind[Hashable]:
    """Devices by slot, joined by counters, and on a node by claims that may take several of them."""
    several = {choice.demand for choice in ground.essential.choices if claims and not choice.takes_one}
    joined: UnionFind[Hashable] = UnionFind()
    for node, devices in ground.reached.items():
        for device in devices:
            counters = (("counter", number) for number in ground.draws(device))
            common = (("claim", node, number) for number in ground.selecting(device) if number in several)
            joined.union(ground.problem.devices[device].slot, *counters, *common)
    return joined
