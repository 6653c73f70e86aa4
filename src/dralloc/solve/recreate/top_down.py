"""The demands of the highest priorities alone, as if those below were not there.

Most changes of all demands are about the many of the lower priorities. Where many of a higher one wait, it takes long
until room is made for all of them; alone they have most of it soon, as each change is about them, and takes a fraction
of the time. So one priority after the other is searched with those above it, and those below come back afterwards:
where they were, if there is room, or wherever they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from dralloc.objects.choices import Options
from dralloc.problem import DemandIndex, Problem
from dralloc.problem.indices import indices, numbered
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit.completion import completed_by_weight
from dralloc.solve.recreate.answer import movable_units
from dralloc.solve.recreate.search import recreated

__all__ = ["improved_from_the_top"]

_MANY: Final = 30
"""A priority is searched if more than one in so many of its demands wait: for fewer, changes of all demands make room,
and those below keep most of their places."""

_PART: Final = 0.15
"""The part of the time that one priority may take."""

_PART_OF_ALL: Final = 0.5
"""The part of the time after which no other priority is begun."""


def improved_from_the_top(
    problem: Problem,
    placements: Sequence[Placement],
    options: Options,
    seconds: Callable[[], float],
) -> Iterator[tuple[Placement, ...]]:
    """Give out a better answer for each priority but the last one of which, with those above it, more can be placed.

    Parameters
    ----------
    placements
        The answer to begin with.
    options, seconds
        As `recreated` takes them.
    """
    begun_with = seconds()
    priorities = {demand.priority for demand in problem.demands}
    for priority in sorted(priorities, reverse=True)[:-1]:
        if seconds() < (1 - _PART_OF_ALL) * begun_with:
            break
        if not _do_many_wait(problem, placements, priority):
            continue
        upper = _UpperDemands(problem, placements, priority)
        better = upper.improved(options, _within(seconds, _PART * begun_with))
        if better is not None:
            placements = better
            yield placements


def _within(
    seconds: Callable[[], float], allowance: float
) -> Callable[[], float]:
    """Return a clock for no more than so many of the seconds that are left."""
    if allowance == inf:
        return seconds
    end = seconds() - allowance
    return lambda: seconds() - end


def _do_many_wait(
    problem: Problem, placements: Sequence[Placement], priority: int
) -> bool:
    """Whether so many demands of a priority wait that they are searched for themselves."""
    placed = {placement.demand for placement in placements}
    members = [
        index
        for index, demand in numbered(problem.demands)
        if demand.priority == priority
    ]
    waiting = len(set(members) - placed)
    return waiting * _MANY > len(members)


class _UpperDemands:
    """The demands of some priority at least, beside those of lower ones that have to stay where they are.

    Those step aside that may come and go by themselves (see `movable_units`), as nobody depends on them; a gang does as
    a whole, or not at all.
    """

    def __init__(
        self, problem: Problem, placements: Sequence[Placement], priority: int
    ) -> None:
        self._problem = problem
        self._placements = placements
        stepping_aside: set[DemandIndex] = set()
        for unit in movable_units(problem, placements):
            demands = [problem.demands[member] for member in unit.members]
            if all(demand.priority < priority for demand in demands):
                stepping_aside.update(unit.members)
        self._demands = [
            demand
            for demand in indices(problem.demands)
            if demand not in stepping_aside
        ]

    def improved(
        self, options: Options, seconds: Callable[[], float]
    ) -> tuple[Placement, ...] | None:
        """Return an answer to all demands with more of these; None if none is worth more."""
        upper = replace(
            self._problem,
            demands=tuple(
                self._problem.demands[demand] for demand in self._demands
            ),
        )
        before = self._inward(self._placements)
        after: Sequence[Placement] = before
        for answer in recreated(upper, before, options, seconds):
            after = answer
        if _weight(upper, after) <= _weight(upper, before):
            return None
        members = set(self._demands)
        aside = [
            placement
            for placement in self._placements
            if placement.demand not in members
        ]
        together = [*self._outward(after), *aside]
        return completed_by_weight(self._problem, together).placements

    def _inward(self, placements: Sequence[Placement]) -> list[Placement]:
        """Return the placements of these demands, in their own numbers."""
        own_index = {
            demand: DemandIndex(index)
            for index, demand in enumerate(self._demands)
        }
        return [
            replace(placement, demand=own_index[placement.demand])
            for placement in placements
            if placement.demand in own_index
        ]

    def _outward(self, placements: Sequence[Placement]) -> list[Placement]:
        """Return placements in the numbers of the whole problem."""
        return [
            replace(placement, demand=self._demands[placement.demand])
            for placement in placements
        ]


def _weight(problem: Problem, placements: Sequence[Placement]) -> int:
    return sum(
        problem.demands[placement.demand].weight for placement in placements
    )
