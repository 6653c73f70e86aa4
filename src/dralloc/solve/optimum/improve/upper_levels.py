"""The demands of the highest levels of the weight alone: fewer of them are placed better, and bounded more closely.

Which demands these are, and why what is proven of them holds for all:
`dralloc.solve.optimum.improve.upper_demands`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from dralloc.objects.choices import Options
from dralloc.problem.solution import Placement
from dralloc.solve.optimum.answered import (
    Answered,
    is_proven,
    raise_bounds,
)
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.improve.incumbent import Bonds
from dralloc.solve.optimum.improve.joined_answer import (
    joined_answer,
    split_answer,
)
from dralloc.solve.optimum.improve.nodes_first import (
    may_go_by_nodes,
    nodes_first,
)
from dralloc.solve.optimum.improve.upper_demands import upper_demands
from dralloc.solve.optimum.objective import (
    DemandSubset,
    Objective,
)
from dralloc.solve.optimum.relax.component import known_of
from dralloc.solve.optimum.relax.levels import levels_of
from dralloc.solve.optimum.stopping import Cancelled, Stop

__all__ = ["UpperLevels"]

_PART: Final = 0.5
"""The part of the time that is left which some levels may take."""


_SOON: Final = 5_000
"""Models with up to so many candidates take a second or two, which are well spent before anything else."""


class UpperLevels:
    """The highest level of the weight, the two highest, and so on: each as a component of its own.

    Parameters
    ----------
    subset
        All demands, with sites.
    tiers
        What counts; of these the first, which is one of the weight, is solved.
    largest
        Levels with more candidates have no exact model; if they have few sites, they are solved by nodes.
    """

    def __init__(
        self, subset: DemandSubset, tiers: Sequence[Objective], largest: int
    ) -> None:
        self._largest = largest
        self._problem = problem = subset.problem
        self._bonds = Bonds(problem)
        self._levels = levels_of(
            problem.demands[demand].weight for demand in subset.demands
        )
        self._components: list[Component] = []
        for upper in self._demands_of_levels(subset):
            component = Component(upper, tiers, ())
            if component.size > largest and not may_go_by_nodes(
                upper, beside_search=True
            ):
                break
            self._components.append(component)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to solve."""
        return not self._components

    @property
    def are_small(self) -> bool:
        """Whether all of them are solved soon."""
        return all(component.size <= _SOON for component in self._components)

    def solved(
        self, answer: Answered, options: Options, stop: Stop
    ) -> Iterator[Component]:
        """Solve them one after the other, and give them out.

        Left out is what is decided by then, or meanwhile; and if some levels are not, no more follow.

        Parameters
        ----------
        answer
            The one to all demands, as it is at any time.
        """
        for level_count, component in enumerate(self._components, 1):
            self._solve(component, level_count, answer, options, stop)
            if self._is_decided(answer, level_count):
                continue
            yield component
            if not is_proven(component, 0):
                break

    def _solve(
        self,
        component: Component,
        level_count: int,
        answer: Answered,
        options: Options,
        stop: Stop,
    ) -> None:
        """Solve the component of some levels, from what the answer has of them, until that is decided elsewhere.

        By the exact model; by nodes, if that would be too large.
        """
        is_over = Cancelled(
            lambda: (
                bool(stop.cancelled) or self._is_decided(answer, level_count)
            )
        )
        own, _ = split_answer(component.subset.demands, answer.placements)
        component.consider(own)
        part = stop.within(_PART * stop.seconds())
        until = replace(part, cancelled=is_over)
        if component.size <= self._largest:
            component.improve(0, options, until, None)
            return
        outcome = nodes_first(component, 0, options, until)
        if outcome is not None:
            raise_bounds(component, [outcome.bound])
            component.consider(outcome.placements)

    def _is_decided(self, answer: Answered, level_count: int) -> bool:
        """Whether it is known that there is no more of the highest levels."""
        reached, best = known_of(answer, self._levels)
        return reached[:level_count] == best[:level_count]

    def answer_with(
        self, component: Component, placements: Sequence[Placement]
    ) -> Sequence[Placement] | None:
        """Return an answer to all demands with that of a component; None if the component's own is no better.

        With lower levels that are kept for the sake of higher ones, it may still be worth less than the one in hand.

        Parameters
        ----------
        placements
            An answer to all demands: who is not in the component stays, if there is room.
        """
        own, others = split_answer(component.subset.demands, placements)
        cost = component.tiers[0].cost(component.subset, own)
        if component.cost(0) >= cost:
            return None
        return joined_answer(
            self._problem, self._bonds, component.placements, others
        )

    def _demands_of_levels(
        self, subset: DemandSubset
    ) -> Iterator[DemandSubset]:
        """Give out the demands of the highest level with all that they may need, of the two highest, and so on.

        Never all demands.
        """
        for level in self._levels[:-1]:
            upper = upper_demands(subset, self._bonds, level.lowest)
            if len(upper.demands) == len(subset.demands):
                break
            if upper.demands:
                yield upper
