"""The columns of column generation: what a bin can serve; and answers made of them.

Each bin of a packing is a column. An answer says how many bins have which column.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from itertools import chain
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
    "placed_of",
    "unserved_demand",
]


class Column(NamedTuple):
    """The servings of a bin by assignment option, and a packing with the number of a bin in it that has them."""

    counts: tuple[int, ...]
    packing: Packing
    number: int

    @classmethod
    def of(cls, packing: Packing, bin_number: int) -> Column:
        """Return the column of a bin in a packing."""
        return cls(
            tuple(packing.counts[bin_number].tolist()), packing, bin_number
        )


PackingSolution = list[list[tuple[Column, int]]]
"""For each bin type, columns with their numbers of bins."""

Costs = tuple[int, ...]
"""By tier."""


class Columns:
    """All columns so far, by bin type."""

    def __init__(self, instance: PackingInstance) -> None:
        self.instance = instance
        self.of_bin_type: list[dict[bytes, Column]] = [
            {} for _ in instance.bin_types
        ]
        self._bin_type_of: list[int] = []
        for bin_type_index, bin_type in enumerate(instance.bin_types):
            self._bin_type_of += [bin_type_index] * len(bin_type.instances)

    def add(self, packing: Packing) -> PackingSolution:
        """Add the columns of a packing; returns it as an answer."""
        copies: list[Tally[bytes]] = [Tally() for _ in self.of_bin_type]
        for bin_number, bin_type in enumerate(self._bin_type_of):
            key = packing.counts[bin_number].tobytes()
            copies[bin_type][key] += 1
            if key not in self.of_bin_type[bin_type]:
                column = Column.of(packing, bin_number)
                self.of_bin_type[bin_type][key] = column
        answer: PackingSolution = []
        for columns, tally in zip(self.of_bin_type, copies, strict=True):
            answer.append(
                [(columns[key], count) for key, count in tally.items()]
            )
        return answer


def free_bins(
    instance: PackingInstance, answer: PackingSolution
) -> dict[int, int]:
    """Return by bin type how many bins have no column."""
    free: dict[int, int] = {}
    for bin_type_index, bin_type in enumerate(instance.bin_types):
        in_use = sum(copies for _, copies in answer[bin_type_index])
        free[bin_type_index] = len(bin_type.instances) - in_use
    return free


def _served(instance: PackingInstance, answer: PackingSolution) -> list[int]:
    """Return how often each option is served in all bins; it can be more than there are demands."""
    total = np.zeros(len(instance.options), dtype=np.int64)
    for column, copies in chain.from_iterable(answer):
        total += copies * np.array(column.counts)
    return list(total.tolist())


def unserved_demand(
    instance: PackingInstance, answer: PackingSolution
) -> list[int]:
    """Return by demand class how many are not served."""
    unserved = list(instance.demand)
    for option, count in enumerate(_served(instance, answer)):
        unserved[instance.options[option].cls] -= count
    return [max(0, count) for count in unserved]


def placed_of(instance: PackingInstance, answer: PackingSolution) -> list[int]:
    """Return by demand class how many are placed: those that are served, of gangs only as many as are complete."""
    served_counts = []
    for size, unserved in zip(
        instance.demand, unserved_demand(instance, answer), strict=True
    ):
        served_counts.append(size - unserved)
    complete_gangs: dict[int, int] = {}
    for demand_class, count in zip(
        instance.classes, served_counts, strict=True
    ):
        if share := demand_class.gang:
            gang_count = count // share.number
            # A gang is complete if each of its classes has all members for it: the class with the fewest decides.
            fewest = complete_gangs.get(share.gangs, gang_count)
            complete_gangs[share.gangs] = min(fewest, gang_count)
    placed = []
    for demand_class, count in zip(
        instance.classes, served_counts, strict=True
    ):
        if share := demand_class.gang:
            placed.append(complete_gangs[share.gangs] * share.number)
        else:
            placed.append(count)
    return placed


def costs_of(instance: PackingInstance, answer: PackingSolution) -> Costs:
    """Return by tier the weight of what is missed and of what options leave out, and the ranks of what is served."""
    placed = placed_of(instance, answer)
    costs = list(_spent_of(instance, answer, placed))
    for tier, weights in enumerate(instance.weights):
        for cls, weight in enumerate(weights):
            missed = instance.demand[cls] - placed[cls]
            costs[tier] += weight * missed
    return tuple(costs)


def _spent_of(
    instance: PackingInstance, answer: PackingSolution, placed: Sequence[int]
) -> Costs:
    """Return by tier what the options cost that place so many of each class: the best ones."""
    option_costs = instance.option_costs
    to_place = list(placed)
    spent = [0] * len(option_costs)
    counts = _served(instance, answer)
    cheapest_first = sorted(
        range(len(counts)),
        key=lambda option: [costs[option] for costs in option_costs],
    )
    for option in cheapest_first:
        cls = instance.options[option].cls
        count = min(counts[option], to_place[cls])
        to_place[cls] -= count
        for tier, costs in enumerate(option_costs):
            spent[tier] += costs[option] * count
    return tuple(spent)
