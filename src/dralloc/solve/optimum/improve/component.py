"""Demands that are too many or too mixed for one model: a bound, a search, and the exact model at last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import inf
from typing import Final, Protocol

from dralloc.objects.choices import Options
from dralloc.objects.errors import AllocationError
from dralloc.problem import Problem
from dralloc.problem.indices import DemandIndex
from dralloc.problem.solution import Appraisal, LevelPrices, Placement
from dralloc.solve.optimum.candidates import CandidateSite
from dralloc.solve.optimum.component import Component, is_proven
from dralloc.solve.optimum.improve.search import NeighbourhoodSearch
from dralloc.solve.optimum.objective import (
    ALTERNATIVES,
    DemandSubset,
    Objective,
)
from dralloc.solve.optimum.relax import Bound, RelaxationLadder
from dralloc.solve.optimum.relax.prices import LexicographicLevel
from dralloc.solve.optimum.search import Watch
from dralloc.solve.optimum.stopping import Cancelled, Stop, Stopped

__all__ = [
    "FindSites",
    "SearchedComponent",
    "climbing_on",
    "relaxation_stop",
]

_SMALL: Final = 16_000
"""Up to so many candidates, the exact model may decide in no time."""

_TINY: Final = 2_000
"""Up to so many candidates, the exact model is as fast as any other search."""

_FIRST_EFFORT: Final = 1.0
"""What it may take for that (see `Stop.effort`)."""

_FIRST_PART: Final = 0.25
"""The part of the time that it may take for that, however slow the machine is."""

_GLANCE: Final = 0.1
"""What it may take for that if it is solved again beside the search: until then another processor has nothing to do."""

_RELAXING: Final = 0.2
"""The part of the time that the ladder of relaxations may take before there is a good answer."""

_RELAXING_SECONDS: Final = 4.0
_RELAXING_IN_SHORT: Final = 0.25
"""It may always take so many seconds, up to this part of the time: the search goes by its prices."""

_WORTHWHILE: Final = 0.005
"""While processors are needed for the search, rungs are climbed that are likely to bring so much, as a part of all
demands."""

_LOOKING_CLOSER: Final = 0.15
"""The part of the time that closer bounds of lower priorities may take, or one of the ranks of alternatives."""

_ENDING_SECONDS: Final = 0.1
"""Seconds that a search takes to end."""

_RELAXING_AT_LAST: Final = 0.6
"""The part of the time that is left when nothing helps the search any more; the bound may still become better."""


def _a_part_of(stop: Stop) -> Stop:
    """Return when to stop with a closer look at bounds."""
    return stop.within(_LOOKING_CLOSER * stop.seconds())


def relaxation_stop(stop: Stop) -> Stop:
    """Return when the ladder of relaxations has to make way for the search for answers."""
    seconds = stop.seconds()
    in_short = min(_RELAXING_SECONDS, _RELAXING_IN_SHORT * seconds)
    return stop.within(max(_RELAXING * seconds, in_short))


@contextmanager
def climbing_on(
    components: Sequence[SearchedComponent], stop: Stop
) -> Iterator[None]:
    """Climb on while answers are searched for in other processes; what is proven by the end of the block counts.

    Meanwhile this process has nothing to do, and what a linear program takes of a processor is much less than what it
    takes of the time.
    """
    ending = Cancelled(lambda: bool(stop.cancelled))
    until = replace(stop, cancelled=ending)
    proven: list[tuple[SearchedComponent, Bound]] = []

    def climb() -> None:
        for component in components:
            proven.extend(
                (component, bound)
                for bound in component.bounds_meanwhile(until, _WORTHWHILE)
            )

    with ThreadPoolExecutor(max_workers=1) as threads:
        climbing = threads.submit(climb)
        try:
            yield
        finally:
            ending.cancel()
            wait([climbing])
    climbing.result()
    for component, bound in proven:
        component.take_over(bound)
    for component in components:
        component.appraise(stop)


TakeStarts = Callable[[Stop, int], None]
"""Looks for answers in another way, until it is time to stop, with so many jobs, and has components consider them."""


class FindSites(Protocol):
    """Works out where the demands of a component could go, if that is not known yet."""

    def __call__(
        self, demands: Sequence[DemandIndex], stop: Stop
    ) -> Mapping[DemandIndex, tuple[CandidateSite, ...]]:
        """Raises `Stopped` if there is no time for it, or if there are too many candidates for a model."""


class SearchedComponent(Component):
    """Demands that large-neighbourhood search places, as `Component`.

    Parameters
    ----------
    find_sites
        For the exact model, if the subset has no sites.

    Attributes
    ----------
    failures
        Selectors that failed on a device, which was left out.
    appraisal
        What demands and nodes are worth at the prices of the relaxation; None before `climb`.
    take_starts
        Asked once, before the search; None if there is nobody to ask.
    """

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        placements: Sequence[Placement],
        find_sites: FindSites,
    ) -> None:
        self._relaxed: Bound | None = None
        super().__init__(subset, tiers, placements)
        self._ladder: RelaxationLadder | None = None
        self.appraisal: Appraisal | None = None
        self._find_sites = find_sites
        self.size = max(self.size, len(subset.demands))
        self.failures: tuple[AllocationError, ...] = ()
        self.take_starts: TakeStarts | None = None

    @property
    def is_large(self) -> bool:
        """Whether the exact model is not likely to decide it in no time."""
        return not self.subset.sites or self.size > _SMALL

    @property
    def needs_start(self) -> bool:
        """Whether the exact model takes so long that a good answer to start from comes sooner."""
        return not self.subset.sites or self.size > _TINY

    @property
    def relaxation(self) -> str:
        """What was left out for the bound; empty if there is none by a relaxation."""
        return self._relaxed.why if self._relaxed else ""

    @property
    def prices(self) -> Sequence[LevelPrices]:
        """What proved the bound."""
        return self._relaxed.prices if self._relaxed else ()

    def limits(self) -> Mapping[int, int]:
        """Return how many demands the optimum places at most, by weight, of weights that are a level alone."""
        if not self._relaxed:
            return {}
        level_limits = self._relaxed.most_of_optimum(
            *self._known_of(self._relaxed.levels)
        )
        return {
            level.unit: units
            for level, units in zip(
                self._relaxed.levels, level_limits, strict=True
            )
            if level.lowest == level.highest
        }

    def most_with_weight(self) -> int:
        """Return how many demands with a weight the optimum places at most, if each level has one weight."""
        if not self._relaxed:
            return len(self.subset.demands)
        return self._relaxed.most_together(
            *self._known_of(self._relaxed.levels)
        )

    def _known_of(
        self, levels: Sequence[LexicographicLevel]
    ) -> tuple[list[int], list[int]]:
        """Return what the answer has of each level, and what the bounds of the tiers leave for it, in units.

        The most that is possible of a tier says of each of its levels how much of it there can be where those before
        have all that they can have.
        """
        problem = self.subset.problem
        weights = [
            problem.demands[placement.demand].weight
            for placement in self.placements
        ]
        reached = [sum(map(level.of, weights)) for level in levels]
        possible = {
            tier.weights: self.subset.weight(tier.weights) - bound
            for tier, bound in zip(self.tiers, self.bounds, strict=True)
            if tier.weights
        }
        best = []
        for level in levels:
            units = level.total
            for tier, most in possible.items():
                if tier.of(level.lowest) and tier.of(level.highest):
                    units, rest = divmod(most, level.unit // tier.unit)
                    possible[tier] = rest
            best.append(min(level.total, units))
        return reached, best

    def improve(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Solve a tier with the tiers before it, which must be proven, fixed; later ones are improved with it.

        Relax, improve, prove: a bound that leaves couplings out, better answers by small changes and by neighbourhoods,
        and the exact model for what is still apart; the last two side by side, where that is a matter of the clock
        anyway. Before all of it a look at the exact model, which decides what is easy; at last a closer look at bounds,
        now that there is a good answer.
        """
        # Who of two is first to prove something depends on the machine; without a limit, or with steps, nothing may.
        has_company = (
            not self.is_large
            and options.jobs > 1
            and options.steps is None
            and stop.seconds() < inf
        )
        with suppress(Stopped):
            if not (self.is_large or self._was_looked_at(level)):
                effort = _GLANCE if has_company else _FIRST_EFFORT
                first = stop.within(_FIRST_PART * stop.seconds())
                # There is time for the rest even if there is too little for this.
                with suppress(Stopped):
                    self._improve(level, options, first.limited(effort), watch)
            if not is_proven(self, level):
                self.climb(relaxation_stop(stop))
                self._bound_ranks(level, stop)
            if is_proven(self, level):
                return
            until = self._before_looking_closer(stop)
            with suppress(Stopped):
                if has_company:
                    self._search_and_prove(level, options, until, watch)
                else:
                    self._look_for_starts(until, options.jobs)
                    self._search([level], options, until, watch)
                self._prove_at_last(level, options, until, watch)
            if until is not stop and self._relaxed and not stop.reached():
                self.take_over(self._closer_bound(self._relaxed, stop))
                if until.reached():
                    # Whoever shares out the time is to see that it was not enough.
                    self._prove_at_last(level, options, stop, watch)

    def _bound_ranks(self, level: int, stop: Stop) -> None:
        """Bound the ranks of alternatives, now that it is proven how much of each weight is placed."""
        if self.tiers[level].name != ALTERNATIVES or self._ladder is None:
            return
        levels = self._ladder.levels
        # Where a level has several weights, as much of it can be other demands, and those below may be other ones, too.
        if all(weights.lowest == weights.highest for weights in levels):
            self._ladder.allow(_a_part_of(stop))
            placed, _ = self._known_of(levels)
            with suppress(Stopped):
                self._learn(level, self._ladder.least_ranks(placed), None)

    def _prove_at_last(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Go on with bounds, and with the exact model, when the search helps no more."""
        if not is_proven(self, level):
            self.climb(stop.within(_RELAXING_AT_LAST * stop.seconds()))
        if not is_proven(self, level) and options.steps is None:
            if not self.subset.sites:
                self.subset = replace(
                    self.subset,
                    sites=self._find_sites(self.subset.demands, stop),
                )
            self._improve(level, options, stop, watch)

    def _was_looked_at(self, level: int) -> bool:
        """Whether the exact model has been solved for the tier: with a little more time it gets no further."""
        return self._model is not None and self._fixed == level

    def _search_and_prove(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Search with one job less, and solve the exact model in a thread, until one of them proves the tier."""
        ending = Cancelled(lambda: bool(stop.cancelled))
        searching = replace(options, jobs=options.jobs - 1)
        with ThreadPoolExecutor(max_workers=1) as threads:
            exact = threads.submit(
                self._decide,
                level,
                options,
                replace(stop, cancelled=ending),
                None,
            )
            decided = Cancelled(lambda: bool(stop.cancelled) or exact.done())
            try:
                until = replace(stop, cancelled=decided)
                with suppress(Stopped):
                    self._look_for_starts(until, searching.jobs)
                    self._search(
                        [level], searching, until, watch, is_thorough=True
                    )
                if not is_proven(self, level):
                    wait([exact])
            finally:
                ending.cancel()
        self._learn(level, *exact.result())

    def _look_for_starts(self, stop: Stop, jobs: int) -> None:
        """Have others look for answers to start from, once."""
        if self.take_starts is not None:
            take_starts, self.take_starts = self.take_starts, None
            take_starts(stop, jobs)

    def recall(self, prices: Sequence[LevelPrices], stop: Stop) -> None:
        """Prove what the prices of an earlier answer prove here, and appraise demands by these prices."""
        ladder = RelaxationLadder(self._own_problem(), self.tiers, stop)
        bound = ladder.bound_by(prices)
        if bound is not None:
            self._relaxed = bound
            self.relax(bound.costs)
            self._appraise(ladder)

    def climb(
        self, stop: Stop, tell: Callable[[], object] | None = None
    ) -> None:
        """Climb the ladder of relaxations, from where it was left, for bounds and for what demands are worth.

        Parameters
        ----------
        tell
            Called after each bound.
        """
        if self._ladder is None:
            self._ladder = RelaxationLadder(
                self._own_problem(), self.tiers, stop
            )
        if not self.is_at_the_top:
            for bound in self.more_bounds(stop):
                self.take_over(bound)
                if tell is not None:
                    tell()
            self.appraise(stop)

    @property
    def is_at_the_top(self) -> bool:
        """Whether there is no better relaxation."""
        return self._ladder is not None and self._ladder.is_at_the_top

    def more_bounds(
        self, stop: Stop, least_gain: float = 0.0
    ) -> Iterator[Bound]:
        """Climb on, and give out what is proven: nothing else of the component changes.

        Parameters
        ----------
        least_gain
            As `RelaxationLadder.bounds` takes it.
        """
        if self._ladder is not None:
            self._ladder.allow(stop)
            yield from self._ladder.bounds(least_gain)

    def bounds_meanwhile(
        self, stop: Stop, least_gain: float
    ) -> Iterator[Bound]:
        """Climb on as `more_bounds`, and look closer before and after that, if it does not take long.

        Answers may be found in the meantime: what they say is looked at as it is then.
        """
        bound = self._relaxed
        if bound is not None and self._can_look_closer(stop):
            yield (bound := self._closer_bound(bound, _a_part_of(stop)))
        has_climbed = False
        for bound in self.more_bounds(stop, least_gain):
            has_climbed = True
            yield bound
        if bound is not None and has_climbed and self._can_look_closer(stop):
            yield self._closer_bound(bound, _a_part_of(stop))

    def _closer_bound(self, bound: Bound, stop: Stop) -> Bound:
        """The same with what the answer in hand says of levels that may have more than it, as far as there is time."""
        if self._ladder is None:
            return bound
        self._ladder.allow(stop)
        return self._ladder.look_closer(bound, *self._known_of(bound.levels))

    def _can_look_closer(self, stop: Stop) -> bool:
        """Whether it may prove anything to look closer, and takes a small part of the time that is left."""
        if self._ladder is None:
            return False
        reached, _ = self._known_of(self._ladder.levels)
        # Where all levels before the last have all that they can have, the relaxation has said all.
        may_help = reached[:-1] != self._ladder.limits[:-1]
        seconds = self._ladder.least_seconds_to_look_closer + _ENDING_SECONDS
        return may_help and seconds <= _a_part_of(stop).seconds()

    def _before_looking_closer(self, stop: Stop) -> Stop:
        """Return when a search has to end for that; without a limit, or if it is not worth it, the same stop."""
        if self._ladder is None or not self._can_look_closer(stop):
            return stop
        seconds = self._ladder.seconds_to_look_closer + _ENDING_SECONDS
        looking_closer = min(seconds, _a_part_of(stop).seconds())
        return stop.within(stop.seconds() - looking_closer)

    def take_over(self, bound: Bound) -> None:
        """Count a bound, if it is no worse than what is known."""
        if self._relaxed is None or bound.costs >= self._relaxed.costs:
            self._relaxed = bound
            self.relax(bound.costs)

    def appraise(self, stop: Stop) -> None:
        """Keep what demands and nodes are worth at the last prices, if there are any."""
        if self._ladder is not None:
            self._ladder.allow(stop)
            self._appraise(self._ladder)

    def _appraise(self, ladder: RelaxationLadder) -> None:
        with suppress(Stopped):
            appraisal = ladder.appraisal()
            if appraisal is not None:
                self.appraisal = appraisal.renumbered(self.subset.demands)

    def _own_problem(self) -> Problem:
        """Return the problem with these demands alone."""
        problem = self.subset.problem
        if len(self.subset.demands) == len(problem.demands):
            return problem
        demands = [problem.demands[demand] for demand in self.subset.demands]
        return replace(problem, demands=tuple(demands))

    def _learn(
        self, level: int, bound: int, placements: Sequence[Placement] | None
    ) -> None:
        super()._learn(level, bound, placements)
        self.relax(self._relaxed.costs if self._relaxed else ())

    def improve_all(
        self, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Search for better answers in all tiers at once, whether or not those before a tier are proven."""
        with suppress(Stopped):
            self._search(range(len(self.tiers)), options, stop, watch)

    def _weight_tiers(self) -> int:
        """How many tiers the weight has: where it is a matter of more or less placed, it is in all of them."""
        return sum(tier.weights is not None for tier in self.tiers)

    def _search(
        self,
        levels: Sequence[int],
        options: Options,
        stop: Stop,
        watch: Watch | None,
        *,
        is_thorough: bool = False,
    ) -> None:
        """Search neighbourhoods until nothing helps any more, or the bounds of these tiers are met."""
        if all(is_proven(self, level) for level in levels):
            return
        first = levels[0]
        search = NeighbourhoodSearch(
            self.subset,
            self.tiers,
            self.placements,
            options,
            aim=max(levels[-1] + 1, self._weight_tiers()),
            appraisal=self.appraisal,
            thorough=is_thorough or self.is_large or options.steps is not None,
        )
        try:
            for answer in search.run(stop):
                self._learn(first, self.bounds[first], answer)
                if watch:
                    watch(self.cost(first), self.bounds[first])
                if all(is_proven(self, level) for level in levels):
                    break
        finally:
            self.failures = tuple(search.failures.values())
