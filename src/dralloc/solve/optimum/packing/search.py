"""The search for good answers: heuristic packings, the restricted master problem, and large-neighbourhood search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import floor
from typing import Final

import numpy as np

from dralloc.objects.choices import Options
from dralloc.solve.optimum.linear import LinearSolution, solve_linear
from dralloc.solve.optimum.packing.columns import (
    Column,
    Columns,
    Costs,
    PackingSolution,
    costs_of,
    free_bins,
    left_of,
)
from dralloc.solve.optimum.packing.construction import (
    ConstructiveHeuristic,
    Packing,
    Targets,
)
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.packing.restricted_master import RestrictedMaster
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["PackingSearch"]

_NOISES: Final = (0.2, 0.1, 0.4, 0.0)
"""By how much packings differ, in turn."""

_FREED: Final = 60
"""So many bins are freed at once: the size of a neighbourhood."""

_CHOICE: Final = 60
"""So many columns of a bin type are enough to choose from."""

_WHOLE: Final = 1e-6
"""What a value may lack to be an integer."""


class PackingSearch:
    """Looks for answers, as long as it is asked to, with constructive heuristics that take turns.

    Of the options the seed counts.
    """

    def __init__(self, instance: PackingInstance, options: Options) -> None:
        self.instance = instance
        self.heuristics: Sequence[ConstructiveHeuristic] = ()
        self.options = options
        self.random = np.random.default_rng(options.seed)
        self.columns = Columns(instance)
        self.best: PackingSolution = [[] for _ in instance.bin_types]
        self.costs: Costs = costs_of(instance, self.best)
        self.number = 0

    def consider(self, answer: PackingSolution) -> bool:
        """Keep an answer if it is the best."""
        costs = costs_of(self.instance, answer)
        if costs < self.costs:
            self.best, self.costs = answer, costs
            return True
        return False

    def learn(self, packing: Packing) -> bool:
        """Add the columns of a packing, and consider it as a whole."""
        return self.consider(self.columns.add(packing))

    def construct(self, targets: Targets, stop: Stop) -> bool:
        """Construct one more packing. Raises as `combine`."""
        turn, place = divmod(self.number, len(self.heuristics))
        self.number += 1
        noise = _NOISES[turn % len(_NOISES)]
        return self.learn(
            self.heuristics[place].construct(targets, self.random, noise, stop)
        )

    def construct_densely(self, stop: Stop) -> Iterator[bool]:
        """Construct packings that take the most weight per price first, whatever the relaxation places."""
        return (
            self.learn(heuristic.construct_densely(self.random, stop))
            for heuristic in self.heuristics
        )

    def combine(self, fixed: Sequence[int], stop: Stop) -> bool:
        """Solve the restricted master problem: with fractions, then in integers where there are any.

        What counts is the tier after those whose costs are fixed.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        whole: PackingSolution = [[] for _ in self.instance.bin_types]
        every = enumerate(self.columns.of_bin_type)
        choices = {
            bin_type: list(columns.values()) for bin_type, columns in every if columns
        }
        bins = free_bins(self.instance, whole)
        master = RestrictedMaster(
            self.instance, choices, bins, self.instance.demand, stop
        )
        found = solve_linear(master.cp, master.cost_after(fixed), stop)
        if found is None:
            return False
        for bin_type, columns in master.read(found.values).items():
            whole[bin_type] = [
                (column, number)
                for column, value in columns
                if (number := floor(value + _WHOLE))
            ]
        self._rank_columns(master, found, stop)
        return self._complete(whole, stop)

    def polish(self, stop: Stop) -> bool:
        """A step of large-neighbourhood search: some bins of the best answer get new columns. Raises as `combine`."""
        used = [
            (bin_type, place)
            for bin_type, chosen in enumerate(self.best)
            for place in range(sum(n for _, n in chosen))
        ]
        drawn = self.random.permutation(len(used))[:_FREED].tolist()
        freed: dict[int, list[int]] = defaultdict(list)
        for bin_type, place in (used[each] for each in drawn):
            freed[bin_type].append(place)
        kept = list(self.best)
        for bin_type, places in freed.items():
            kept[bin_type] = _without(self.best[bin_type], set(places))
        return self._complete(kept, stop)

    def _complete(self, whole: PackingSolution, stop: Stop) -> bool:
        """Choose columns for the bins that have none, for the demand that is left."""
        left = free_bins(self.instance, whole)
        every = enumerate(self.columns.of_bin_type)
        choices = {
            bin_type: self._choice(bin_type)
            for bin_type, columns in every
            if columns and left[bin_type]
        }
        if not choices:
            return self.consider(whole)
        master = RestrictedMaster(
            self.instance, choices, left, left_of(self.instance, whole), stop
        )
        outcome = minimise(
            master.cp,
            master.all_costs(),
            self.options,
            stop.limited(1.0 + sum(left.values()) / 100),
        )
        answer = list(whole)
        if outcome.values is not None:
            for bin_type, chosen in master.read(outcome.values).items():
                answer[bin_type] = [
                    *whole[bin_type],
                    *((column, int(number)) for column, number in chosen),
                ]
        return self.consider(answer)

    def _choice(self, bin_type: int) -> list[Column]:
        """The columns of least reduced cost, and those of the best answer."""
        columns = [
            *list(self.columns.of_bin_type[bin_type].values())[:_CHOICE],
            *(column for column, _ in self.best[bin_type]),
        ]
        return list({column.counts: column for column in columns}.values())

    def _rank_columns(
        self, master: RestrictedMaster, found: LinearSolution, stop: Stop
    ) -> None:
        """Sort the columns of each bin type by reduced cost in the restricted master problem."""
        prices = np.abs([found.duals[row] for row in master.rows_of_options])
        for columns in stop.each(self.columns.of_bin_type):
            items = list(columns.items())
            counts = np.array(
                [column.counts for _, column in items], dtype=np.float64
            ).reshape(len(items), len(prices))
            order = np.argsort(-(counts @ prices), kind="stable").tolist()
            columns.clear()
            columns.update(items[place] for place in order)


def _without(
    chosen: Sequence[tuple[Column, int]], places: set[int]
) -> list[tuple[Column, int]]:
    """The columns of a bin type's bins but for those at the given places."""
    kept = []
    first = 0
    for column, number in chosen:
        rest = number - sum(place in places for place in range(first, first + number))
        first += number
        if rest:
            kept.append((column, rest))
    return kept
