"""Names for an answer made of columns: which demand goes to which node and gets which devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from dralloc.problem import Problem
from dralloc.solution import Placement
from dralloc.solvers.cpsat.classes.count_model import placement
from dralloc.solvers.cpsat.classes.supply import Served
from dralloc.solvers.cpsat.packing.columns import Answer
from dralloc.solvers.cpsat.packing.filling import Deal
from dralloc.solvers.cpsat.packing.store import Slot, Store

__all__ = ["placements"]


class _Serving(NamedTuple):
    """A way that is served: its rank first, to keep the best; then where."""

    rank: int
    node: int
    place: int
    way: int
    served: Served


def placements(problem: Problem, store: Store, answer: Answer) -> list[Placement]:
    """Give names to an answer: servings of a class by rank and node, its demands in order. What is too much is dropped.

    Returns
    -------
    Sorted by demand.
    """
    by_class: dict[int, list[_Serving]] = defaultdict(list)
    for slot, deal in _dealt(store, answer):
        for serving in _servings(store, slot, deal):
            by_class[store.ways[serving.way].cls].append(serving)
    found = []
    for cls, servings in by_class.items():
        for demand, serving in zip(store.classes[cls].members, sorted(servings), strict=False):
            found.append(placement(problem, demand, store.ways[serving.way].mode, serving.served))
    return sorted(found, key=lambda each: each.demand)


def _dealt(store: Store, answer: Answer) -> Iterator[tuple[Slot, Deal]]:
    """The bins in order, with the columns of their bay in order."""
    for bay, chosen in zip(store.bays, answer, strict=True):
        slots = iter(bay.slots)
        for column, number in chosen:
            for _ in range(number):
                yield next(slots), column.deal


def _servings(store: Store, slot: Slot, deal: Deal) -> Iterator[_Serving]:
    devices = _devices(store, slot, deal)
    for place, (way, givers) in enumerate(deal):
        requirement = store.ways[way].requirement
        given: list[list[int]] = [[] for _ in requirement.item_groups]
        for piece, unit in zip(store.ways[way].pieces, givers, strict=True):
            given[piece.item_group].append(next(devices[unit]))
        node = next(node for node, sets in zip(slot.bin_.nodes, slot.sets, strict=True) if requirement.nodes in sets)
        served = Served(tuple(tuple(sorted(each)) for each in given), node)
        yield _Serving(store.ways[way].mode.rank, node, place, way, served)


def _devices(store: Store, slot: Slot, deal: Deal) -> list[Iterator[int]]:
    """By unit, the devices in the order in which the deal asks for them."""
    types: list[list[int]] = [[] for _ in slot.units]
    for way, givers in deal:
        for piece, unit in zip(store.ways[way].pieces, givers, strict=True):
            types[unit].append(piece.type)
    return [
        iter([slot.bin_.units[number][position] for position in unit.giver.devices(asked)])
        for asked, number, unit in zip(types, slot.order, slot.units, strict=True)
    ]
