"""How many copies of several demands fit beside each other: fronts of numbers, and the answers behind them.

A front has all vectors of numbers of which none can be raised without lowering another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod
from operator import mul
from typing import Final

from dralloc.ask.whatif.copies import PerDeviceBound, by_demand, replicated
from dralloc.check import check
from dralloc.objects.choices import Options
from dralloc.problem import Demand, NodeIndex, Problem
from dralloc.problem.solution import Placement, Solution
from dralloc.problem.subproblem import cut_alone
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.stopping import Stop, with_time_left

__all__ = ["Front", "JointPacking", "PlacedCopies", "Vector", "find_front"]

# ----------------------------------------------------------------------------
# All vectors of numbers of which none can be raised without lowering another: a
# Pareto front, box by box.
#
# Every point that is not found yet lies in one of some boxes. A point that is found
# cuts itself, and all that it dominates, out of each box around it: what is left of
# the box is, for each number in turn, the part where that number is larger (search
# regions by local bounds: Klamroth, Lacour and Vanderpooten, EJOR 245, 2015). An
# empty box goes.

Vector = tuple[int, ...]

_WIDE: Final = 8
"""A wider box is tried from its middle on, so that the first points lie far apart."""


@dataclass(frozen=True, slots=True)
class Front:
    """The points found, the largest first numbers first, and whether these are all."""

    points: tuple[Vector, ...]
    complete: bool


def find_front(
    upper: Vector,
    reach: Callable[[Vector, int], Vector | None],
    limit: int | None = None,
    stop: Stop | None = None,
) -> Front:
    """Find all points of a front, or so many that lie well apart, or those that there is time for.

    Parameters
    ----------
    upper
        Each number is at most this.
    reach
        Gives a point of the front whose numbers are at least those given; None if there is none. Of several the one
        with the least on the given axis is the best one for points that lie apart.
    limit
        End with so many points, and say whether there could be more.
    stop
        The outermost points are looked for even when time is over.
    """
    boxes = [_Box((0,) * len(upper), upper)]
    # The outermost points come first: where each number in turn is the last to count.
    ends = (reach((0,) * len(upper), axis) for axis in range(len(upper)))
    points = list(dict.fromkeys(point for point in ends if point is not None))[
        :limit
    ]
    for point in points:
        boxes = _without(boxes, point)
    while boxes and (limit is None or len(points) < limit):
        if stop is not None and stop.reached():
            break
        box = max(boxes, key=lambda candidate: candidate.volume)
        least, axis = box.ask()
        new_point = reach(least, axis)
        if new_point is None:
            boxes.remove(box)
            # Nothing is as large as that, but below it there may be points.
            boxes += box.below(axis, least[axis]) if least != box.lower else []
        else:
            points.append(new_point)
            boxes = _without(boxes, new_point)
    return Front(tuple(sorted(points, reverse=True)), not boxes)


@dataclass(frozen=True, slots=True)
class _Box:
    """The points between two corners, both included; no point that is at least the first exceeds the second."""

    lower: Vector
    upper: Vector

    @property
    def volume(self) -> int:
        return prod(
            high - low + 1
            for low, high in zip(self.lower, self.upper, strict=True)
        )

    def ask(self) -> tuple[Vector, int]:
        """Return the point to try next, the corner or the middle of the longest edge of a wide box, and that edge."""
        widths = [
            high - low for low, high in zip(self.lower, self.upper, strict=True)
        ]
        axis = max(range(len(widths)), key=widths.__getitem__)
        if widths[axis] < _WIDE:
            return self.lower, axis
        middle = self.lower[axis] + (widths[axis] + 1) // 2
        return _with(self.lower, axis, middle), axis

    def below(self, axis: int, value: int) -> list[_Box]:
        """The part where one number is smaller than a value; nothing if it is empty."""
        return (
            [replace(self, upper=_with(self.upper, axis, value - 1))]
            if self.lower[axis] < value
            else []
        )

    def beyond(self, point: Vector) -> list[_Box]:
        """Return, for each number, the part where it is larger than the point's, unless that is empty."""
        larger = [
            axis for axis, value in enumerate(point) if self.upper[axis] > value
        ]
        return [
            replace(self, lower=_with(self.lower, axis, point[axis] + 1))
            for axis in larger
        ]

    def includes(self, box: _Box) -> bool:
        return _covers(box.lower, self.lower) and _covers(self.upper, box.upper)


def _without(boxes: Sequence[_Box], point: Vector) -> list[_Box]:
    """Return the boxes without a point and everything that it dominates; a box within another one is left out."""
    parts = (
        box.beyond(point) if _covers(point, box.lower) else [box]
        for box in boxes
    )
    distinct = list(dict.fromkeys(chain.from_iterable(parts)))
    return [box for box in distinct if not _is_within(box, distinct)]


def _is_within(box: _Box, boxes: Sequence[_Box]) -> bool:
    """Whether another box includes a box."""
    return any(larger.includes(box) for larger in boxes if larger != box)


def _covers(vector: Vector, least: Vector) -> bool:
    return all(value >= low for value, low in zip(vector, least, strict=True))


def _with(vector: Vector, axis: int, value: int) -> Vector:
    return *vector[:axis], value, *vector[axis + 1 :]


# ----------------------------------------------------------------------------
# Several demands at once: how many of each fit beside the others.

_MANY_COPIES: Final = 2.5
"""With fewer copies of each demand on average, classes have little to count: their patterns take more time than the
model of devices."""

PlacedCopies = tuple[tuple[Placement, ...], ...]
"""For each of several demands, the placements of its copies; the number of a placement's demand means nothing."""


@dataclass
class JointPacking:
    """Copies of several demands in an inventory.

    Parameters
    ----------
    problem
        Of which only the inventory is looked at.
    demands
        None of them can be had without end.
    max_counts
        How many of each fit alone, at most.
    options, stop
        Each answer is looked for as long as both allow.
    proven
        Whether everything that was said so far is proven.
    placed
        What has been placed so far, by how many of each; the checker has accepted it.
    """

    problem: Problem
    demands: Sequence[Demand]
    max_counts: Vector
    options: Options = field(default_factory=Options)
    stop: Stop = field(default_factory=Stop)
    proven: bool = True
    placed: dict[Vector, PlacedCopies] = field(default_factory=dict)

    @classmethod
    def alone(  # noqa: PLR0913 - as the class, and a node
        cls,
        problem: Problem,
        demands: Sequence[Demand],
        node: NodeIndex,
        max_counts: Vector,
        options: Options,
        stop: Stop,
    ) -> JointPacking:
        """One node alone, and how many of each demand fit there, but not more than so many; these are placed.

        Raises
        ------
        Stopped
            The time is over before that is known of each.
        """
        part, local_demands = cut_alone(problem, demands, node)
        packing = cls(part, local_demands, max_counts, options, stop)
        packing.max_counts = tuple(
            packing._most_alone(demand)
            for demand in stop.each(range(len(demands)))
        )
        return packing

    def _most_alone(self, demand: int) -> int:
        """At most so many of a demand fit if no other is there."""
        bound = PerDeviceBound(self.problem, self.demands[demand]).total()
        limit = self.max_counts[demand]
        max_count = limit if bound is None else min(limit, bound)
        counts = _with((0,) * len(self.demands), demand, max_count)
        # Most often there is no question for a model, as one is asked for and there is room.
        if self.first_fit(counts) == counts:
            return max_count
        _, solution = self.best([[1] * count for count in counts])
        return solution.tiers[0].bound

    def reach(self, least: Vector, last: int = 0) -> Vector | None:
        """Place at least so many of each, and beyond that as many as possible; None if that is too many.

        What has to be had outweighs all that comes beyond, and there each demand outweighs the one that comes last.
        """
        extra = [
            high - low for low, high in zip(least, self.max_counts, strict=True)
        ]
        beyond = [
            1 if demand == last else extra[last] + 1
            for demand in range(len(least))
        ]
        total_beyond = sum(map(mul, extra, beyond))
        must = total_beyond + 1
        weights = [
            [must] * low + [weight] * further
            for low, further, weight in zip(least, extra, beyond, strict=True)
        ]
        counts, solution = self.best(weights)
        tier = solution.tiers[0]
        if any(count < low for count, low in zip(counts, least, strict=True)):
            # It is proven that so many of each do not fit if their weight is out of reach.
            self.proven &= tier.bound < sum(least) * must
            return None
        self.proven &= tier.proven
        return counts

    def best(self, weights: Sequence[Sequence[int]]) -> tuple[Vector, Solution]:
        """Return the numbers of copies with the largest weight, given the weights of the copies of each demand."""
        sizes = list(map(len, weights))
        problem = replicated(self.problem, self.demands, sizes)
        all_weights = chain.from_iterable(weights)
        weighted = (
            replace(copy, weight=weight)
            for copy, weight in zip(problem.demands, all_weights, strict=True)
        )
        problem = replace(problem, demands=tuple(weighted))
        options = with_time_left(self.options, self.stop)
        kinds = sum(map(bool, sizes))
        if sum(sizes) < _MANY_COPIES * kinds:
            options = replace(options, per_device=True)
        solution = solve(problem, options)
        return self._entered(problem, sizes, solution), solution

    def first_fit(self, counts: Vector) -> Vector:
        """Return how many of each first fit places, of so many of them, one demand after the other."""
        problem = replicated(self.problem, self.demands, counts)
        return self._entered(problem, counts, first_fit(problem))

    def _entered(
        self, problem: Problem, sizes: Sequence[int], solution: Solution
    ) -> Vector:
        """Check an answer to so many copies and keep it; returns how many of each it places."""
        check(problem, solution)
        placed = by_demand(solution.placements, sizes)
        counts = tuple(map(len, placed))
        if any(counts):
            self.placed.setdefault(counts, placed)
        return counts
