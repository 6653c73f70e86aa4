"""The columns of column generation: what a bin can serve; and answers made of them."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from itertools import chain
from operator import add, mul
from typing import NamedTuple

import numpy as np

from dralloc.solve.optimum.packing.construction import Packing
from dralloc.solve.optimum.packing.instance import PackingInstance

__all__ = [
    "Column",
    "Columns",
    "Costs",
    "PackingSolution",
    "costs_of",
    "free_bins",
    "left_of",
    "placed_of",
    "served",
    "spent_of",
]


class Column(NamedTuple):
    """How often a bin serves each assignment option, and a packing with the number of a bin in it that does."""

    counts: tuple[int, ...]
    packing: Packing
    number: int

    @classmethod
    def of(cls, packing: Packing, number: int) -> Column:
        """That of a bin in a packing."""
        return cls(tuple(packing.counts[number].tolist()), packing, number)


PackingSolution = list[list[tuple[Column, int]]]
"""For each bin type, columns with their numbers of bins."""

Costs = tuple[int, ...]
"""By tier."""


class Columns:
    """All columns so far, by bin type."""

    def __init__(self, instance: PackingInstance) -> None:
        self.instance = instance
        self.of_bin_type: list[dict[bytes, Column]] = [{} for _ in instance.bin_types]
        sizes = [len(bin_type.instances) for bin_type in instance.bin_types]
        self._bin_type_of: list[int] = np.repeat(np.arange(len(sizes)), sizes).tolist()

    def add(self, packing: Packing) -> PackingSolution:
        """Add the columns of a packing; returns it as an answer."""
        copies: list[Tally[bytes]] = [Tally() for _ in self.of_bin_type]
        for bin_, bin_type in enumerate(self._bin_type_of):
            key = packing.counts[bin_].tobytes()
            copies[bin_type][key] += 1
            if key not in self.of_bin_type[bin_type]:
                self.of_bin_type[bin_type][key] = Column.of(packing, bin_)
        return [
            [(columns[key], number) for key, number in each.items()]
            for columns, each in zip(self.of_bin_type, copies, strict=True)
        ]

    def add_column(self, bin_type: int, column: Column) -> bool:
        """Add a column. Whether it is new."""
        key = np.array(column.counts, dtype=np.int64).tobytes()
        return self.of_bin_type[bin_type].setdefault(key, column) is column


def free_bins(instance: PackingInstance, answer: PackingSolution) -> dict[int, int]:
    """By bin type, how many bins have no column."""
    parts = enumerate(zip(instance.bin_types, answer, strict=True))
    return {
        each: len(bin_type.instances) - sum(number for _, number in chosen)
        for each, (bin_type, chosen) in parts
    }


def served(instance: PackingInstance, answer: PackingSolution) -> list[int]:
    """How often each option is served in all bins together; it can be more than there are demands."""
    total = np.zeros(len(instance.options), dtype=np.int64)
    for column, number in chain.from_iterable(answer):
        total += number * np.array(column.counts)
    return list(total.tolist())


def left_of(instance: PackingInstance, answer: PackingSolution) -> list[int]:
    """By demand class, how many are not served."""
    left = list(instance.demand)
    for option, number in enumerate(served(instance, answer)):
        left[instance.options[option].cls] -= number
    return [max(0, each) for each in left]


def placed_of(instance: PackingInstance, answer: PackingSolution) -> list[int]:
    """By demand class, how many are placed: those that are served, of gangs only as many as are complete."""
    found = [
        size - left
        for size, left in zip(instance.demand, left_of(instance, answer), strict=True)
    ]
    complete: dict[int, int] = {}
    for each, number in zip(instance.classes, found, strict=True):
        if each.gang:
            gangs, members, _ = each.gang
            complete[gangs] = min(complete.get(gangs, number), number // members)
    return [
        complete[each.gang.gangs] * each.gang.number if each.gang else number
        for each, number in zip(instance.classes, found, strict=True)
    ]


def costs_of(instance: PackingInstance, answer: PackingSolution) -> Costs:
    """By tier: the weight of what is missed and of what options leave out, and the ranks of what is served."""
    placed = placed_of(instance, answer)
    left = [size - number for size, number in zip(instance.demand, placed, strict=True)]
    missed = (*(sum(map(mul, weights, left)) for weights in instance.weights), 0)
    return tuple(map(add, missed, spent_of(instance, answer, placed)))


def spent_of(
    instance: PackingInstance, answer: PackingSolution, placed: Sequence[int]
) -> Costs:
    """By tier, what the options cost that place so many of each class: the best ones."""
    costs, left = instance.option_costs, list(placed)
    spent = [0] * len(costs)
    by_cost = sorted(
        enumerate(served(instance, answer)),
        key=lambda each: [tier[each[0]] for tier in costs],
    )
    for option, number in by_cost:
        cls = instance.options[option].cls
        taken = min(number, left[cls])
        left[cls] -= taken
        for level, tier in enumerate(costs):
            spent[level] += tier[option] * taken
    return tuple(spent)
