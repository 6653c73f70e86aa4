"""A component that is solved over classes, on its way through the tiers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dralloc.solution import Placement
from dralloc.solvers.cpsat.classes.best import BestOfClasses
from dralloc.solvers.cpsat.classes.count_model import Counted, CountModel
from dralloc.solvers.cpsat.objective import DemandSubset, Objective
from dralloc.solvers.cpsat.options import Options
from dralloc.solvers.cpsat.rows import Term, fix_cost
from dralloc.solvers.cpsat.search import Watch, minimise
from dralloc.solvers.cpsat.stopping import Stop

__all__ = ["CountedComponent"]


class CountedComponent(BestOfClasses):
    """Demand classes that are counted.

    Parameters
    ----------
    subset, tiers, placements
        See `BestOfClasses`.
    counted
        The demand classes and the inventory.
    """

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        counted: Counted,
        placements: Sequence[Placement],
    ) -> None:
        super().__init__(subset, tiers, counted.classes, placements)
        self.counted = counted
        self._counts: CountModel | None = None
        self._fixed = 0
        self._known_terms: dict[int, Sequence[Term]] = {}

    def improve(self, level: int, options: Options, stop: Stop, watch: Watch | None) -> None:
        """Solve a tier with the tiers before it, which must be proven, fixed."""
        counts = self._model()
        for fixed in range(self._fixed, level):
            fix_cost(counts.cp, self._terms(fixed), self.cost(fixed), f"tier {self.tiers[fixed].name}")
        self._fixed = level
        outcome = minimise(counts.cp, self._terms(level), options, stop, watch)
        self._raise_bound(level, outcome.bound)
        if outcome.values is not None:
            values = outcome.values
            named = lru_cache(maxsize=1)(lambda: counts.placements(self.subset.problem, values))
            costs = [
                tier.cost(self.subset, named()) if tier.by_names else self._count(each, counts, values)
                for each, tier in enumerate(self.tiers)
            ]
            self._learn(costs, named)

    def _model(self) -> CountModel:
        if self._counts is None:
            self._counts = CountModel(self.counted, self.subset.problem.budgets)
        return self._counts

    def _terms(self, level: int) -> Sequence[Term]:
        """What a tier costs; auxiliary variables are added once."""
        if level not in self._known_terms:
            counted = self.tiers[level].counted
            assert counted
            self._known_terms[level] = counted(self._model())
        return self._known_terms[level]

    def _count(self, level: int, counts: CountModel, values: Sequence[int]) -> int:
        count = self.tiers[level].count
        if count:
            return count(counts, values)
        return sum(factor * values[variable.index] for variable, factor in self._terms(level))
