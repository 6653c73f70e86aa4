"""A component that is solved over classes, on its way through the tiers."""

from __future__ import annotations

from collections.abc import Sequence

from dralloc.solution import Placement
from dralloc.solvers.cpsat.classes.counts import Counts
from dralloc.solvers.cpsat.classes.needs import DemandClass
from dralloc.solvers.cpsat.classes.supply import Supply
from dralloc.solvers.cpsat.objective import Objective, Part
from dralloc.solvers.cpsat.options import Options
from dralloc.solvers.cpsat.search import Watch, limit_cost, minimise

__all__ = ["CountedComponent"]


class CountedComponent:
    """Demand classes that are solved together; see `dralloc.solvers.cpsat.parts.Component`.

    Parameters
    ----------
    part
        The demands, without sites.
    tiers
        The objective. Those behind weight and alternatives are only bounded.
    classes, supplies
        The formulation.
    placements
        An answer to begin with.
    """

    def __init__(
        self,
        part: Part,
        tiers: Sequence[Objective],
        classes: Sequence[DemandClass],
        supplies: Sequence[Supply],
        placements: Sequence[Placement],
    ) -> None:
        self.part = part
        self.tiers = tiers
        self.classes = classes
        self.supplies = supplies
        self.placements = tuple(placements)
        self.size = len(part.demands)
        self.bounds = [0] * len(tiers)
        self._counts: Counts | None = None
        self._fixed = 0
        self._costs = self._costs_of(self.placements)
        self._raise_bounds()

    def cost(self, level: int) -> int:
        """What the best answer costs in a tier."""
        return self._costs[level]

    def is_proven(self, level: int) -> bool:
        """Whether no answer is better in this tier, given the tiers before it."""
        return self._costs[level] == self.bounds[level]

    def improve(self, level: int, options: Options, limit: float | None, watch: Watch | None) -> bool:
        """Solve a tier with the tiers before it, which must be proven, fixed. True if interrupted."""
        if level > 1:
            return False
        counts = self._counts = self._counts or Counts(self.classes, self.supplies)
        terms = counts.missed_weight(), counts.ranks()
        if level > self._fixed:
            limit_cost(counts.cp, terms[0], self._costs[0])
            self._fixed = level
        outcome = minimise(counts.cp, terms[level], options, limit, watch)
        self.bounds[level] = max(self.bounds[level], outcome.bound)
        if outcome.values is not None:
            values = outcome.values
            costs = [sum(factor * values[variable.index] for variable, factor in each) for each in terms]
            if costs < self._costs[:2]:
                self._read(counts, values)
        self._raise_bounds()
        return outcome.interrupted

    def _read(self, counts: Counts, values: Sequence[int]) -> None:
        self.placements = tuple(counts.placements(self.part.problem, values))
        self._costs = self._costs_of(self.placements)

    def _costs_of(self, placements: Sequence[Placement]) -> list[int]:
        return [tier.cost(self.part, placements) for tier in self.tiers]

    def _raise_bounds(self) -> None:
        """What is known without solving: with everything placed, each demand has at least its best mode's rank."""
        if self._costs[0] == 0:
            self.bounds[1] = max(self.bounds[1], sum(each.modes[0].rank * len(each.members) for each in self.classes))
        for level, tier in enumerate(self.tiers[2:], 2):
            self.bounds[level] = max(self.bounds[level], tier.floor(self.part, self.placements))
