"""Where in a unit each holding lies: partitions by the counters that they consume, shares stacked, both to scale."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from dralloc.problem import Problem
from dralloc.show.plot.held_devices import HeldDevice
from dralloc.show.plot.physical_devices import PhysicalDevice

__all__ = ["Block", "Box", "blocks"]


class Box(NamedTuple):
    """A rectangle in a unit; the unit is a square from 0 to 1, its y axis points down."""

    left: float
    top: float
    width: float
    height: float


class Block(NamedTuple):
    """A holding and its place."""

    holding: HeldDevice
    box: Box


def blocks(
    problem: Problem, unit: PhysicalDevice, held: Sequence[HeldDevice]
) -> list[Block]:
    """The blocks of a unit. Admin access takes nothing: in a counter set it has no block."""
    if not unit.counters:
        if unit.shareable:
            return list(
                _stacked(
                    [(one,) for one in held],
                    [_share_of_device(problem, one) for one in held],
                )
            )
        return list(_beside(held, Box(0, 0, 1, 1)))
    groups = _by_device([one for one in held if not one.admin])
    placed = [_tracks(problem, unit, group) for group in groups]
    if unit.tracks and all(placed):
        return list(_in_tracks(unit, groups, placed))
    return list(
        _stacked(groups, [_share_of_set(problem, unit, group) for group in groups])
    )


def _by_device(held: Sequence[HeldDevice]) -> list[tuple[HeldDevice, ...]]:
    found: dict[int, list[HeldDevice]] = {}
    for one in held:
        found.setdefault(one.device, []).append(one)
    return [tuple(group) for group in found.values()]


def _beside(group: Sequence[HeldDevice], box: Box) -> Iterator[Block]:
    """The holders of one device side by side."""
    width = box.width / len(group) if group else 0
    for place, one in enumerate(group):
        yield Block(one, box._replace(left=box.left + place * width, width=width))


def _stacked(
    groups: Sequence[Sequence[HeldDevice]], shares: Sequence[float]
) -> Iterator[Block]:
    """One below the other; squeezed if they hold more than there is."""
    scale = 1 / max(1.0, sum(shares))
    top = 0.0
    for group, share in zip(groups, shares, strict=True):
        yield from _beside(group, Box(0, top, 1, share * scale))
        top += share * scale


def _share_of_device(problem: Problem, holding: HeldDevice) -> float:
    """The largest share that it has of any capacity of its device."""
    capacity = problem.devices[holding.device].capacity
    shares = [
        amount / capacity[name].total
        for name, amount in holding.amounts
        if capacity[name].total
    ]
    return max(shares, default=0.0) or 1 / 16


def _share_of_set(
    problem: Problem, unit: PhysicalDevice, group: Sequence[HeldDevice]
) -> float:
    """The largest share that a device in use has of any counter of the set."""
    own = set(unit.counters)
    return max(
        (
            amount / problem.counters[index].total
            for one in group
            for index, amount in one.counters
            if index in own and problem.counters[index].total
        ),
        default=0.0,
    )


def _tracks(
    problem: Problem, unit: PhysicalDevice, group: Sequence[HeldDevice]
) -> Mapping[int, float]:
    """The share that a device in use has of each track, by the track's place."""
    places = {index: place for place, index in enumerate(unit.tracks)}
    return {
        places[index]: amount / problem.counters[index].total
        for index, amount in group[0].counters
        if index in places and amount
    }


def _in_tracks(
    unit: PhysicalDevice,
    groups: Sequence[Sequence[HeldDevice]],
    placed: Sequence[Mapping[int, float]],
) -> Iterator[Block]:
    filled: dict[int, float] = defaultdict(float)
    height = 1 / len(unit.tracks)
    for group, shares in zip(groups, placed, strict=True):
        for places in _runs(shares, filled):
            left, width = filled[places[0]], shares[places[0]]
            box = Box(
                left, places[0] * height, min(width, 1 - left), len(places) * height
            )
            yield from _beside(group, box)
        for place, share in shares.items():
            filled[place] += share


def _runs(
    shares: Mapping[int, float], filled: Mapping[int, float]
) -> Iterator[list[int]]:
    """Tracks that follow each other and look the same."""
    numbered = enumerate(sorted(shares))
    for _, run in groupby(
        numbered, lambda one: (one[1] - one[0], shares[one[1]], filled.get(one[1], 0.0))
    ):
        yield [place for _, place in run]
