"""How many of several demands fit together: every way in which none can be had more often without loss of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dralloc.ask.whatif.front import Vector, find_front
from dralloc.ask.whatif.isolated_first_fit import isolated_first_fit
from dralloc.ask.whatif.joint_packing import JointPacking
from dralloc.ask.whatif.minkowski import minkowski_sum
from dralloc.ask.whatif.representatives import NotRepresentativeError
from dralloc.problem import Demand, Problem
from dralloc.solve.optimum import Options

__all__ = ["FrontPoint", "ParetoFront", "pareto_front"]


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """Numbers of demands that fit together, and how many first fit places if it is given exactly these, in order."""

    numbers: Vector
    first_fit: Vector


@dataclass(frozen=True, slots=True)
class ParetoFront:
    """The Pareto front of several demands.

    Parameters
    ----------
    points
        Each has been placed, and the checker has accepted it; where nodes have nothing to do with each other, on one
        node of each class.
    complete
        Whether there is no other point.
    proven
        Whether no point can be improved; false if the time limit has ended a search.
    """

    points: tuple[FrontPoint, ...]
    complete: bool
    proven: bool


def pareto_front(  # noqa: PLR0913 - the last ones have defaults
    problem: Problem,
    demands: Sequence[Demand],
    most: Vector,
    *,
    order: Sequence[int] | None = None,
    limit: int | None = None,
    options: Options | None = None,
) -> ParetoFront:
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
    NotRepresentativeError
        Some stand for others, and have to do with each other.
    """
    chosen = options or Options()
    packing = JointPacking(problem, demands, most, chosen)
    sums = minkowski_sum(problem, demands, most, chosen, order)
    isolated = isolated_first_fit(problem, demands, most, order)
    alone = order is None or len(order) == len(problem.nodes)
    if not alone and (sums is None or isolated is None):
        raise NotRepresentativeError
    exact = packing if sums is None else sums
    front = find_front(most, exact.reach, limit)

    def first_fit(numbers: Vector) -> Vector:
        found = None if isolated is None else isolated.first_fit(numbers)
        if found is None and not alone:
            raise NotRepresentativeError
        return packing.first_fit(numbers) if found is None else found

    points = tuple(FrontPoint(numbers, first_fit(numbers)) for numbers in front.points)
    return ParetoFront(points, front.complete, exact.proven)
