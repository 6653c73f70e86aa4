"""The best answer of demand classes that are solved together, and what is proven about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dralloc.solution import Placement
from dralloc.solvers.cpsat.classes.demand_classes import DemandClass
from dralloc.solvers.cpsat.classes.node_bound import at_home
from dralloc.solvers.cpsat.objective import DemandSubset, Objective

__all__ = ["BestOfClasses"]

Names = Callable[[], Iterable[Placement]]
"""Gives names to an answer: which demand goes where."""


class BestOfClasses:
    """A `dralloc.solvers.cpsat.component.Component` over classes: answers are counts until names are asked for.

    Parameters
    ----------
    subset
        The demands, without sites.
    tiers
        The objective: of the weight, and alternatives.
    classes
        The demands, as they are counted.
    placements
        An answer to begin with.
    """

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        classes: Sequence[DemandClass],
        placements: Sequence[Placement],
    ) -> None:
        self.subset = subset
        self.tiers = tiers
        self.size = len(subset.demands)
        self.bounds = [0] * len(tiers)
        self._costs = [tier.cost(subset, placements) for tier in tiers]
        self._least_rank = sum(each.least_rank * each.size for each in classes)
        self._classes = classes
        self._names: Names | None = None
        self.placements = tuple(placements)
        self._ranks = next(place for place, tier in enumerate(tiers) if tier.name == "alternatives")
        self._raise_bound(0, 0)

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The best answer."""
        if self._names:
            self.placements = tuple(at_home(self.subset.problem, self._classes, self._names()))
        return self._placements

    @placements.setter
    def placements(self, placements: tuple[Placement, ...]) -> None:
        self._placements, self._names = placements, None

    def cost(self, level: int) -> int:
        """What the best answer costs in a tier."""
        return self._costs[level]

    def _learn(self, costs: Sequence[int], names: Names) -> bool:
        """Keep an answer if it is the best."""
        if list(costs) >= self._costs:
            return False
        self._costs, self._names = list(costs), names
        self._raise_bound(0, 0)
        return True

    def _raise_bound(self, level: int, bound: int) -> None:
        """No answer costs less in a tier; and with everything placed, each demand has at least its best mode's rank."""
        self.bounds[level] = max(self.bounds[level], bound)
        if not any(cost for cost, tier in zip(self._costs, self.tiers, strict=True) if tier.weights):
            self.bounds[self._ranks] = max(self.bounds[self._ranks], self._least_rank)
