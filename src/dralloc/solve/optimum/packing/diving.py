"""The diving heuristic: from the restricted master problem to an answer in integers.

With all columns that it could use, the restricted master problem decides nearly every bin. What it decides is kept; for
the other bins columns are priced again, with the demand that is left; and so on, until there are so few bins left that
the exact model can decide about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from math import floor
from typing import Final, NamedTuple

from dralloc.solve.optimum.linear import LinearSolution, solve_linear
from dralloc.solve.optimum.packing.columns import (
    Column,
    Columns,
    Costs,
    PackingSolution,
    free_bins,
    left_of,
    placed_of,
    spent_of,
)
from dralloc.solve.optimum.packing.exact import ExactModel
from dralloc.solve.optimum.packing.pricing import Pricer, is_better, restricted
from dralloc.solve.optimum.packing.restricted_master import RestrictedMaster
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["DivingHeuristic", "DivingTarget"]

_TURNS: Final = 8
"""The restricted master problem is solved so often until each bin type has been priced once."""

_EFFORT: Final = 0.3
"""So hard it may try. With fewer bins it is easier, but there may be nothing to be found any more."""

_WHOLE: Final = 1e-6
"""What a value may lack to be an integer, or a cost to be as good as another."""


class DivingTarget(NamedTuple):
    """The tier after those whose costs are fixed: what any answer costs in it, and what the best one so far costs."""

    fixed: Sequence[int]
    bound: int
    best: Callable[[], int]


class DivingHeuristic:
    """One dive, which ends early where it cannot lead to a better answer. New columns are added to all so far."""

    def __init__(self, columns: Columns, pricer: Pricer, target: DivingTarget) -> None:
        self.instance = columns.instance
        self.columns = columns
        self.pricer = pricer
        self.options = pricer.options
        self.target = target
        self.answer: PackingSolution = [[] for _ in self.instance.bin_types]

    def run(self, order: Sequence[int], stop: Stop) -> Iterator[PackingSolution]:
        """The answers that the dive leads to. Bin types are priced in the given order."""
        while bins := self._free(order):
            found = self._solve(bins, stop)
            if found is None:
                return
            if not any(found.values()):  # nothing fits any more
                yield self.answer
                return
            self._keep(found)
            if (
                sum((bins := self._free(order)).values())
                <= self.options.thresholds.exact_bins
            ):
                yield self._decided(bins, stop)

    def _free(self, order: Sequence[int]) -> dict[int, int]:
        """By bin type, the bins that have no column yet."""
        free = free_bins(self.instance, self.answer)
        return {bin_type: free[bin_type] for bin_type in order if free[bin_type]}

    def _solve(
        self, bins: Mapping[int, int], stop: Stop
    ) -> dict[int, list[tuple[Column, float]]] | None:
        """By column generation: the columns with copies of each bin type, when none is better or the cost is low."""
        bin_types, idle = cycle(bins), 0
        while not stop.reached():
            choices = {
                bin_type: list(self.columns.of_bin_type[bin_type].values())
                for bin_type in bins
            }
            master = RestrictedMaster(
                self.instance, choices, bins, left_of(self.instance, self.answer), stop
            )
            found, cost = self._fractional(master, stop)
            if found is None:
                return None
            if cost <= self.target.bound + _WHOLE or idle >= len(bins):
                return (
                    master.read(found.values)
                    if cost <= self.target.best() - 1 + _WHOLE
                    else None
                )
            prices = [abs(found.duals[row]) for row in master.rows_of_options]
            priced = list(islice(bin_types, -(-len(bins) // _TURNS)))
            for bin_type, column in zip(
                priced, self.pricer.best(priced, prices, stop), strict=True
            ):
                known = list(self.columns.of_bin_type[bin_type].values())
                is_new = (
                    column
                    and is_better(column, known, prices)
                    and self.columns.add_column(bin_type, column)
                )
                idle = 0 if is_new else idle + 1
        return None

    def _fractional(
        self, master: RestrictedMaster, stop: Stop
    ) -> tuple[LinearSolution | None, float]:
        """The best copies with fractions allowed, and the cost of all bins with them."""
        spent = self._spent()
        cost = master.cost_after(
            [most - each for most, each in zip(self.target.fixed, spent, strict=False)]
        )
        found = solve_linear(master.cp, cost, stop)
        values = found.values if found else []
        return found, spent[len(self.target.fixed)] + sum(
            factor * values[variable.index] for variable, factor in cost if values
        )

    def _spent(self) -> Costs:
        """By tier, what the options of the answer so far cost."""
        return spent_of(
            self.instance, self.answer, placed_of(self.instance, self.answer)
        )

    def _keep(self, found: Mapping[int, Sequence[tuple[Column, float]]]) -> None:
        """Fix what is integer; or round up the largest fraction."""
        copies = [
            (bin_type, column, value)
            for bin_type, columns in found.items()
            for column, value in columns
        ]
        whole = [
            (bin_type, column, number)
            for bin_type, column, value in copies
            if (number := floor(value + _WHOLE))
        ]
        if not whole:
            bin_type, column, _ = max(copies, key=lambda copy: copy[2])
            whole = [(bin_type, column, 1)]
        for bin_type, column, number in whole:
            self.answer[bin_type] = [*self.answer[bin_type], (column, number)]

    def _decided(self, bins: Mapping[int, int], stop: Stop) -> PackingSolution:
        """The answer with the bins that are left decided by the exact model."""
        model = ExactModel(
            restricted(self.instance, bins, left_of(self.instance, self.answer))
        )
        costs = (*self.target.fixed, self.target.bound)
        model.miss_at_least(
            [least - each for least, each in zip(costs, self._spent(), strict=False)]
        )
        outcome = minimise(
            model.cp, model.all_costs(), self.options, stop.limited(_EFFORT)
        )
        answer = list(self.answer)
        if outcome.values is not None:
            packing = model.read(outcome.values)
            places = (
                bin_type for bin_type, number in bins.items() for _ in range(number)
            )
            for bin_, bin_type in enumerate(places):
                column = Column.of(packing, bin_)
                self.columns.add_column(bin_type, column)
                answer[bin_type] = [*answer[bin_type], (column, 1)]
        return answer
