"""The search for good columns: fillings, the linear master, and integer masters over a few bins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import floor
from time import perf_counter
from typing import Final

import numpy as np

from dralloc.solvers.cpsat.interrupt import Interrupted, asked_to_stop
from dralloc.solvers.cpsat.linear import Linear
from dralloc.solvers.cpsat.options import Options
from dralloc.solvers.cpsat.packing.columns import Answer, Column, Columns, Costs, costs_of, left_of
from dralloc.solvers.cpsat.packing.filling import Filler, Filling, Targets
from dralloc.solvers.cpsat.packing.master import Master, Offer
from dralloc.solvers.cpsat.packing.store import Store
from dralloc.solvers.cpsat.search import Limit, limit_cost, minimise

__all__ = ["Clock", "Search"]

_NOISES: Final = (0.2, 0.1, 0.4, 0.0)
"""By how much fillings differ, in turn."""

_CELLS: Final = 60
"""So many bins are decided anew at once."""

_CHOICE: Final = 60
"""So many columns of a bay are enough to choose from."""

_WHOLE: Final = 1e-6
"""What a copy may lack to be a whole one."""


class Clock:
    """The time that is left."""

    def __init__(self, limit: float | None) -> None:
        self.end = None if limit is None else perf_counter() + limit

    def left(self) -> float | None:
        """Seconds; None for no limit."""
        return None if self.end is None else max(0.0, self.end - perf_counter())

    def over(self) -> bool:
        """Whether it has run out, or the search was asked to stop."""
        return asked_to_stop() or (self.end is not None and perf_counter() >= self.end)


class Search:
    """Looks for answers, as long as it is asked to.

    Parameters
    ----------
    store
        The store.
    fillers
        They make fillings, in turn.
    options
        The seed.
    """

    def __init__(self, store: Store, fillers: Sequence[Filler], options: Options) -> None:
        self.store = store
        self.fillers = fillers
        self.options = replace(options, time_limit=None)
        self.random = np.random.default_rng(options.seed)
        self.columns = Columns(store)
        self.best: Answer = [[] for _ in store.bays]
        self.costs: Costs = costs_of(store, self.best)
        self.number = 0

    def consider(self, answer: Answer) -> bool:
        """Keep an answer if it is the best."""
        costs = costs_of(self.store, answer)
        if costs < self.costs:
            self.best, self.costs = answer, costs
            return True
        return False

    def learn(self, filling: Filling) -> bool:
        """Add the columns of a filling, and consider it as a whole."""
        return self.consider(self.columns.add(filling))

    def fill(self, targets: Targets) -> bool:
        """One more filling."""
        turn, place = divmod(self.number, len(self.fillers))
        self.number += 1
        return self.learn(self.fillers[place].fill(targets, self.random, _NOISES[turn % len(_NOISES)]))

    def fill_densely(self) -> None:
        """Fillings that take the most weight per price first, whatever the relaxation places."""
        for filler in self.fillers:
            self.learn(filler.fill_densely(self.random))

    def combine(self, missed: int | None, clock: Clock) -> bool:
        """Put the columns together as well as possible: with fractions, then whole where there are any.

        If the weight that is missed at most is given, what counts is the second tier.
        """
        sizes = [len(bay.slots) for bay in self.store.bays]
        offers = {
            bay: Offer(list(columns.values()), sizes[bay]) for bay, columns in enumerate(self.columns.of_bay) if columns
        }
        master = Master(self.store, offers, left_of(self.store, []))
        cost = master.missed_weight()
        if missed is not None:
            limit_cost(master.cp, cost, missed)
            cost = master.ranks()
        found = master.fractional(cost, clock.left())
        if found is None:
            return False
        whole: Answer = [[] for _ in self.store.bays]
        for bay, columns in master.read(found.values).items():
            whole[bay] = [(column, number) for column, value in columns if (number := floor(value + _WHOLE))]
        self._rank_columns(master, found)
        return self._complete(whole, clock)

    def polish(self, clock: Clock) -> bool:
        """Decide some bins of the best answer anew."""
        used = [(bay, place) for bay, chosen in enumerate(self.best) for place in range(sum(n for _, n in chosen))]
        drawn = self.random.permutation(len(used))[:_CELLS].tolist()
        freed: dict[int, list[int]] = defaultdict(list)
        for bay, place in (used[each] for each in drawn):
            freed[bay].append(place)
        kept = list(self.best)
        for bay, places in freed.items():
            kept[bay] = _without(self.best[bay], set(places))
        return self._complete(kept, clock)

    def _complete(self, whole: Answer, clock: Clock) -> bool:
        """Choose columns for the bins that have none, for the demand that is left."""
        left = [len(bay.slots) - sum(n for _, n in chosen) for bay, chosen in zip(self.store.bays, whole, strict=True)]
        offers = {
            bay: Offer(self._choice(bay), left[bay])
            for bay, columns in enumerate(self.columns.of_bay)
            if columns and left[bay]
        }
        if not offers:
            return self.consider(whole)
        master = Master(self.store, offers, left_of(self.store, whole))
        outcome = minimise(master.cp, master.both(), self.options, Limit(clock.left(), 1.0 + sum(left) / 100))
        answer = list(whole)
        if outcome.values is not None:
            for bay, chosen in master.read(outcome.values).items():
                answer[bay] = [*whole[bay], *((column, int(number)) for column, number in chosen)]
        better = self.consider(answer)
        if outcome.interrupted:
            raise Interrupted
        return better

    def _choice(self, bay: int) -> list[Column]:
        """The columns that lose least, and those of the best answer."""
        columns = [*list(self.columns.of_bay[bay].values())[:_CHOICE], *(column for column, _ in self.best[bay])]
        return list({column.counts: column for column in columns}.values())

    def _rank_columns(self, master: Master, found: Linear) -> None:
        """Put the columns of a bay in the order of what they lose at the shadow prices of the linear master."""
        prices = np.abs([found.duals[row] for row in master.rows_of_ways])
        for columns in self.columns.of_bay:
            items = list(columns.items())
            counts = np.array([column.counts for _, column in items], dtype=np.float64).reshape(len(items), len(prices))
            order = np.argsort(-(counts @ prices), kind="stable").tolist()
            columns.clear()
            columns.update(items[place] for place in order)


def _without(chosen: Sequence[tuple[Column, int]], places: set[int]) -> list[tuple[Column, int]]:
    """The columns of a bay's bins but for those at the given places."""
    kept = []
    first = 0
    for column, number in chosen:
        rest = number - sum(place in places for place in range(first, first + number))
        first += number
        if rest:
            kept.append((column, rest))
    return kept
