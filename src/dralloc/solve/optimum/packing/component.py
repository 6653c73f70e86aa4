"""A component that is solved by bin packing, on its way through the tiers.

First the two ways to good answers, the search and the diving heuristic; then the component, which decides when to
stop: when answer and bound meet, or by the exact model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import cycle, islice
from math import ceil, floor, inf
from typing import Final, NamedTuple

import numpy as np

from dralloc.objects.choices import Options
from dralloc.problem.solution import Placement
from dralloc.solve.optimum.classes.component import BestOfClasses
from dralloc.solve.optimum.component import is_proven
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.packing.construction import (
    Column,
    Columns,
    ConstructiveHeuristic,
    Costs,
    Packing,
    PackingSolution,
    Targets,
    costs_of,
    free_bins,
    placed_of,
    spent_of,
    unserved_demand,
)
from dralloc.solve.optimum.packing.construction import placements as expand
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.packing.models import (
    ExactModel,
    Pricer,
    Relaxation,
    RestrictedMaster,
    guide,
    is_better,
    restricted,
)
from dralloc.solve.optimum.search import (
    LinearSolution,
    Watch,
    minimise,
    solve_linear,
)
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = ["DivingHeuristic", "DivingTarget", "PackedComponent"]

# ----------------------------------------------------------------------------
# The search for good answers: heuristic packings, the restricted master problem, and
# large-neighbourhood search.

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
            counts = np.array(
                [column.counts for _, column in items], dtype=np.float64
            )
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
        freed = sum(
            number in numbers for number in range(first, first + copies)
        )
        first += copies
        if copies > freed:
            remaining.append((column, copies - freed))
    return remaining


# ----------------------------------------------------------------------------
# The diving heuristic: from the restricted master problem to an answer in integers.
#
# With all columns that it could use, the restricted master problem decides nearly every
# bin. What it decides is fixed; for the other bins columns are priced again, with the
# demand that remains; and so on, until there are so few bins that the exact model can
# decide about them.

_TURNS: Final = 8
"""The restricted master problem is solved so often until each bin type has been priced once."""

_EXACT_EFFORT: Final = 0.3
"""So hard the exact model may try. With fewer bins it is easier, but there may be nothing to be found any more."""


FractionalColumns = dict[int, list[tuple[Column, float]]]
"""By bin type, columns with how many bins have them, which need not be whole."""


class DivingTarget(NamedTuple):
    """The tier after those whose costs are fixed: what any answer costs in it, and what the best one so far costs."""

    fixed: Sequence[int]
    bound: int
    best: Callable[[], int]


class DivingHeuristic:
    """A descent that ends early where it cannot lead to a better answer. New columns are added to all so far."""

    def __init__(
        self, columns: Columns, pricer: Pricer, target: DivingTarget
    ) -> None:
        self.instance = columns.instance
        self.columns = columns
        self.pricer = pricer
        self.options = pricer.options
        self.target = target
        self.answer: PackingSolution = [[] for _ in self.instance.bin_types]

    def run(
        self, order: Sequence[int], stop: Stop
    ) -> Iterator[PackingSolution]:
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
        return {
            bin_type: free[bin_type] for bin_type in order if free[bin_type]
        }

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
            choices = {
                bin_type: self._columns_of(bin_type) for bin_type in bins
            }
            demand = unserved_demand(self.instance, self.answer)
            master = RestrictedMaster(
                self.instance, choices, bins, demand, stop
            )
            solution, cost = self._solve_relaxed(master, stop)
            if solution is None:
                return None
            reached_bound = cost <= self.target.bound + _TOLERANCE
            if reached_bound or priced_in_vain >= len(bins):
                is_promising = cost <= self.target.best() - 1 + _TOLERANCE
                if is_promising:
                    return master.read(solution.values)
                return None
            prices = [
                abs(solution.duals[row]) for row in master.rows_of_options
            ]
            bin_types = list(islice(turns, bins_per_turn))
            best_columns = self.pricer.best(bin_types, prices, stop)
            for bin_type, column in zip(bin_types, best_columns, strict=True):
                if column is not None and self._add_if_better(
                    bin_type, column, prices
                ):
                    priced_in_vain = 0
                else:
                    priced_in_vain += 1
        return None

    def _columns_of(self, bin_type: int) -> list[Column]:
        return list(self.columns.of_bin_type[bin_type].values())

    def _add_if_better(
        self, bin_type: int, column: Column, prices: Sequence[float]
    ) -> bool:
        """Add a column of negative reduced cost. Whether it was one, and new."""
        if not is_better(column, self._columns_of(bin_type), prices):
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
                factor * solution.values[variable.index]
                for variable, factor in terms
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
            self.answer[bin_type] = [
                *self.answer[bin_type],
                (column, whole_copies),
            ]

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
            model.cp,
            model.all_costs(),
            self.options,
            stop.limited(_EXACT_EFFORT),
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


# ----------------------------------------------------------------------------
# The component: rounds of search, and the exact model where they come to no end.

_ROUNDS: Final = 6
"""Without a better answer in so many rounds the search gives up."""

_FIRST_EFFORT: Final = 1.0
"""What the bound that guides the first packings may cost (see `Stop.effort`)."""

_MOST_PACKINGS: Final = 64
"""Packings of a round."""

_POLISHING_STEPS: Final = 4
"""Steps of large-neighbourhood search in a round."""

_PRICED_BINS: Final = 512
"""With more bins, pricing columns for them takes longer than it is worth, unless nothing else helps."""

_EXACT_BINS: Final = 64
"""Up to so many bins the exact model has all the rest of a time limit: it is likely to come to an end."""

_MOST_DECISIONS: Final = 250_000
"""With more decisions the exact model takes gigabytes of memory: a limited time is better spent on packings."""

_RELAXING: Final = 0.25
"""The part of the time that a tier's bound may take: where its last units take that long, no answer comes close."""

_SOON: Final = 0.1
"""After this part of its time it shows whether packing leads anywhere."""

_FAR: Final = 100
"""If more than one in so many of what is placed is missing by then, others may know a better answer sooner."""

TakeStarts = Callable[[Stop], None]
"""Looks for answers in another way, until it is time to stop, and has a component consider them."""


class PackedComponent(BestOfClasses):
    """Demand classes that are packed, as `BestOfClasses`. Of the options the seed counts, and the jobs.

    Attributes
    ----------
    take_starts
        Asked once, if the bound is still far after a part of the time; None if there is nobody to ask.
    """

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        instance: PackingInstance,
        placements: Sequence[Placement],
        options: Options,
    ) -> None:
        super().__init__(subset, tiers, instance.classes, placements)
        instance = replace(
            instance,
            tiers=tuple(tier.weights for tier in tiers if tier.weights),
        )
        self.instance = instance
        self.options = options
        self._targets: Targets = {}
        self._bin_count = sum(
            len(bin_type.instances) for bin_type in instance.bin_types
        )
        self._search = PackingSearch(instance, options)
        self._pricer = Pricer(instance, options)
        self.take_starts: TakeStarts | None = None

    def begin(self, stop: Stop) -> None:
        """Find the answer that is there in no time: the best of few heuristic packings."""
        with suppress(Stopped):
            for _ in self._first_steps(stop):
                self._learn_best()
                stop.check()

    def _first_steps(self, stop: Stop) -> Iterator[None]:
        """Bound the first tier, and take the first steps of the search, with a pause after each."""
        self._relax(0, self.options, stop.limited(_FIRST_EFFORT))
        shadow_prices = Relaxation(self.instance).prices(stop)
        # One heuristic knows only sizes, the other what is scarce, too; they take turns.
        self._search.heuristics = [
            ConstructiveHeuristic(self.instance, guide(self.instance, {})),
            ConstructiveHeuristic(
                self.instance, guide(self.instance, shadow_prices)
            ),
        ]
        if not self._targets:
            for _ in self._search.construct_densely(stop):
                yield
        for _ in range(self.options.thresholds.packings):
            self._search.construct(self._targets, stop)
            yield
        self._search.combine((), stop)
        yield

    def improve(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Solve a tier with the tiers before it, which must be proven, fixed."""
        with suppress(Stopped):
            relaxing = stop.within(_RELAXING * stop.seconds())
            self._relax(level, options, relaxing)
            if watch:
                watch(self.cost(level), self.bounds[level])
            self._search_on(level, stop, watch, patience=_ROUNDS)
            # A limit that is not reached must change no proof, so the exact model is asked within a limit, too.
            self._prove(level, options, self._share_of_proof(stop), watch)
            if stop.seconds() < inf:
                self._search_on(level, stop, watch, patience=inf)
        self._learn_best()

    def _relax(self, level: int, options: Options, stop: Stop) -> None:
        """Bound the tier, and find out how often each option should be served."""
        relaxation = Relaxation(self.instance)
        outcome = minimise(
            relaxation.cp,
            relaxation.cost_after(self._costs[:level]),
            options,
            stop,
        )
        self._raise_bound(level, outcome.bound)
        if outcome.values is not None:
            self._targets = relaxation.targets(outcome.values)

    def _search_on(
        self, level: int, stop: Stop, watch: Watch | None, *, patience: float
    ) -> None:
        """Look for better answers until one is proven to be the best, or so many rounds in a row found none."""
        rounds_in_vain = 0
        soon = stop.within(_SOON * stop.seconds())
        packings = self.options.thresholds.round_packings
        while rounds_in_vain < patience:
            costs_before = self._search.costs
            dives = self._bin_count <= _PRICED_BINS or rounds_in_vain > 0
            for _ in self._round(level, stop, packings, dives=dives):
                if self._learn_best() and watch:
                    watch(self.cost(level), self.bounds[level])
                if is_proven(self, level) or stop.reached():
                    return
                if soon.reached() and self._is_far_from_bound(level):
                    self._ask_for_starts(stop)
            packings = min(2 * packings, _MOST_PACKINGS)
            if self._search.costs < costs_before:
                rounds_in_vain = 0
            else:
                rounds_in_vain += 1

    def _is_far_from_bound(self, level: int) -> bool:
        """Whether much of a tier's weight is neither placed nor known to be impossible."""
        weights = self.tiers[level].weights
        if not weights:
            return False
        placed = self.subset.weight(weights) - self.cost(level)
        return _FAR * (self.cost(level) - self.bounds[level]) > placed

    def _ask_for_starts(self, stop: Stop) -> None:
        """Have others look for answers, once: where units of one kind differ a lot, packing them is slow."""
        if self.take_starts is not None:
            take_starts, self.take_starts = self.take_starts, None
            take_starts(stop)

    def _round(
        self, level: int, stop: Stop, packings: int, *, dives: bool
    ) -> Iterator[None]:
        """Take the steps of a round, with a pause after each.

        First packings, then the restricted master problem, then the diving heuristic or large-neighbourhood search.
        """
        search = self._search
        for _ in range(packings):
            search.construct(self._targets, stop)
            yield
        search.combine(self._costs[:level], stop)
        yield
        if not dives:
            for _ in range(_POLISHING_STEPS):
                search.polish(stop)
                yield
            return
        target = DivingTarget(
            self._costs[:level], self.bounds[level], lambda: self.cost(level)
        )
        heuristic = DivingHeuristic(search.columns, self._pricer, target)
        order = search.random.permutation(len(self.instance.bin_types)).tolist()
        for answer in heuristic.run(order, stop):
            search.consider(answer)
            yield

    def _share_of_proof(self, stop: Stop) -> Stop:
        """Return the exact model's share of the time: with many bins half of the rest, as more can be packed then."""
        if self._bin_count <= _EXACT_BINS:
            return stop
        return stop.within(stop.seconds() / 2)

    def _prove(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Let the exact model decide, unless that is known already or the model would be too large for the time."""
        if is_proven(self, level) or stop.reached():
            return
        has_time_limit = stop.seconds() < inf
        if has_time_limit and self._decision_count() > _MOST_DECISIONS:
            return
        model = ExactModel(self.instance, stop)
        model.hint(self._search.best)
        cost = model.cost_after(self._costs[:level])
        outcome = minimise(model.cp, cost, options, stop, watch)
        self._raise_bound(level, outcome.bound)
        if outcome.values is not None:
            self._search.learn(model.read(outcome.values))
            self._learn_best()

    def _decision_count(self) -> int:
        """Return the number of decisions of the exact model: each option in each bin."""
        count = 0
        for bin_type in self.instance.bin_types:
            options = list(self.instance.options_of(bin_type.area))
            count += len(bin_type.instances) * len(options)
        return count

    def _learn_best(self) -> bool:
        """Keep the best answer of the search if it is better than what was known."""
        answer = self._search.best
        return self._learn(
            self._search.costs,
            lambda: expand(self.subset.problem, self.instance, answer),
        )
