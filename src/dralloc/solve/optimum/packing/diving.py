"""The diving heuristic: from the restricted master problem to an answer in integers.

With all columns that it could use, the restricted master problem decides nearly every bin. What it decides is fixed;
for the other bins columns are priced again, with the demand that remains; and so on, until there are so few bins that
the exact model can decide about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from math import ceil, floor
from typing import Final, NamedTuple

from dralloc.solve.optimum.linear import LinearSolution, solve_linear
from dralloc.solve.optimum.packing.columns import (
    Column,
    Columns,
    Costs,
    PackingSolution,
    free_bins,
    placed_of,
    spent_of,
    unserved_demand,
)
from dralloc.solve.optimum.packing.exact import (
    ExactModel,
    Pricer,
    is_better,
    restricted,
)
from dralloc.solve.optimum.packing.models import RestrictedMaster
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["DivingHeuristic", "DivingTarget"]

_TURNS: Final = 8
"""The restricted master problem is solved so often until each bin type has been priced once."""

_EXACT_EFFORT: Final = 0.3
"""So hard the exact model may try. With fewer bins it is easier, but there may be nothing to be found any more."""

_TOLERANCE: Final = 1e-6
"""What a value may lack to be an integer, or a cost to be as good as another."""

FractionalColumns = dict[int, list[tuple[Column, float]]]
"""By bin type, columns with how many bins have them, which need not be whole."""


class DivingTarget(NamedTuple):
    """The tier after those whose costs are fixed: what any answer costs in it, and what the best one so far costs."""

    fixed: Sequence[int]
    bound: int
    best: Callable[[], int]


class DivingHeuristic:
    """One descent, which ends early where it cannot lead to a better answer. New columns are added to all so far."""

    def __init__(self, columns: Columns, pricer: Pricer, target: DivingTarget) -> None:
        self.instance = columns.instance
        self.columns = columns
        self.pricer = pricer
        self.options = pricer.options
        self.target = target
        self.answer: PackingSolution = [[] for _ in self.instance.bin_types]

    def run(self, order: Sequence[int], stop: Stop) -> Iterator[PackingSolution]:
        """Yield the answers that the descent leads to. Bin types are priced in the given order."""
        few_bins = self.options.thresholds.exact_bins
        while bins := self._free(order):
            chosen = self._generate_columns(bins, stop)
            if chosen is None:
                return
            nothing_fits = not any(chosen.values())
            if nothing_fits:
                yield self.answer
                return
            self._fix(chosen)
            undecided = self._free(order)
            if sum(undecided.values()) <= few_bins:
                yield self._decided(undecided, stop)

    def _free(self, order: Sequence[int]) -> dict[int, int]:
        """Return by bin type the number of bins that have no column yet."""
        free = free_bins(self.instance, self.answer)
        return {bin_type: free[bin_type] for bin_type in order if free[bin_type]}

    def _generate_columns(
        self, bins: Mapping[int, int], stop: Stop
    ) -> FractionalColumns | None:
        """Solve the master problem of the free bins by column generation.

        Returns
        -------
        The columns with copies, as soon as no column is better or the cost has reached the bound; None if they cannot
        lead to a better answer, or the time is over.
        """
        turns = cycle(bins)
        bins_per_turn = ceil(len(bins) / _TURNS)
        priced_in_vain = 0
        while not stop.reached():
            choices = {bin_type: self._known(bin_type) for bin_type in bins}
            demand = unserved_demand(self.instance, self.answer)
            master = RestrictedMaster(self.instance, choices, bins, demand, stop)
            solution, cost = self._solve_relaxed(master, stop)
            if solution is None:
                return None
            reached_bound = cost <= self.target.bound + _TOLERANCE
            if reached_bound or priced_in_vain >= len(bins):
                is_promising = cost <= self.target.best() - 1 + _TOLERANCE
                return master.read(solution.values) if is_promising else None
            prices = [abs(solution.duals[row]) for row in master.rows_of_options]
            bin_types = list(islice(turns, bins_per_turn))
            best_columns = self.pricer.best(bin_types, prices, stop)
            for bin_type, column in zip(bin_types, best_columns, strict=True):
                if column is not None and self._add_if_better(bin_type, column, prices):
                    priced_in_vain = 0
                else:
                    priced_in_vain += 1
        return None

    def _known(self, bin_type: int) -> list[Column]:
        return list(self.columns.of_bin_type[bin_type].values())

    def _add_if_better(
        self, bin_type: int, column: Column, prices: Sequence[float]
    ) -> bool:
        """Add a column of negative reduced cost. Whether it was one, and new."""
        if not is_better(column, self._known(bin_type), prices):
            return False
        return self.columns.add_column(bin_type, column)

    def _solve_relaxed(
        self, master: RestrictedMaster, stop: Stop
    ) -> tuple[LinearSolution | None, float]:
        """Return the best copies with fractions allowed, and the cost of all bins with them."""
        spent = self._spent()
        allowances = []
        for cost, spent_already in zip(self.target.fixed, spent, strict=False):
            allowances.append(cost - spent_already)
        terms = master.cost_after(allowances)
        total: float = spent[len(self.target.fixed)]
        solution = solve_linear(master.cp, terms, stop)
        if solution is not None:
            total += sum(
                factor * solution.values[variable.index] for variable, factor in terms
            )
        return solution, total

    def _spent(self) -> Costs:
        """Return by tier what the options of the answer so far cost."""
        placed = placed_of(self.instance, self.answer)
        return spent_of(self.instance, self.answer, placed)

    def _fix(self, chosen: FractionalColumns) -> None:
        """Fix the columns that have whole copies; if there are none, round up the largest fraction."""
        fractional = [
            (bin_type, column, copies)
            for bin_type, columns in chosen.items()
            for column, copies in columns
        ]
        fixed = []
        for bin_type, column, copies in fractional:
            whole_copies = floor(copies + _TOLERANCE)
            if whole_copies:
                fixed.append((bin_type, column, whole_copies))
        if not fixed:
            bin_type, column, _ = max(fractional, key=lambda choice: choice[2])
            fixed = [(bin_type, column, 1)]
        for bin_type, column, whole_copies in fixed:
            self.answer[bin_type] = [*self.answer[bin_type], (column, whole_copies)]

    def _decided(self, bins: Mapping[int, int], stop: Stop) -> PackingSolution:
        """Return the answer with the undecided bins decided by the exact model."""
        demand = unserved_demand(self.instance, self.answer)
        model = ExactModel(restricted(self.instance, bins, demand))
        least_costs = []
        for cost, spent in zip(
            (*self.target.fixed, self.target.bound), self._spent(), strict=False
        ):
            least_costs.append(cost - spent)
        model.miss_at_least(least_costs)
        outcome = minimise(
            model.cp, model.all_costs(), self.options, stop.limited(_EXACT_EFFORT)
        )
        answer = list(self.answer)
        if outcome.values is None:
            return answer
        packing = model.read(outcome.values)
        bin_types: list[int] = []
        for bin_type, count in bins.items():
            bin_types += [bin_type] * count
        for bin_number, bin_type in enumerate(bin_types):
            column = Column.of(packing, bin_number)
            self.columns.add_column(bin_type, column)
            answer[bin_type] = [*answer[bin_type], (column, 1)]
        return answer
