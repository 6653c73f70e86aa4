"""The demands of the highest priorities alone, as if those below were not there.

Most changes of all demands are about the many of the lower priorities. Where many of a higher one wait, it takes long
until room is made for all of them; alone they have most of it soon, as each change is about them, and takes a fraction
of the time. So one priority after the other is searched with those above it, and those below come back afterwards:
where they were, if there is room, or wherever they fit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from dralloc.objects.choices import Options
from dralloc.problem import DemandIndex, Problem
from dralloc.problem.indices import indices, numbered
from dralloc.problem.solution import Placement
from dralloc.solve.caps import within_caps
from dralloc.solve.excerpt import Excerpt
from dralloc.solve.first_fit.completion import completed_by_weight
from dralloc.solve.recreate.search import recreated
from dralloc.solve.recreate.units import movable_units

__all__ = ["TopDown"]

_MANY: Final = 30
"""A priority is searched if more than one in so many of its demands wait: for fewer, changes of all demands make room,
and those below keep most of their places."""

_PART: Final = 0.15
"""The part of the time that one priority may take."""

_PART_OF_ALL: Final = 0.5
"""The part of the time after which no other priority is begun."""


class TopDown:
    """The search from the top. It can be left, and gone on with from another answer.

    Parameters
    ----------
    problem
        What is to be placed.
    seconds
        How many seconds there are at the beginning.
    """

    def __init__(self, problem: Problem, seconds: float) -> None:
        self._problem = problem
        self._seconds = seconds
        priorities = {demand.priority for demand in problem.demands}
        self._priorities = deque(sorted(priorities, reverse=True)[:-1])

    def improved(
        self,
        placements: Sequence[Placement],
        options: Options,
        seconds_left: Callable[[], float],
    ) -> Iterator[tuple[Placement, ...]]:
        """Give out an answer after each priority but the last of which more is placed now, with those above it.

        Parameters
        ----------
        placements
            The answer to begin with.
        options, seconds_left
            As `recreated` takes them.
        """
        problem = self._problem
        end = (1 - _PART_OF_ALL) * self._seconds
        while self._priorities and seconds_left() >= end:
            priority = self._priorities.popleft()
            if not _do_many_wait(problem, placements, priority):
                continue
            upper = _upper_demands(problem, placements, priority)
            clock = _within(seconds_left, _PART * self._seconds)
            better = _improved(problem, placements, upper, options, clock)
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


def _upper_demands(
    problem: Problem, placements: Sequence[Placement], priority: int
) -> Excerpt:
    """Return the demands of some priority at least, beside those of lower ones that have to stay where they are.

    Those step aside that may come and go by themselves (see `movable_units`) and have no role in rules with others, as
    nobody depends on them; a gang does as a whole, or not at all.
    """
    stepping_aside: set[DemandIndex] = set()
    for unit in movable_units(problem, placements):
        members = [problem.demands[member] for member in unit.members]
        is_below = all(member.priority < priority for member in members)
        if is_below and not unit.rules:
            stepping_aside.update(unit.members)
    kept = [
        demand
        for demand in indices(problem.demands)
        if demand not in stepping_aside
    ]
    demands = tuple(problem.demands[demand] for demand in kept)
    return Excerpt(replace(problem, demands=demands), kept)


def _improved(
    problem: Problem,
    placements: Sequence[Placement],
    upper: Excerpt,
    options: Options,
    seconds: Callable[[], float],
) -> tuple[Placement, ...] | None:
    """Return an answer to all demands that places more of the upper ones, by weight; None if the search finds none.

    The others keep their places only as far as these are still free, so that the answer as a whole may be worth less.
    """
    upper_placements: list[Placement] = []
    others: list[Placement] = []
    for placement in placements:
        is_upper = placement.demand in upper.place_of
        (upper_placements if is_upper else others).append(placement)
    before = upper.inward(upper_placements)
    after: Sequence[Placement] = before
    for answer in recreated(upper.problem, before, options, seconds):
        after = answer
    if _weight(upper.problem, after) <= _weight(upper.problem, before):
        return None
    together = [*upper.outward(after), *others]
    # First fit knows nothing of caps.
    return tuple(
        within_caps(problem, completed_by_weight(problem, together).placements)
    )


def _weight(problem: Problem, placements: Sequence[Placement]) -> int:
    return sum(
        problem.demands[placement.demand].weight for placement in placements
    )
