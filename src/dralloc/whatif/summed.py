"""What fits together on nodes that have nothing to do with each other: sums of what fits on each.

Of equivalent nodes (see `dralloc.problem.equivalent_nodes`) one front is found, with all of its points. A point of the
whole is a sum with one point for each node, so the best sum is found in numbers of nodes, however many there are (a
Minkowski sum of fronts; Ehrgott, Multicriteria Optimization, 2005).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dralloc.problem import Demand, Problem
from dralloc.problem.equivalent_nodes import equivalent_nodes
from dralloc.problem.subproblem import at_home, cut
from dralloc.solvers.cpsat import Options
from dralloc.whatif.divide import divide
from dralloc.whatif.fill import fill
from dralloc.whatif.front import Vector, find_front
from dralloc.whatif.mix import Mix
from dralloc.whatif.models.sums import Summands, best_sum

__all__ = ["Sums", "find_sums"]

_MOST_KINDS: Final = 64
_MOST_POINTS: Final = 600
"""With more kinds of nodes, or more points of them together, that is no less work than to look at the whole."""


@dataclass
class Sums:
    """What fits on nodes of so many kinds together.

    Parameters
    ----------
    sets
        By kind of node, how many there are, and the points that fit on one; each has been placed and checked.
    proven
        Whether everything that was said so far is proven.
    """

    sets: tuple[Summands, ...]
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


def find_sums(
    problem: Problem, demands: Sequence[Demand], most: Vector, options: Options, order: Sequence[int] | None = None
) -> Sums | None:
    """Find the points of each kind of node; None if nodes have to do with each other, or are of too many kinds.

    Parameters
    ----------
    order
        As in `dralloc.whatif.queue.find_queue`.
    """
    divided = divide(problem, demands)
    times = Counter(problem.all_nodes if order is None else order)
    classes = equivalent_nodes(divided.problem, divided.demands)
    if classes is None or len(classes.groups) > _MOST_KINDS:
        return None
    fronts: Counter[tuple[Vector, ...]] = Counter()
    left = _MOST_POINTS
    for group in classes.groups:
        points = _points(divided.problem, divided.demands, group[0], left, options)
        if points is None:
            return None
        fronts[points] += sum(times[divided.homes[part]] for part in group)
        left -= len(points)
    return Sums(tuple(Summands(times, points) for points, times in fronts.items()), most, options)


def _points(
    problem: Problem, demands: Sequence[Demand], node: int, limit: int, options: Options
) -> tuple[Vector, ...] | None:
    """All points of a node; None if there are more than so many, or one of them is not proven."""
    part = cut(problem, [node]).problem
    here = at_home(demands, node)
    alone = [fill(part, demand, options) for demand in here]
    mix = Mix(part, here, tuple(found.bound or 0 for found in alone), options)
    if not any(mix.most):
        return (mix.most,)

    def reach(least: Vector, last: int) -> Vector | None:
        crowd = mix.reach(least, last)
        return None if crowd is None else crowd.numbers

    front = find_front(mix.most, reach, limit)
    return front.points if front.complete and mix.proven else None
