"""A component that is solved by bin packing, on its way through the tiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Final

from dralloc.objects.choices import Options
from dralloc.problem.solution import Placement
from dralloc.solve.optimum.classes.component import BestOfClasses
from dralloc.solve.optimum.component import is_proven
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.packing.construction import ConstructiveHeuristic, Targets
from dralloc.solve.optimum.packing.diving import DivingHeuristic, DivingTarget
from dralloc.solve.optimum.packing.exact import ExactModel, Pricer
from dralloc.solve.optimum.packing.expand import placements as expand
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.packing.models import Relaxation, guide
from dralloc.solve.optimum.packing.search import PackingSearch
from dralloc.solve.optimum.search import Watch, minimise
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = ["PackedComponent"]

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


class PackedComponent(BestOfClasses):
    """Demand classes that are packed, as `BestOfClasses`. Of the options the seed counts, and the jobs."""

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
            instance, tiers=tuple(tier.weights for tier in tiers if tier.weights)
        )
        self.instance = instance
        self.options = options
        self._targets: Targets = {}
        self._bin_count = sum(
            len(bin_type.instances) for bin_type in instance.bin_types
        )
        self._search = PackingSearch(instance, options)
        self._pricer = Pricer(instance, options)

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
            ConstructiveHeuristic(self.instance, guide(self.instance, shadow_prices)),
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
            self._relax(level, options, stop)
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
            relaxation.cp, relaxation.cost_after(self._costs[:level]), options, stop
        )
        self._raise_bound(level, outcome.bound)
        if outcome.values is not None:
            self._targets = relaxation.targets(outcome.values)

    def _search_on(
        self, level: int, stop: Stop, watch: Watch | None, *, patience: float
    ) -> None:
        """Look for better answers until one is proven to be the best, or so many rounds in a row found none."""
        rounds_in_vain = 0
        packings = self.options.thresholds.round_packings
        while rounds_in_vain < patience:
            costs_before = self._search.costs
            dives = self._bin_count <= _PRICED_BINS or rounds_in_vain > 0
            for _ in self._round(level, stop, packings, dives=dives):
                if self._learn_best() and watch:
                    watch(self.cost(level), self.bounds[level])
                if is_proven(self, level) or stop.reached():
                    return
            packings = min(2 * packings, _MOST_PACKINGS)
            if self._search.costs < costs_before:
                rounds_in_vain = 0
            else:
                rounds_in_vain += 1

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
        """Return how long the exact model may take: with many bins half of the rest, as more can be packed, too."""
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
        """Return how many decisions the exact model would have: each option in each bin."""
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
