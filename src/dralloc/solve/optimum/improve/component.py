"""Demands that are too many or too mixed for one model: a bound, a search, and the exact model at last."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final, NamedTuple, Protocol

from dralloc.objects.choices import Options
from dralloc.objects.errors import AllocationError
from dralloc.problem.indices import DemandIndex
from dralloc.problem.solution import Placement
from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.beside import Companion
from dralloc.solve.optimum.candidates import CandidateSite
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.improve.nodes_first import (
    NodesFirst,
    may_go_by_nodes,
    nodes_first,
)
from dralloc.solve.optimum.improve.search import NeighbourhoodSearch
from dralloc.solve.optimum.improve.upper_levels import UpperLevels
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.relax.component import take_over
from dralloc.solve.optimum.search import Watch
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = [
    "FindSites",
    "SearchedComponent",
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

_MOST_OF_LEVELS: Final = 20_000
_SHORTCUT: Final = 0.8
"""Some levels of the weight are looked at alone up to so many candidates, where they may be decided so soon that it is
worth one job less for the search, and up to this part of all: else they are no shortcut for the exact model of all."""

_RELAXING: Final = 0.2
"""The part of the time that the ladder of relaxations may take before there is a good answer."""

_RELAXING_SECONDS: Final = 4.0
_RELAXING_IN_SHORT: Final = 0.25
"""It may always take so many seconds, up to this part of the time: the search goes by its prices."""

_RELAXING_AT_LAST: Final = 0.6
"""The part of the time that is left when nothing helps the search any more; the bound may still become better."""


def relaxation_stop(stop: Stop) -> Stop:
    """Return when the ladder of relaxations has to make way for the search for answers."""
    seconds = stop.seconds()
    in_short = min(_RELAXING_SECONDS, _RELAXING_IN_SHORT * seconds)
    return stop.within(max(_RELAXING * seconds, in_short))


TakeStarts = Callable[[Stop, int], None]
"""Looks for answers in another way, until it is time to stop, with so many jobs, and has components consider them."""


class _Finding(NamedTuple):
    """Something that is known beside a search: what the first tier costs at least, and how to come to an answer.

    ``answer_with``: given that in hand, returns another one, if it may be better.
    """

    bound: int
    answer_with: Callable[[Sequence[Placement]], Sequence[Placement] | None]


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
    take_starts
        Asked once, before the search; None if there is nobody to ask.
    take_starts_again
        Asked whenever the answer was found elsewhere than by the search; None if there is nobody to ask.
    """

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        placements: Sequence[Placement],
        find_sites: FindSites,
    ) -> None:
        super().__init__(subset, tiers, placements)
        self._find_sites = find_sites
        self.size = max(self.size, len(subset.demands))
        self.failures: tuple[AllocationError, ...] = ()
        self._was_solved_by_nodes = False
        self.take_starts: TakeStarts | None = None
        self.take_starts_again: TakeStarts | None = None

    @property
    def is_large(self) -> bool:
        """Whether the exact model is not likely to decide it in no time."""
        return not self.subset.sites or self.size > _SMALL

    @property
    def needs_start(self) -> bool:
        """Whether the exact model takes so long that a good answer to start from comes sooner."""
        return not self.subset.sites or self.size > _TINY

    def improve(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Solve a tier with the tiers before it, which must be proven, fixed; later ones are improved with it.

        Relax, improve, prove: a bound that leaves couplings out, better answers by small changes and by neighbourhoods,
        and exact models for what is still apart: one of nodes, then that of all devices. The search and these models
        are side by side, where that is a matter of the clock anyway; else the one of nodes comes before neighbourhoods.
        Before all of it a look at the exact model, which decides what is easy; at last a closer look at bounds, now
        that there is a good answer.
        """
        # Who of two is first to prove something depends on the machine; without a limit, or with steps, nothing may.
        may_have_company = (
            options.jobs > 1 and options.steps is None and stop.seconds() < inf
        )
        has_company = may_have_company and not self.is_large
        with suppress(Stopped):
            if not (self.is_large or self._was_looked_at(level)):
                effort = _GLANCE if has_company else _FIRST_EFFORT
                first = stop.within(_FIRST_PART * stop.seconds())
                # There is time for the rest even if there is too little for this.
                with suppress(Stopped):
                    self._improve(level, options, first.limited(effort), watch)
            if not is_proven(self, level):
                self.climb(relaxation_stop(stop), stop)
                self.bound_later(level, stop)
            if is_proven(self, level):
                return
            until = self.relaxation.before_looking_closer(self, stop)
            with suppress(Stopped):
                if may_have_company:
                    self._search_and_prove(level, options, until, watch)
                # With one job, or where the model of all is too large for company, the search goes on alone.
                if not has_company:
                    self._look_for_starts(until, options.jobs)
                    if not may_have_company:
                        self._go_by_nodes(level, options, until)
                    self._search([level], options, until, watch)
                self._prove_at_last(level, options, until, watch)
            bound = self.relaxation.bound
            if until is not stop and bound and not stop.reached():
                take_over(self, self.relaxation.closer(bound, self, stop))
                if until.reached():
                    # Whoever shares out the time is to see that it was not enough.
                    self._prove_at_last(level, options, stop, watch)

    def bound_later(self, level: int, stop: Stop) -> None:
        """Bound a tier behind the weight, as far as it is known how much of each weight the optimum places."""
        if self.tiers[level].weights is None:
            with suppress(Stopped):
                least_cost = self.relaxation.least_cost(self, level, stop)
                self._learn(level, least_cost, None)

    def _prove_at_last(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Go on with bounds, and with the exact model, when the search helps no more."""
        if not is_proven(self, level):
            at_last = stop.within(_RELAXING_AT_LAST * stop.seconds())
            self.climb(at_last, stop)
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
        """Search with one job less, and solve exact models in a thread, until one of them proves the tier.

        First come the model of nodes and those of the highest levels of the weight: their answers are better starts.
        Where the model of all demands would be too large, these are all.
        """
        if self.is_large and (level > 0 or not self.subset.sites):
            return
        largest = min(_MOST_OF_LEVELS, int(_SHORTCUT * self.size))
        upper_levels = UpperLevels(self.subset, self.tiers, largest)
        if (
            self.is_large
            and upper_levels.is_empty
            and not self._may_go_by_nodes(level, beside_search=True)
        ):
            return
        searching = replace(options, jobs=options.jobs - 1)
        solve_models = partial(
            self._solve_models, upper_levels, level, searching
        )
        with Companion(solve_models, stop) as models:
            with suppress(Stopped):
                self._look_for_starts(models.until_over, searching.jobs)
            while not is_proven(self, level):
                with suppress(Stopped):
                    self._search(
                        [level],
                        searching,
                        models.until_news,
                        watch,
                        is_thorough=True,
                    )
                    # Nothing helps the search any more; bounds may still become better.
                    if not is_proven(self, level):
                        self.climb(models.until_news, models.until_over)
                if is_proven(self, level):
                    break
                finding = models.wait()
                if finding is None:
                    break
                answer = finding.answer_with(self.placements)
                self._go_on_from(
                    finding.bound, answer, searching.jobs, models.until_over
                )
        self._learn(level, *models.result())

    def _solve_models(
        self,
        upper_levels: UpperLevels,
        level: int,
        options: Options,
        stop: Stop,
    ) -> Generator[_Finding, None, tuple[int, Sequence[Placement] | None]]:
        """Give out what comes sooner than the exact model of all demands; return what is proven of them, and an answer.

        That is the highest levels of the weight, solved, and what is known of whole demands on nodes.
        """
        models = [
            self._solve_by_nodes(level, options, stop),
            self._solve_levels(upper_levels, level, options, stop),
        ]
        # What a high level gains late costs many places of the last one, which there is no time to make up for.
        if upper_levels.are_small:
            models.reverse()
        for findings in models:
            yield from findings
        if self.is_large:
            return self.bounds[level], None
        return self._decide(level, options, stop, None)

    def _solve_by_nodes(
        self, level: int, options: Options, stop: Stop
    ) -> Iterator[_Finding]:
        """Give out what is known of whole demands on nodes."""
        by_nodes = self._by_nodes(level, options, stop, beside_search=True)
        if by_nodes is not None:
            yield _Finding(by_nodes.bound, lambda _: by_nodes.placements)

    def _solve_levels(
        self,
        upper_levels: UpperLevels,
        level: int,
        options: Options,
        stop: Stop,
    ) -> Iterator[_Finding]:
        """Give out the highest levels of the weight, solved."""
        if level == 0:
            for upper in upper_levels.solved(self, options, stop):
                complete = partial(upper_levels.answer_with, upper)
                yield _Finding(upper.bounds[0], complete)

    def _may_go_by_nodes(self, level: int, *, beside_search: bool) -> bool:
        """Whether it is worth it to solve a tier by nodes."""
        return (
            level == 0
            and may_go_by_nodes(self.subset, beside_search=beside_search)
            and not self._was_solved_by_nodes
        )

    def _by_nodes(
        self, level: int, options: Options, stop: Stop, *, beside_search: bool
    ) -> NodesFirst | None:
        """Solve the first tier by nodes, where that is worth it, once; None where it is not done."""
        if not self._may_go_by_nodes(level, beside_search=beside_search):
            return None
        outcome = nodes_first(self, level, options, stop)
        self._was_solved_by_nodes = outcome is not None
        return outcome

    def _go_by_nodes(self, level: int, options: Options, stop: Stop) -> None:
        """Solve a tier by nodes, where that is worth it, and go on from there."""
        outcome = self._by_nodes(level, options, stop, beside_search=False)
        if outcome is not None:
            bound, placements = outcome
            self._go_on_from(bound, placements, options.jobs, stop)

    def _go_on_from(
        self,
        bound: int,
        placements: Sequence[Placement] | None,
        jobs: int,
        stop: Stop,
    ) -> None:
        """Learn of the first tier; have others look for answers that start from a better one."""
        before = self.placements
        self._learn(0, bound, placements)
        if self.placements is not before and self.take_starts_again is not None:
            with suppress(Stopped):
                self.take_starts_again(stop, jobs)

    def _look_for_starts(self, stop: Stop, jobs: int) -> None:
        """Have others look for answers to start from, once."""
        if self.take_starts is not None:
            take_starts, self.take_starts = self.take_starts, None
            take_starts(stop, jobs)

    def climb(self, until: Stop, stop: Stop) -> None:
        """Climb the ladder of relaxations, from where it was left, for bounds and for what demands are worth.

        Parameters
        ----------
        until
            When to climb no further.
        stop
            When there is no time to find out what demands are worth at the prices that are known then.
        """
        if not self.relaxation.is_at_the_top:
            for bound in self.relaxation.climb(until):
                take_over(self, bound)
            self.relaxation.appraise(stop)

    def search_neighbourhoods(self, options: Options, stop: Stop) -> None:
        """Search neighbourhoods for better answers in the tiers of the weight, until it is time to stop."""
        with suppress(Stopped):
            self._search(self.weight_levels, options, stop, None)

    def improve_all(
        self, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Search for better answers in all tiers at once, whether or not those before a tier are proven."""
        with suppress(Stopped):
            self._search(range(len(self.tiers)), options, stop, watch)

    @property
    def weight_levels(self) -> range:
        """The tiers of the weight: where it is a matter of more or less placed, it is in all of them."""
        return range(sum(tier.weights is not None for tier in self.tiers))

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
        # While any tier of the weight is solved, a gain in any of them counts.
        search = NeighbourhoodSearch(
            self.subset,
            self.tiers,
            self.placements,
            options,
            aim=max(levels[-1] + 1, len(self.weight_levels)),
            appraisal=self.relaxation.appraisal,
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
