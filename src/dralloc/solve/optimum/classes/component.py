"""Demand classes that are solved together, on their way through the tiers: the best answer, and what is proven."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache

from dralloc.objects.choices import Options
from dralloc.problem.solution import Placement
from dralloc.solve.optimum.classes.count_model import Counted, CountModel
from dralloc.solve.optimum.classes.demand_classes import DemandClass
from dralloc.solve.optimum.classes.node_bound import at_home
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.rows import Term, fix_cost
from dralloc.solve.optimum.search import Watch, minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["BestOfClasses", "CountedComponent"]

Names = Callable[[], Iterable[Placement]]
"""Gives names to an answer: which demand goes where."""


class BestOfClasses:
    """A `dralloc.solve.optimum.component.Component` over classes: answers are counts until names are asked for.

    ``subset``: the demands, without sites. ``placements``: an answer to begin with.
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
        self._ranks = next(
            place for place, tier in enumerate(tiers) if tier.name == "alternatives"
        )
        self._raise_bound(0, 0)

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The best answer."""
        if self._names:
            self.placements = tuple(
                at_home(self.subset.problem, self._classes, self._names())
            )
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
        """No answer costs less in a tier; with all placed that has weight, each of that has at least its best rank."""
        self.bounds[level] = max(self.bounds[level], bound)
        if not any(
            cost
            for cost, tier in zip(self._costs, self.tiers, strict=True)
            if tier.weights
        ):
            self.bounds[self._ranks] = max(self.bounds[self._ranks], self._least_rank)


class CountedComponent(BestOfClasses):
    """Demand classes that are counted, as `BestOfClasses`."""

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        counted: Counted,
        placements: Sequence[Placement],
    ) -> None:
        super().__init__(subset, tiers, counted.classes, placements)
        self.counted = counted
        self._fixed = 0
        self._known_terms: dict[int, Sequence[Term]] = {}

    def improve(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Solve a tier with the tiers before it, which must be proven, fixed."""
        counts = self._counts
        for fixed in range(self._fixed, level):
            fix_cost(
                counts.cp,
                self._terms(fixed),
                self.cost(fixed),
                f"tier {self.tiers[fixed].name}",
            )
        self._fixed = level
        outcome = minimise(counts.cp, self._terms(level), options, stop, watch)
        self._raise_bound(level, outcome.bound)
        if outcome.values is not None:
            values = outcome.values
            named = lru_cache(maxsize=1)(
                lambda: counts.placements(self.subset.problem, values)
            )
            costs = [
                tier.cost(self.subset, named())
                if tier.by_names
                else self._count(each, values)
                for each, tier in enumerate(self.tiers)
            ]
            self._learn(costs, named)

    @cached_property
    def _counts(self) -> CountModel:
        return CountModel(self.counted, self.subset.problem.budgets)

    def _terms(self, level: int) -> Sequence[Term]:
        """What a tier costs; auxiliary variables are added once."""
        if level not in self._known_terms:
            counted = self.tiers[level].counted
            assert counted
            self._known_terms[level] = counted(self._counts)
        return self._known_terms[level]

    def _count(self, level: int, values: Sequence[int]) -> int:
        if count := self.tiers[level].count:
            return count(self._counts, values)
        return sum(
            factor * values[variable.index] for variable, factor in self._terms(level)
        )
