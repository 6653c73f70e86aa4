"""Where a solve stands: the answer so far, which is in parts, and what is proven about it.

A part has its own tiers and bounds; here they are added up over the whole problem, as users see them.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from dralloc.objects.errors import AllocationError
from dralloc.problem import DemandIndex, Problem, indices
from dralloc.problem.solution import Appraisal, LevelPrices, Placement, Tier
from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.component import Component, Part, Solvable
from dralloc.solve.optimum.improve import SearchedComponent
from dralloc.solve.optimum.objective import (
    DemandSubset,
    Objective,
    summed_weight,
)
from dralloc.solve.optimum.relax.levels import levels_of

__all__ = ["Standing"]

_demand_of = attrgetter("demand")


@dataclass(frozen=True, slots=True)
class _Relaxed:
    """What relaxations have proven of the weight.

    Parameters
    ----------
    prices
        What proved it: each guess that some component has, with the rows of all of them.
    limits
        By weight, the most placed demands, where that is below their number.
    reasons
        What was left out for it.
    most
        How many demands are placed at most; None if that was not asked yet.
    """

    prices: tuple[LevelPrices, ...] = ()
    limits: tuple[tuple[int, int], ...] = ()
    reasons: tuple[str, ...] = ()
    most: int | None = None


class Standing:
    """The answer so far and its bounds.

    Parameters
    ----------
    weight, tiers
        What the objective counts, most important first: the tiers that the weight is split into, and all.
    start
        The placements to begin with.

    Attributes
    ----------
    everything
        All demands.
    objectives
        All tiers, as they count.
    levels
        How many of the tiers the parts were made for.
    components
        The parts.
    """

    def __init__(
        self,
        problem: Problem,
        weight: Sequence[Objective],
        tiers: Sequence[Objective],
        start: Sequence[Placement],
    ) -> None:
        self.problem = problem
        self.weight = weight
        self.objectives = tiers
        self.everything = DemandSubset(problem, indices(problem.demands))
        self.levels = 0
        self.components: list[Part] = [Component(self.everything, tiers, start)]
        self._relaxed = _Relaxed()
        # The placements of the answers by part, and all of them in order.
        self._joined: tuple[
            tuple[tuple[Placement, ...], ...], tuple[Placement, ...]
        ] = ((), ())

    def begin(self, components: Sequence[Part], levels: int) -> None:
        """Go on with other parts; what was proven of tiers so far stays so, part by part."""
        for component in components:
            component.bounds[: self.levels] = [
                component.cost(level) for level in range(self.levels)
            ]
        self.components = list(components)
        self.levels = levels

    def go_on_with(self, whole: SearchedComponent, levels: int) -> None:
        """Go on with all demands as one part, for which all holds that is known of the tiers."""
        for level, tier in enumerate(self.objectives[: self.levels]):
            bound = tier.total(
                component.bounds[level] for component in self.components
            )
            whole.bounds[level] = max(whole.bounds[level], bound)
        whole.relaxation.appraisal = self.appraisal()
        for component in self.components:
            if list(component.subset.demands) == list(whole.subset.demands):
                whole.relaxation = component.relaxation
        self._relaxed = _Relaxed(
            self.prices(), self._limits(), self.reasons(), self.most_placed()
        )
        self.components = [whole]
        self.levels = levels

    # Parts.

    def searched(self) -> list[SearchedComponent]:
        """Return the parts that are relaxed and searched."""
        return [
            component
            for component in self.components
            if isinstance(component, SearchedComponent)
        ]

    def is_proven(self) -> bool:
        """Whether all parts are proven in all tiers that they were made for."""
        return all(
            is_proven(component, level)
            for component in self.components
            for level in range(self.levels)
        )

    def placements(self) -> tuple[Placement, ...]:
        """The best answer so far: the same object until there is a better one."""
        parts = tuple(component.placements for component in self.components)
        if parts != self._joined[0]:
            placements = (placement for part in parts for placement in part)
            self._joined = parts, tuple(sorted(placements, key=_demand_of))
        return self._joined[1]

    def appraisal(self) -> Appraisal | None:
        """Return what demands and nodes are worth, as far as parts know."""
        appraisals = [
            component.relaxation.appraisal
            for component in self.components
            if component.relaxation.appraisal is not None
        ]
        return Appraisal.together(appraisals)

    def failures(self) -> Iterator[AllocationError]:
        """Give out the selectors that failed on a device while parts were searched."""
        for component in self.searched():
            yield from component.failures

    # Tiers.

    def tiers(self) -> tuple[Tier, ...]:
        """All tiers; those that are not looked at yet as the answer as a whole has them."""
        placed, weight_count = self.placements(), len(self.weight)
        tiers = [self._tier(level) for level in range(self.levels)]
        for objective in self.objectives[self.levels :]:
            cost, floor = (
                count(self.everything, placed)
                for count in (objective.cost, objective.floor)
            )
            tiers.append(self._shown(objective, [cost], [floor]))
        weight = self._of_weight(tiers[:weight_count])
        return (weight, *tiers[weight_count:])

    def tier_while(
        self, level: int, running: Solvable, best: int, bound: int
    ) -> Tier:
        """Return a tier over the whole problem while a part is solved, with what that has reached.

        A solver finds answers that are worse than the one in hand first, which stays the best so far.
        """
        resting = [
            component
            for component in self.components
            if component is not running
        ]
        costs = [component.cost(level) for component in resting]
        costs.append(min(best, running.cost(level)))
        bounds = [component.bounds[level] for component in resting]
        bounds.append(max(bound, running.bounds[level]))
        tier = self._shown(self.objectives[level], costs, bounds)
        if level >= len(self.weight):
            return tier
        tiers = [
            self._tier(tier_index) for tier_index in range(len(self.weight))
        ]
        tiers[level] = tier
        return self._of_weight(tiers)

    def _tier(self, level: int) -> Tier:
        """A tier as its parts have it."""
        return self._shown(
            self.objectives[level],
            [component.cost(level) for component in self.components],
            [component.bounds[level] for component in self.components],
        )

    def _of_weight(self, tiers: Sequence[Tier]) -> Tier:
        """The tiers of the weight as one, with the proven limits by weight."""
        return replace(summed_weight(tiers, self.weight), limits=self._limits())

    def _shown(
        self,
        objective: Objective,
        costs: Sequence[int],
        bounds: Sequence[int],
    ) -> Tier:
        """A tier as users see it, of which the parts have these costs and bounds."""
        cost, bound = objective.total(costs), objective.total(bounds)
        attainable = None
        if objective.worth:
            worth = objective.worth(self.problem, self.placements())
            attainable = worth + cost
        elif objective.weights:
            attainable = sum(
                component.subset.weight(objective.weights)
                for component in self.components
            )
        return objective.shown(cost, bound, attainable)

    # What relaxations have proven.

    def reasons(self) -> tuple[str, ...]:
        """Return what relaxations left out for the bound of the weight."""
        reasons = dict.fromkeys(
            component.relaxation.why for component in self.components
        )
        return tuple(filter(None, reasons)) or self._relaxed.reasons

    def prices(self) -> tuple[LevelPrices, ...]:
        """Return the prices that proved bounds: each guess that some part has, with the rows of all of them."""
        all_prices = [
            component.relaxation.prices for component in self.components
        ]
        longest = max(all_prices, key=len, default=())
        if not longest:
            return self._relaxed.prices
        rows: dict[int, dict[Hashable, float]] = defaultdict(dict)
        for prices in all_prices:
            for level_index, level in enumerate(prices):
                rows[level_index].update(level.rows)
        return tuple(
            level._replace(rows=rows[level_index])
            for level_index, level in enumerate(longest)
        )

    def most_placed(self) -> int:
        """Return how many demands the optimum places at most."""
        most = sum(map(self._most_of, self.components))
        return (
            most
            if self._relaxed.most is None
            else min(most, self._relaxed.most)
        )

    def _most_of(self, component: Part) -> int:
        """How many demands of a part the optimum places at most."""
        demands = [
            self.problem.demands[demand] for demand in component.subset.demands
        ]
        levels = levels_of(demand.weight for demand in demands)
        if any(level.lowest < level.highest for level in levels):
            # The same weight may be that of many demands, or of few.
            return len(demands)
        weightless = sum(not demand.weight for demand in demands)
        if all(
            is_proven(component, level) for level in range(len(self.weight))
        ):
            placed = [
                self.problem.demands[placement.demand]
                for placement in component.placements
            ]
            return weightless + sum(demand.weight > 0 for demand in placed)
        if len(levels) == 1:
            most_weight = self._most_weight(component)
            return weightless + most_weight // levels[0].unit
        return weightless + component.relaxation.most_with_weight(component)

    def _most_weight(self, component: Part) -> int:
        """The weight that the optimum places of a part at most."""
        return sum(
            tier.weights.unit
            * (
                component.subset.weight(tier.weights)
                - component.bounds[tier_index]
            )
            for tier_index, tier in enumerate(self.weight)
            if tier.weights
        )

    def _limits(self) -> tuple[tuple[int, int], ...]:
        """Return, by weight, the proven limit on placed demands where it is below their number."""
        if not any(component.relaxation.bound for component in self.components):
            return self._relaxed.limits
        limits: Tally[int] = Tally()
        for component in self.components:
            demands: Iterable[DemandIndex] = component.subset.demands
            if all(
                is_proven(component, level) for level in range(len(self.weight))
            ):
                demands = map(_demand_of, component.placements)
            of_component = Tally(
                self.problem.demands[demand].weight for demand in demands
            )
            component_limits = component.relaxation.limits(component)
            # The update adds: what is more than the limit is taken away.
            of_component.update(
                {
                    weight: limit - of_component[weight]
                    for weight, limit in component_limits.items()
                    if limit < of_component[weight]
                }
            )
            limits.update(of_component)
        return tuple(sorted(limits.items()))
