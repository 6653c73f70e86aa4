"""A component that is solved over classes, on its way through the tiers."""

from __future__ import annotations

from collections.abc import Sequence

from dralloc.solution import Placement
from dralloc.solvers.cpsat.classes.best import BestOfClasses
from dralloc.solvers.cpsat.classes.count_model import CountModel
from dralloc.solvers.cpsat.classes.demand_classes import DemandClass
from dralloc.solvers.cpsat.classes.supply import Supply
from dralloc.solvers.cpsat.objective import DemandSubset, Objective
from dralloc.solvers.cpsat.options import Options
from dralloc.solvers.cpsat.search import Watch, limit_cost, minimise
from dralloc.solvers.cpsat.stopping import Stop

__all__ = ["CountedComponent"]


class CountedComponent(BestOfClasses):
    """Demand classes that are counted.

    Parameters
    ----------
    subset, tiers, placements
        See `BestOfClasses`.
    classes, supplies
        What is to be placed, and what there is to serve it, both counted by classes of equals.
    """

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        classes: Sequence[DemandClass],
        supplies: Sequence[Supply],
        placements: Sequence[Placement],
    ) -> None:
        super().__init__(subset, tiers, classes, placements)
        self.classes = classes
        self.supplies = supplies
        self._counts: CountModel | None = None
        self._fixed = 0

    def improve(self, level: int, options: Options, stop: Stop, watch: Watch | None) -> None:
        """Solve a tier with the tiers before it, which must be proven, fixed."""
        counts = self._counts = self._counts or CountModel(self.classes, self.supplies)
        terms = counts.missed_weight(), counts.ranks()
        if level > self._fixed:
            limit_cost(counts.cp, terms[0], self.cost(0))
            self._fixed = level
        outcome = minimise(counts.cp, terms[level], options, stop, watch)
        self._raise_bound(level, outcome.bound)
        if outcome.values is not None:
            values = outcome.values
            costs = [sum(factor * values[variable.index] for variable, factor in each) for each in terms]
            self._learn(costs, lambda: counts.placements(self.subset.problem, values))
