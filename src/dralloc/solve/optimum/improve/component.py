"""A component that is too large or too mixed for one model: searched first, and decided by the exact model at last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol

from dralloc.objects.choices import Options
from dralloc.objects.errors import AllocationError
from dralloc.problem.solution import Placement
from dralloc.solve.optimum.candidates import CandidateSite
from dralloc.solve.optimum.component import Component, is_proven
from dralloc.solve.optimum.improve.search import NeighbourhoodSearch
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.relax import Bound, relaxed_bounds
from dralloc.solve.optimum.search import Watch
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = ["FindSites", "SearchedComponent"]

_SMALL: Final = 50_000
"""Up to so many candidates, the exact model may decide in no time."""

_FIRST_EFFORT: Final = 1.0
"""What it may take for that (see `Stop.effort`)."""


_RELAXING: Final = 0.5
"""The part of the time that the ladder of relaxations may take."""


class FindSites(Protocol):
    """Works out where the demands of a component could go, if that is not known yet."""

    def __call__(
        self, demands: Sequence[int], stop: Stop
    ) -> Mapping[int, tuple[CandidateSite, ...]]:
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
        self._is_relaxed = False
        self._find_sites = find_sites
        self.size = max(self.size, len(subset.demands))
        self.failures: tuple[AllocationError, ...] = ()

    @property
    def is_large(self) -> bool:
        """Whether the exact model is not likely to decide it in no time."""
        return not self.subset.sites or self.size > _SMALL

    @property
    def relaxation(self) -> str:
        """What was left out for the bound; empty if there is none by a relaxation."""
        return self._relaxed.why if self._relaxed else ""

    def limits(self) -> Mapping[int, int]:
        """Return how many demands the optimum places at most, by weight, of weights that are a level alone."""
        if not self._relaxed:
            return {}
        weights = [
            self.subset.problem.demands[placement.demand].weight
            for placement in self.placements
        ]
        reached = [sum(map(level.of, weights)) for level in self._relaxed.levels]
        most = self._relaxed.most_of_optimum(reached)
        return {
            level.unit: units
            for level, units in zip(self._relaxed.levels, most, strict=True)
            if level.least == level.most
        }

    def improve(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Solve a tier with the tiers before it, which must be proven, fixed; later ones are improved with it.

        Relax, improve, prove: a bound that leaves couplings out, better answers by neighbourhoods, and the exact model
        for what is still apart.
        """
        with suppress(Stopped):
            if not self.is_large:
                self._improve(level, options, stop.limited(_FIRST_EFFORT), watch)
            if not is_proven(self, level):
                self._relax(stop.within(_RELAXING * stop.seconds()))
            if not is_proven(self, level):
                self._search([level], options, stop, watch)
            if not is_proven(self, level) and options.steps is None:
                if not self.subset.sites:
                    self.subset = replace(
                        self.subset, sites=self._find_sites(self.subset.demands, stop)
                    )
                self._improve(level, options, stop, watch)

    def _relax(self, stop: Stop) -> None:
        """Climb the ladder of relaxations, once for all tiers."""
        if self._is_relaxed:
            return
        whole = self.subset.problem
        demands = tuple(whole.demands[demand] for demand in self.subset.demands)
        problem = (
            whole
            if len(demands) == len(whole.demands)
            else replace(whole, demands=demands)
        )
        for bound in relaxed_bounds(problem, self.tiers, stop):
            self._relaxed = bound
            self.relax(bound.costs)
        self._is_relaxed = True

    def _learn(
        self, level: int, bound: int, placements: Sequence[Placement] | None
    ) -> None:
        super()._learn(level, bound, placements)
        self.relax(self._relaxed.costs if self._relaxed else ())

    def improve_all(self, options: Options, stop: Stop, watch: Watch | None) -> None:
        """Search for better answers in all tiers at once, whether or not those before a tier are proven."""
        with suppress(Stopped):
            self._search(range(len(self.tiers)), options, stop, watch)

    def _search(
        self, levels: Sequence[int], options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Search neighbourhoods until nothing helps any more, or the bounds of these tiers are met."""
        first = levels[0]
        search = NeighbourhoodSearch(self.subset, self.tiers, self.placements, options)
        try:
            for answer in search.run(stop):
                self._learn(first, self.bounds[first], answer)
                if watch:
                    watch(self.cost(first), self.bounds[first])
                if all(is_proven(self, level) for level in levels):
                    break
        finally:
            self.failures = tuple(search.failures.values())
