"""Partitionable devices: which of their partitions can exist together, and whom these serve.

A unit is what shares counters: a GPU as a whole and in all its parts (KEP-4815), or a device that shares none. A layout
is a set of partitions of a unit that its counters allow all at once, to which none can be added. Partitions that serve
the same demands are of one type, and layouts with as many of each type are one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import networkx as nx

from dralloc.errors import DrallocError
from dralloc.problem import Alternative, Charge, Demand, Problem, Resource
from dralloc.problem.equivalence import device_traits
from dralloc.problem.ledger import Ledger

__all__ = ["Layout", "SingleRequest", "Unit", "Workshop", "read_single"]

_MOST_STATES: Final = 200_000
"""More combinations of partitions are not listed."""

Numbers = tuple[int, ...]

_NOTHING: Final = Charge()


@dataclass(frozen=True, slots=True)
class SingleRequest:
    """The only request of a demand: where it stands, and its alternatives, each for one device."""

    claim: int
    request: int
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Partitions that can exist together: how many of each type, and an example by places in the unit."""

    numbers: Numbers
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """Devices that share counters, of which somebody has use, with their types; ``key`` is equal for equal units."""

    devices: tuple[int, ...]
    types: tuple[int, ...]
    key: Hashable


def read_single(demand: Demand) -> SingleRequest | None:
    """The request of a demand for one device; None if it asks for something else."""
    found = [
        SingleRequest(claim, place, request.alternatives)
        for claim, each in enumerate(demand.claims)
        for place, request in enumerate(each.requests)
    ]
    if len(found) != 1 or any(one.count != 1 or one.admin for one in found[0].alternatives):
        return None
    return found[0]


class Workshop:
    """Finds the units of a problem, of which only the inventory is looked at, and their layouts.

    Parameters
    ----------
    problem
        Nothing of it is in use.
    demands
        Who is to be served.
    singles
        What each asks for.

    Raises
    ------
    DrallocError
        Some partition can be shared, or what it takes depends on who asks.
    """

    def __init__(self, problem: Problem, demands: Sequence[Demand], singles: Sequence[SingleRequest]) -> None:
        self.problem = problem
        self.demands = demands
        self.singles = singles
        self.homes = self._homes()
        self.types: dict[frozenset[int], int] = {}
        self.units = tuple(self._units())
        self._ledger = Ledger(problem)
        self._layouts: dict[Hashable, tuple[Layout, ...]] = {}

    def _homes(self) -> dict[int, list[int]]:
        """By device the nodes that reach it."""
        homes: dict[int, list[int]] = {}
        for number, node in enumerate(self.problem.nodes):
            for device in node.devices():
                if self.problem.on_node(device, number):
                    homes.setdefault(device, []).append(number)
        return homes

    def pick(self, demand: int, device: int) -> tuple[int, int] | None:
        """The node and the first alternative with which a demand can have a device; None if it cannot."""
        offers, allowed = self.problem.eligibility, self.demands[demand].nodes
        home = next((node for node in self.homes[device] if allowed is None or node in allowed), None)
        if home is None or self._is_void(demand):
            return None
        for rank, one in enumerate(self.singles[demand].alternatives):
            if offers.selects(one.index, device) is True and offers.admits(one.index, device):
                charge = offers.charge(one.index, device)
                if charge is not None and self._agrees(demand, one, device):
                    self._refuse_sharing(device, shared=bool(charge.capacity or charge.counters))
                    return home, rank
        return None

    def _is_void(self, demand: int) -> bool:
        claims = self.demands[demand].claims
        return any(claim.defect for claim in claims) or any(one.defect for one in self.singles[demand].alternatives)

    def _agrees(self, demand: int, alternative: Alternative, device: int) -> bool:
        """Whether the device has the attributes that constraints compare."""
        constraints = self.demands[demand].claims[self.singles[demand].claim].constraints
        known = self.problem.devices[device].attributes
        return all(one.attribute in known for one in constraints if one.covers(alternative.name))

    def _refuse_sharing(self, index: int, *, shared: bool) -> None:
        device = self.problem.devices[index]
        if device.shareable or shared:
            raise DrallocError(
                f"device {device.id}: can be shared; layouts are for devices that one claim has for itself"
            )

    def _units(self) -> Iterator[Unit]:
        types = {device: self._type(device) for device in self.homes}
        graph: nx.Graph[Resource] = nx.Graph()
        for device, kind in types.items():
            if kind is not None:
                graph.add_edges_from((("device", device), one) for one in self.problem.devices[device].resources)
        for members in nx.connected_components(graph):
            devices = tuple(sorted(number for sort, number in members if sort == "device"))
            kinds = tuple(kind for device in devices if (kind := types[device]) is not None)
            yield Unit(devices, kinds, (kinds, *self._shape(devices)))

    def _type(self, device: int) -> int | None:
        serves = frozenset(demand for demand in range(len(self.demands)) if self.pick(demand, device))
        return self.types.setdefault(serves, len(self.types)) if serves else None

    def _shape(self, devices: Sequence[int]) -> tuple[Hashable, ...]:
        """What each device takes of counters that are numbered as they appear, and what there is of them."""
        numbers: dict[Resource, int] = {}

        def number(sort: str, index: int) -> int:
            return numbers.setdefault((sort, index), len(numbers))

        views = [self.problem.devices[device] for device in devices]
        traits = tuple([(number("slot", view.slot), device_traits(view, number)) for view in views])
        return traits, tuple(self.problem.counters[index].free for sort, index in numbers if sort == "counter")

    def layouts(self, unit: Unit) -> tuple[Layout, ...]:
        """All layouts of a unit: those of equal units are found once.

        Raises
        ------
        DrallocError
            They are too many.
        """
        if unit.key not in self._layouts:
            self._layouts[unit.key] = tuple(self._list(unit))
        return self._layouts[unit.key]

    def _list(self, unit: Unit) -> list[Layout]:
        examples: dict[Numbers, tuple[int, ...]] = {}
        for number, places in enumerate(self._sets(unit)):
            if number >= _MOST_STATES:
                name = self.problem.devices[unit.devices[0]].id
                raise DrallocError(f"device {name}: more than {_MOST_STATES} sets of its partitions can exist together")
            counts = Counter(unit.types[place] for place in places)
            examples.setdefault(tuple(counts[kind] for kind in range(len(self.types))), tuple(reversed(places)))
        return [Layout(numbers, examples[numbers]) for numbers in _largest(list(examples))]

    def _sets(self, unit: Unit) -> Iterator[Sequence[int]]:
        """Every set of partitions of a unit, by places, that can exist together: depth first, the last ones first."""
        devices = [self.problem.devices[device] for device in unit.devices]
        taken: list[int] = []
        untried = [len(devices)]
        yield taken
        while untried:
            untried[-1] -= 1
            place = untried[-1]
            if place < 0:
                untried.pop()
                if taken:
                    self._ledger.revoke(devices[taken.pop()], _NOTHING, share=False)
            elif self._ledger.fits(devices[place], _NOTHING):
                self._ledger.enter(devices[place], _NOTHING, share=False)
                taken.append(place)
                untried.append(place)
                yield taken


def _largest(vectors: Sequence[Numbers]) -> list[Numbers]:
    """Those that no other exceeds."""
    kept: list[Numbers] = []
    for one in sorted(vectors, key=sum, reverse=True):
        if not any(all(a >= b for a, b in zip(other, one, strict=True)) for other in kept):
            kept.append(one)
    return kept
