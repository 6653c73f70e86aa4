"""Columns: what a bin can serve, as found by fillings; and answers made of them."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dralloc.solvers.cpsat.packing.filling import Deal, Filling
from dralloc.solvers.cpsat.packing.store import Store

__all__ = ["Answer", "Column", "Columns", "Costs", "costs_of", "left_of", "served"]


class Column(NamedTuple):
    """How often a bin serves each way, and the bin of the filling that shows how."""

    counts: tuple[int, ...]
    filling: Filling
    bin_: int

    @property
    def deal(self) -> Deal:
        """Which unit gives what."""
        return self.filling.deal(self.bin_)


Answer = list[list[tuple[Column, int]]]
"""For each bay, columns with their numbers of bins."""

Costs = tuple[int, int]
"""Of the first two tiers."""


class Columns:
    """All columns so far, by bay."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.of_bay: list[dict[bytes, Column]] = [{} for _ in store.bays]
        sizes = [len(bay.slots) for bay in store.bays]
        self._bay_of: list[int] = np.repeat(np.arange(len(sizes)), sizes).tolist()

    def add(self, filling: Filling) -> Answer:
        """Add what a filling did; returns it as an answer."""
        copies: list[Tally[bytes]] = [Tally() for _ in self.of_bay]
        for bin_, bay in enumerate(self._bay_of):
            key = filling.counts[bin_].tobytes()
            copies[bay][key] += 1
            if key not in self.of_bay[bay]:
                self.of_bay[bay][key] = Column(tuple(filling.counts[bin_].tolist()), filling, bin_)
        return [
            [(columns[key], number) for key, number in each.items()]
            for columns, each in zip(self.of_bay, copies, strict=True)
        ]

    def offer(self, bay: int, column: Column) -> bool:
        """Add a column. Whether it is new."""
        key = np.array(column.counts, dtype=np.int64).tobytes()
        return self.of_bay[bay].setdefault(key, column) is column


def served(store: Store, answer: Answer) -> list[int]:
    """How often each way is served in all bins together; it can be more than there are demands."""
    total = [0] * len(store.ways)
    for bay in answer:
        for column, number in bay:
            for way, count in enumerate(column.counts):
                total[way] += count * number
    return total


def left_of(store: Store, answer: Answer) -> list[int]:
    """By demand class, how many are not served."""
    left = [len(each.members) for each in store.classes]
    for way, number in enumerate(served(store, answer)):
        left[store.ways[way].cls] -= number
    return [max(0, each) for each in left]


def costs_of(store: Store, answer: Answer) -> Costs:
    """The weight of what is missed, and the ranks of what is served, of each class the best ranks first."""
    left = [len(each.members) for each in store.classes]
    ranks = 0
    for way, number in _best_ranks_first(store, served(store, answer)):
        cls = store.ways[way].cls
        taken = min(number, left[cls])
        left[cls] -= taken
        ranks += store.ways[way].mode.rank * taken
    return sum(each.weight * missed for each, missed in zip(store.classes, left, strict=True)), ranks


def _best_ranks_first(store: Store, total: list[int]) -> Iterator[tuple[int, int]]:
    yield from sorted(enumerate(total), key=lambda each: store.ways[each[0]].mode.rank)
