"""A component that is solved by bin packing, on its way through the tiers.

First the search for good answers; then the component, which decides when to stop: when answer and bound meet, or by the
exact model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import floor, inf
from typing import Final

import numpy as np

from dralloc.objects.choices import Options
from dralloc.problem.solution import Placement
from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.classes.component import BestOfClasses
from dralloc.solve.optimum.objective import DemandSubset, Objective
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
from dralloc.solve.optimum.packing.models import (
    ExactModel,
    Relaxation,
    RestrictedMaster,
    guide,
)
from dralloc.solve.optimum.packing.named_columns import placements as expand
from dralloc.solve.optimum.search import (
    LinearSolution,
    Watch,
    minimise,
    solve_linear,
)
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = ["PackedComponent"]

# ----------------------------------------------------------------------------
# The search for good answers: heuristic packings and the restricted master problem.

_NOISES: Final = (0.2, 0.1, 0.4, 0.0)
"""By how much packings differ, in turn."""

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

    def consider(self, answer: PackingSolution) -> None:
        """Keep an answer if it is the best."""
        costs = costs_of(self.instance, answer)
        if costs < self.costs:
            self.best = answer
            self.costs = costs

    def learn(self, packing: Packing) -> None:
        """Add the columns of a packing, and consider it as a whole."""
        self.consider(self.columns.add(packing))

    def construct(self, targets: Targets, stop: Stop) -> None:
        """Construct one more packing. Raises as `combine`."""
        turn, heuristic_index = divmod(self.constructed, len(self.heuristics))
        self.constructed += 1
        heuristic = self.heuristics[heuristic_index]
        noise = _NOISES[turn % len(_NOISES)]
        packing = heuristic.construct(targets, self.random, noise, stop)
        self.learn(packing)

    def combine(self, fixed: Sequence[int], stop: Stop) -> None:
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
            return
        for bin_type, chosen in master.read(solution.values).items():
            for column, copies in chosen:
                whole_copies = floor(copies + _TOLERANCE)
                if whole_copies:
                    answer[bin_type].append((column, whole_copies))
        self._rank_columns(master, solution, stop)
        self._complete(answer, stop)

    def _complete(self, partial: PackingSolution, stop: Stop) -> None:
        """Choose columns for the bins that have none, for the demand that is not served."""
        bins = free_bins(self.instance, partial)
        choices: dict[int, list[Column]] = {}
        for bin_type, columns in enumerate(self.columns.of_bin_type):
            if columns and bins[bin_type]:
                choices[bin_type] = self._choice(bin_type)
        if not choices:
            self.consider(partial)
            return
        demand = unserved_demand(self.instance, partial)
        master = RestrictedMaster(self.instance, choices, bins, demand, stop)
        effort = 1.0 + sum(bins.values()) / 100
        outcome = minimise(
            master.cp, master.all_costs(), self.options, stop.limited(effort)
        )
        # The partial answer is one by itself, also if nothing is found for the other bins.
        answer = list(partial)
        if outcome.values is not None:
            for bin_type, chosen in master.read(outcome.values).items():
                completed = [(column, int(copies)) for column, copies in chosen]
                answer[bin_type] = [*partial[bin_type], *completed]
        self.consider(answer)

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


# ----------------------------------------------------------------------------
# The component: rounds of search, and the exact model where they come to no end.

_ROUNDS: Final = 6
"""Without a better answer in so many rounds the search gives up."""

_FIRST_EFFORT: Final = 1.0
"""What the bound that guides the first packings may cost (see `Stop.effort`)."""

_MOST_PACKINGS: Final = 64
"""Packings of a round."""

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
            for _ in self._round(level, stop, packings):
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

    def _round(self, level: int, stop: Stop, packings: int) -> Iterator[None]:
        """Make packings, then solve the restricted master problem, with a pause after each."""
        for _ in range(packings):
            self._search.construct(self._targets, stop)
            yield
        self._search.combine(self._costs[:level], stop)
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
