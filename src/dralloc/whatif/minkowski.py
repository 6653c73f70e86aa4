"""What fits together on nodes that have nothing to do with each other: sums of what fits on each.

Of equivalent nodes (see `dralloc.problem.equivalent_nodes`) one front is found, with all of its points. A point of the
whole is a sum with one point for each node, so the best sum is found in numbers of nodes, however many there are (a
Minkowski sum of fronts; Ehrgott, Multicriteria Optimization, 2005).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dralloc.problem import Demand, Problem
from dralloc.problem.equivalent_nodes import equivalent_nodes
from dralloc.solvers.cpsat import Options
from dralloc.whatif.divide import divide
from dralloc.whatif.front import Vector, find_front
from dralloc.whatif.joint_packing import JointPacking
from dralloc.whatif.models.sums import best_sum

__all__ = ["MinkowskiSum", "minkowski_sum"]

_MOST_CLASSES: Final = 64
_MOST_POINTS: Final = 600
"""With more classes of nodes, or more points of them together, that is no less work than to look at the whole."""


@dataclass
class MinkowskiSum:
    """What fits on nodes of so many classes together.

    Parameters
    ----------
    sets
        By the points that fit on one node, each of which has been placed and checked, how many nodes there are.
    proven
        Whether everything that was said so far is proven.
    """

    sets: Mapping[tuple[Vector, ...], int]
    most: Vector
    options: Options
    proven: bool = True

    def reach(self, least: Vector, last: int = 0) -> Vector | None:
        """The most of each beyond so many, each before the one that comes last; None if that is too many."""
        extra = self.most[last] - least[last]
        worth = [1 if place == last else extra + 1 for place in range(len(least))]
        found, proven = best_sum(self.sets, least, worth, self.options)
        self.proven &= proven
        return found


def minkowski_sum(
    problem: Problem, demands: Sequence[Demand], most: Vector, options: Options, order: Sequence[int] | None = None
) -> MinkowskiSum | None:
    """Find the points of each class of node; None if nodes have to do with each other, or are of too many classes.

    Parameters
    ----------
    order
        As in `dralloc.whatif.isolated_first_fit.isolated_first_fit`.
    """
    divided = divide(problem, demands)
    times = Counter(problem.all_nodes if order is None else order)
    classes = equivalent_nodes(divided.problem, divided.demands)
    if classes is None or len(classes.groups) > _MOST_CLASSES:
        return None
    fronts: Counter[tuple[Vector, ...]] = Counter()
    left = _MOST_POINTS
    for group in classes.groups:
        packing = JointPacking.alone(divided.problem, divided.demands, group[0], most, options)
        points = _points(packing, left)
        if points is None:
            return None
        fronts[points] += sum(times[divided.homes[part]] for part in group)
        left -= len(points)
    return MinkowskiSum(fronts, most, options)


def _points(packing: JointPacking, limit: int) -> tuple[Vector, ...] | None:
    """All points of a node; None if there are more than so many, or one of them is not proven."""
    if not any(packing.most):
        return (packing.most,)
    front = find_front(packing.most, packing.reach, limit)
    return front.points if front.complete and packing.proven else None
