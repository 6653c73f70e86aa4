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
from dralloc.solve.optimum.packing.exact import ExactModel
from dralloc.solve.optimum.packing.expand import placements as expand
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.packing.models import Relaxation, guide
from dralloc.solve.optimum.packing.pricing import Pricer
from dralloc.solve.optimum.packing.search import PackingSearch
from dralloc.solve.optimum.search import Watch, minimise
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = ["PackedComponent"]

_ROUNDS: Final = 6
"""Without a better answer in so many rounds the search gives up."""

_BEGIN: Final = 1.0
"""What the bound that guides the first packings may cost (see `Stop.effort`)."""

_MOST: Final = 64
"""Packings of a round."""

_POLISHED: Final = 4
"""Steps of large-neighbourhood search in a round."""

_MANY: Final = 512
"""With more bins, pricing columns for them takes longer than it is worth, unless nothing else helps."""

_SMALL: Final = 64
"""Up to so many bins the exact model has all the rest of a time limit: it is likely to come to an end."""

_WORTH_TRYING: Final = 250_000
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
        self._bins = sum(len(bin_type.instances) for bin_type in instance.bin_types)
        self._search = PackingSearch(instance, options)
        self._pricer = Pricer(instance, options)

    def begin(self, stop: Stop) -> None:
        """Find the answer that is there in no time: the best of few heuristic packings."""
        with suppress(Stopped):
            for _ in self._beginnings(stop):
                self._learn_best()
                stop.check()

    def _beginnings(self, stop: Stop) -> Iterator[bool]:
        self._relax(0, self.options, stop.limited(_BEGIN))
        shadow = Relaxation(self.instance).prices(stop)
        guides = (guide(self.instance, prices) for prices in ({}, shadow))
        self._search.heuristics = [
            ConstructiveHeuristic(self.instance, prices) for prices in guides
        ]
        if not self._targets:
            yield from self._search.construct_densely(stop)
        for _ in range(self.options.thresholds.packings):
            yield self._search.construct(self._targets, stop)
        yield self._search.combine((), stop)

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
        for _ in self._rounds(level, stop, patience):
            if self._learn_best() and watch:
                watch(self.cost(level), self.bounds[level])
            if is_proven(self, level) or stop.reached():
                break

    def _rounds(self, level: int, stop: Stop, patience: float) -> Iterator[bool]:
        """Whether each step found a better answer."""
        in_vain, packings = 0, self.options.thresholds.round_packings
        while in_vain < patience:
            better = False
            dives = self._bins <= _MANY or in_vain > 0
            for step in self._steps(level, stop, packings, dives=dives):
                better |= step
                yield step
            packings = min(2 * packings, _MOST)
            in_vain = 0 if better else in_vain + 1

    def _steps(
        self, level: int, stop: Stop, packings: int, *, dives: bool
    ) -> Iterator[bool]:
        """A round: packings, the restricted master problem, and the diving heuristic or large-neighbourhood search."""
        for _ in range(packings):
            yield self._search.construct(self._targets, stop)
        yield self._search.combine(self._costs[:level], stop)
        if not dives:
            for _ in range(_POLISHED):
                yield self._search.polish(stop)
            return
        target = DivingTarget(
            self._costs[:level], self.bounds[level], lambda: self.cost(level)
        )
        heuristic = DivingHeuristic(self._search.columns, self._pricer, target)
        order = self._search.random.permutation(len(self.instance.bin_types)).tolist()
        yield from map(self._search.consider, heuristic.run(order, stop))

    def _share_of_proof(self, stop: Stop) -> Stop:
        """How long the exact model may take: with many bins half of the rest, as better packings may be found, too."""
        return stop if self._bins <= _SMALL else stop.within(stop.seconds() / 2)

    def _prove(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Let the exact model decide, unless that is known already or the model would be too large for the time."""
        if (
            is_proven(self, level)
            or stop.reached()
            or (stop.seconds() < inf and self._decisions() > _WORTH_TRYING)
        ):
            return
        model = ExactModel(self.instance, stop)
        model.hint(self._search.best)
        cost = model.cost_after(self._costs[:level])
        outcome = minimise(model.cp, cost, options, stop, watch)
        self._raise_bound(level, outcome.bound)
        if outcome.values is not None:
            self._search.learn(model.read(outcome.values))
            self._learn_best()

    def _decisions(self) -> int:
        """How many decisions the exact model would have: each option in each bin."""
        types = self.instance.bin_types
        return sum(
            len(bin_type.instances) * len(list(self.instance.options_of(bin_type.area)))
            for bin_type in types
        )

    def _learn_best(self) -> bool:
        """Keep the best answer of the search if it is better than what was known."""
        answer = self._search.best
        return self._learn(
            self._search.costs,
            lambda: expand(self.subset.problem, self.instance, answer),
        )
