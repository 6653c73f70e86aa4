"""All vectors of numbers of which none can be raised without lowering another: a Pareto front, box by box.

Every point that is not found yet lies in one of some boxes. A point that is found cuts itself, and all that it
dominates, out of each box around it: what is left of the box is, for each number in turn, the part where that number is
larger (search regions by local bounds: Klamroth, Lacour and Vanderpooten, EJOR 245, 2015). An empty box goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Final

__all__ = ["Front", "Vector", "find_front"]

Vector = tuple[int, ...]

_WIDE: Final = 8
"""A wider box is tried from its middle on, so that the first points lie far apart."""


@dataclass(frozen=True, slots=True)
class Front:
    """The points found, the largest first numbers first, and whether these are all."""

    points: tuple[Vector, ...]
    complete: bool


def find_front(
    most: Vector,
    reach: Callable[[Vector, int], Vector | None],
    limit: int | None = None,
) -> Front:
    """Find all points of a front, or so many that lie well apart.

    Parameters
    ----------
    most
        Each number is at most this.
    reach
        Gives a point of the front whose numbers are at least those given; None if there is none. Of several the one
        with the least at the given place is the best one for points that lie apart.
    limit
        End with so many points, and say whether there could be more.
    """
    boxes = [_Box((0,) * len(most), most)]
    # The outermost points come first: where each number in turn is the last to count.
    ends = (reach((0,) * len(most), axis) for axis in range(len(most)))
    points = list(dict.fromkeys(point for point in ends if point is not None))[:limit]
    for point in points:
        boxes = _without(boxes, point)
    while boxes and (limit is None or len(points) < limit):
        box = max(boxes, key=lambda each: each.volume)
        least, axis = box.ask()
        found = reach(least, axis)
        if found is None:
            boxes.remove(box)
            boxes += box.below(axis, least[axis]) if least != box.least else []
        else:
            points.append(found)
            boxes = _without(boxes, found)
    return Front(tuple(sorted(points, reverse=True)), not boxes)


@dataclass(frozen=True, slots=True)
class _Box:
    """The points between two corners, both included; no point that is at least the first exceeds the second."""

    least: Vector
    most: Vector

    @property
    def volume(self) -> int:
        return prod(
            high - low + 1 for low, high in zip(self.least, self.most, strict=True)
        )

    def ask(self) -> tuple[Vector, int]:
        """What to try to reach: the corner, or the middle of the longest edge of a wide box; and that edge."""
        widths = [high - low for low, high in zip(self.least, self.most, strict=True)]
        axis = max(range(len(widths)), key=lambda each: widths[each])
        if widths[axis] < _WIDE:
            return self.least, axis
        return _with(self.least, axis, self.least[axis] + (widths[axis] + 1) // 2), axis

    def below(self, axis: int, value: int) -> list[_Box]:
        """The part where one number is smaller than a value; nothing if it is empty."""
        return (
            [replace(self, most=_with(self.most, axis, value - 1))]
            if self.least[axis] < value
            else []
        )

    def beyond(self, point: Vector) -> list[_Box]:
        """For each number the part where it is larger than the point's, unless that is empty."""
        larger = [axis for axis, value in enumerate(point) if self.most[axis] > value]
        return [
            replace(self, least=_with(self.least, axis, point[axis] + 1))
            for axis in larger
        ]

    def includes(self, other: _Box) -> bool:
        return _covers(other.least, self.least) and _covers(self.most, other.most)


def _without(boxes: Sequence[_Box], point: Vector) -> list[_Box]:
    """What is left of the boxes beside a point and what it dominates; a box within another is left out."""
    parts = (box.beyond(point) if _covers(point, box.least) else [box] for box in boxes)
    distinct = list(dict.fromkeys(chain.from_iterable(parts)))
    return [
        box
        for box in distinct
        if not any(other.includes(box) for other in distinct if other != box)
    ]


def _covers(vector: Vector, least: Vector) -> bool:
    return all(number >= low for number, low in zip(vector, least, strict=True))


def _with(vector: Vector, axis: int, value: int) -> Vector:
    return *vector[:axis], value, *vector[axis + 1 :]
