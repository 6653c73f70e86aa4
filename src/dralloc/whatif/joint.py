"""How many of several demands fit together: every way in which none can be had more often at no loss of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dralloc.problem import Demand, Problem
from dralloc.solvers.cpsat import Options
from dralloc.whatif.front import Vector, find_front
from dralloc.whatif.mix import Mix
from dralloc.whatif.queue import find_queue
from dralloc.whatif.summed import find_sums
from dralloc.whatif.twins import EveryNodeCountsError

__all__ = ["Joint", "Point", "join"]


@dataclass(frozen=True, slots=True)
class Point:
    """Numbers of demands that fit together, and how many first fit places if it is given exactly these, in order."""

    numbers: Vector
    first_fit: Vector


@dataclass(frozen=True, slots=True)
class Joint:
    """The Pareto front of several demands.

    Parameters
    ----------
    points
        Each has been placed, and the checker has accepted it; where nodes have nothing to do with each other, on one
        node of each kind.
    complete
        Whether there is no other point.
    proven
        Whether no point can be improved; false if the time limit has ended a search.
    """

    points: tuple[Point, ...]
    complete: bool
    proven: bool


def join(  # noqa: PLR0913 - the last ones have defaults
    problem: Problem,
    demands: Sequence[Demand],
    most: Vector,
    *,
    order: Sequence[int] | None = None,
    limit: int | None = None,
    options: Options | None = None,
) -> Joint:
    """Find the front, or so many points of it that lie well apart.

    Where nodes have nothing to do with each other it is put together from those of single nodes, else of the whole.

    Parameters
    ----------
    problem
        Of which only the inventory is looked at.
    demands
        None of them can be had without end.
    most
        How many of each fit alone, at most.
    order
        For each node in search order the one of the problem that stands for it; None if they all stand for themselves.
    limit
        The largest number of points; None for all.

    Raises
    ------
    EveryNodeCountsError
        Some stand for others, and have to do with each other.
    """
    chosen = options or Options()
    mix = Mix(problem, demands, most, chosen)
    sums = find_sums(problem, demands, most, chosen, order)
    queue = find_queue(problem, demands, most, order)
    alone = order is None or len(order) == len(problem.nodes)
    if not alone and (sums is None or queue is None):
        raise EveryNodeCountsError

    def reach(least: Vector, last: int) -> Vector | None:
        crowd = mix.reach(least, last)
        return None if crowd is None else crowd.numbers

    front = find_front(most, reach if sums is None else sums.reach, limit)

    def first_fit(numbers: Vector) -> Vector:
        found = None if queue is None else queue.first_fit(numbers)
        if found is None and not alone:
            raise EveryNodeCountsError
        return mix.first_fit(numbers) if found is None else found

    points = tuple(Point(numbers, first_fit(numbers)) for numbers in front.points)
    return Joint(points, front.complete, mix.proven if sums is None else sums.proven)
