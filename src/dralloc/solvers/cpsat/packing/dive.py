"""The way down from the linear master to an answer.

With all the columns that it could use, the linear master decides nearly every bin. What it decides is kept; for the
other bins columns are priced again, at what the demand that is left pays; and so on, until there are so few bins left
that the exact model can decide about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from math import floor
from typing import Final, NamedTuple

from dralloc.solvers.cpsat.interrupt import Interrupted
from dralloc.solvers.cpsat.linear import Linear
from dralloc.solvers.cpsat.options import Options
from dralloc.solvers.cpsat.packing.columns import Answer, Column, Columns, costs_of, left_of
from dralloc.solvers.cpsat.packing.exact import ExactModel
from dralloc.solvers.cpsat.packing.master import Master, Offer
from dralloc.solvers.cpsat.packing.pricing import Pricer, is_better, part_of
from dralloc.solvers.cpsat.packing.search import Clock
from dralloc.solvers.cpsat.search import Limit, limit_cost, minimise

__all__ = ["Aim", "Dive"]

_TURNS: Final = 8
"""The linear master is solved so often until each bay has been priced once."""

_FEW: Final = 10
"""So many bins are decided by the exact model."""

_EFFORT: Final = 0.3
"""So hard it may try. With fewer bins it is easier, but there may be nothing to be found any more."""

_WHOLE: Final = 1e-6
"""What a copy may lack to be a whole one, or a cost to be as good as another."""


class Aim(NamedTuple):
    """A tier, what any answer costs in it, what the best one so far costs, and the weight that may be missed."""

    level: int
    bound: int
    best: Callable[[], int]
    missed: int


class Dive:
    """One way down. It ends early where it cannot lead to a better answer.

    Parameters
    ----------
    columns
        All columns so far; new ones are added.
    pricer
        It finds them.
    options
        The seed.
    aim
        What to reach.
    """

    def __init__(self, columns: Columns, pricer: Pricer, options: Options, aim: Aim) -> None:
        self.store = columns.store
        self.columns = columns
        self.pricer = pricer
        self.options = options
        self.aim = aim
        self.answer: Answer = [[] for _ in self.store.bays]

    def run(self, order: Sequence[int], clock: Clock) -> Iterator[Answer]:
        """The answers that the way leads to. Bays are looked at in the given order."""
        while bins := self._free(order):
            found = self._solve(bins, clock)
            if found is None:
                return
            if not any(found.values()):  # nothing fits any more
                yield self.answer
                return
            self._keep(found)
            if sum((bins := self._free(order)).values()) <= _FEW:
                yield self._decided(bins, clock)

    def _free(self, order: Sequence[int]) -> dict[int, int]:
        """By bay, the bins that have no column yet."""
        free = {bay: len(self.store.bays[bay].slots) - sum(n for _, n in self.answer[bay]) for bay in order}
        return {bay: number for bay, number in free.items() if number}

    def _solve(self, bins: Mapping[int, int], clock: Clock) -> dict[int, list[tuple[Column, float]]] | None:
        """By bay, the columns with copies in the linear master, as good as new columns make it, or as need be."""
        bays, idle = cycle(bins), 0
        while not clock.over():
            offers = {bay: Offer(list(self.columns.of_bay[bay].values()), number) for bay, number in bins.items()}
            master = Master(self.store, offers, left_of(self.store, self.answer))
            found, cost = self._fractional(master, clock)
            if found is None:
                return None
            if cost <= self.aim.bound + _WHOLE or idle >= len(bins):
                return master.read(found.values) if cost <= self.aim.best() - 1 + _WHOLE else None
            prices = [abs(found.duals[row]) for row in master.rows_of_ways]
            for bay in islice(bays, -(-len(bins) // _TURNS)):
                idle = 0 if self._price(bay, prices, clock) else idle + 1
        return None

    def _fractional(self, master: Master, clock: Clock) -> tuple[Linear | None, float]:
        """The best copies with fractions allowed, and the cost of all bins with them."""
        cost, spent = master.missed_weight(), 0
        if self.aim.level:
            limit_cost(master.cp, cost, self.aim.missed)
            cost, spent = master.ranks(), costs_of(self.store, self.answer)[1]
        found = master.fractional(cost, clock.left())
        values = found.values if found else []
        return found, spent + sum(factor * values[variable.index] for variable, factor in cost if values)

    def _price(self, bay: int, prices: Sequence[float], clock: Clock) -> bool:
        """Add the best column of a bay. Whether it is better than those that there are."""
        column = self.pricer.best(bay, prices, clock.left())
        if column is None or not is_better(column, list(self.columns.of_bay[bay].values()), prices):
            return False
        return self.columns.offer(bay, column)

    def _keep(self, found: Mapping[int, Sequence[tuple[Column, float]]]) -> None:
        """Keep whole copies; or round up the largest part of one."""
        copies = [(bay, column, value) for bay, columns in found.items() for column, value in columns]
        whole = [(bay, column, number) for bay, column, value in copies if (number := floor(value + _WHOLE))]
        if not whole:
            bay, column, _ = max(copies, key=lambda copy: copy[2])
            whole = [(bay, column, 1)]
        for bay, column, number in whole:
            self.answer[bay] = [*self.answer[bay], (column, number)]

    def _decided(self, bins: Mapping[int, int], clock: Clock) -> Answer:
        """What the exact model makes of the bins that are left."""
        model = ExactModel(part_of(self.store, bins, left_of(self.store, self.answer)))
        model.miss_at_least(self.aim.missed if self.aim.level else self.aim.bound)
        outcome = minimise(model.cp, model.both(), self.options, Limit(clock.left(), _EFFORT))
        if outcome.interrupted:
            raise Interrupted
        answer = list(self.answer)
        if outcome.values is not None:
            filling = model.read(outcome.values)
            places = (bay for bay, number in bins.items() for _ in range(number))
            for bin_, bay in enumerate(places):
                column = Column(tuple(filling.counts[bin_].tolist()), filling, bin_)
                self.columns.offer(bay, column)
                answer[bay] = [*answer[bay], (column, 1)]
        return answer
