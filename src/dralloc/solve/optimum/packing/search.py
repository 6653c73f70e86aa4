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
    unserved_demand,
)
from dralloc.solve.optimum.packing.construction import (
    ConstructiveHeuristic,
    Packing,
    Targets,
)
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.packing.models import RestrictedMaster
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["PackingSearch"]

_NOISES: Final = (0.2, 0.1, 0.4, 0.0)
"""By how much packings differ, in turn."""

_FREED_BINS: Final = 60
"""So many bins are freed at once: the size of a neighbourhood."""

_CHOICE: Final = 60
"""So many columns of a bin type are enough to choose from."""

_TOLERANCE: Final = 1e-6
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
        self.constructed = 0

    def consider(self, answer: PackingSolution) -> bool:
        """Keep an answer if it is the best."""
        costs = costs_of(self.instance, answer)
        if costs >= self.costs:
            return False
        self.best = answer
        self.costs = costs
        return True

    def learn(self, packing: Packing) -> bool:
        """Add the columns of a packing, and consider it as a whole."""
        return self.consider(self.columns.add(packing))

    def construct(self, targets: Targets, stop: Stop) -> bool:
        """Construct one more packing. Raises as `combine`."""
        turn, number = divmod(self.constructed, len(self.heuristics))
        self.constructed += 1
        heuristic = self.heuristics[number]
        noise = _NOISES[turn % len(_NOISES)]
        packing = heuristic.construct(targets, self.random, noise, stop)
        return self.learn(packing)

    def construct_densely(self, stop: Stop) -> Iterator[bool]:
        """Construct packings that take the most weight per price first, whatever the relaxation places."""
        for heuristic in self.heuristics:
            packing = heuristic.construct_densely(self.random, stop)
            yield self.learn(packing)

    def combine(self, fixed: Sequence[int], stop: Stop) -> bool:
        """Solve the restricted master problem: with fractions, then in integers where there are any.

        What counts is the tier after those whose costs are fixed.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        answer: PackingSolution = [[] for _ in self.instance.bin_types]
        choices: dict[int, list[Column]] = {}
        for bin_type, columns in enumerate(self.columns.of_bin_type):
            if columns:
                choices[bin_type] = list(columns.values())
        bins = free_bins(self.instance, answer)
        master = RestrictedMaster(
            self.instance, choices, bins, self.instance.demand, stop
        )
        solution = solve_linear(master.cp, master.cost_after(fixed), stop)
        if solution is None:
            return False
        for bin_type, chosen in master.read(solution.values).items():
            for column, copies in chosen:
                whole_copies = floor(copies + _TOLERANCE)
                if whole_copies:
                    answer[bin_type].append((column, whole_copies))
        self._rank_columns(master, solution, stop)
        return self._complete(answer, stop)

    def polish(self, stop: Stop) -> bool:
        """Give some bins of the best answer new columns: a step of large-neighbourhood search. Raises as `combine`."""
        used_bins = []
        for bin_type, chosen in enumerate(self.best):
            in_use = sum(copies for _, copies in chosen)
            used_bins += [(bin_type, number) for number in range(in_use)]
        drawn = self.random.permutation(len(used_bins))[:_FREED_BINS].tolist()
        freed: dict[int, set[int]] = defaultdict(set)
        for index in drawn:
            bin_type, number = used_bins[index]
            freed[bin_type].add(number)
        answer = list(self.best)
        for bin_type, numbers in freed.items():
            answer[bin_type] = _without(self.best[bin_type], numbers)
        return self._complete(answer, stop)

    def _complete(self, partial: PackingSolution, stop: Stop) -> bool:
        """Choose columns for the bins that have none, for the demand that is not served."""
        bins = free_bins(self.instance, partial)
        choices: dict[int, list[Column]] = {}
        for bin_type, columns in enumerate(self.columns.of_bin_type):
            if columns and bins[bin_type]:
                choices[bin_type] = self._choice(bin_type)
        if not choices:
            return self.consider(partial)
        demand = unserved_demand(self.instance, partial)
        master = RestrictedMaster(self.instance, choices, bins, demand, stop)
        effort = 1.0 + sum(bins.values()) / 100
        outcome = minimise(
            master.cp, master.all_costs(), self.options, stop.limited(effort)
        )
        answer = list(partial)
        if outcome.values is not None:
            for bin_type, chosen in master.read(outcome.values).items():
                completed = [(column, int(copies)) for column, copies in chosen]
                answer[bin_type] = [*partial[bin_type], *completed]
        return self.consider(answer)

    def _choice(self, bin_type: int) -> list[Column]:
        """Return the columns of least reduced cost, and those of the best answer, each once."""
        columns = list(self.columns.of_bin_type[bin_type].values())[:_CHOICE]
        columns += [column for column, _ in self.best[bin_type]]
        distinct = {column.counts: column for column in columns}
        return list(distinct.values())

    def _rank_columns(
        self, master: RestrictedMaster, solution: LinearSolution, stop: Stop
    ) -> None:
        """Sort the columns of each bin type by reduced cost in the restricted master problem."""
        prices = np.abs([solution.duals[row] for row in master.rows_of_options])
        for columns in stop.each(self.columns.of_bin_type):
            items = list(columns.items())
            counts = np.array([column.counts for _, column in items], dtype=np.float64)
            worths = counts.reshape(len(items), len(prices)) @ prices
            order = np.argsort(-worths, kind="stable").tolist()
            columns.clear()
            columns.update(items[index] for index in order)


def _without(
    chosen: Sequence[tuple[Column, int]], numbers: set[int]
) -> list[tuple[Column, int]]:
    """Return the columns of a bin type's bins but for the bins with the given numbers."""
    remaining = []
    first = 0
    for column, copies in chosen:
        freed = sum(number in numbers for number in range(first, first + copies))
        first += copies
        if copies > freed:
            remaining.append((column, copies - freed))
    return remaining
