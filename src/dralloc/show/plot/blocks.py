"""Where in a unit of a device map each holding lies.

Partitions lie by the counters that they consume, shares are stacked, both to scale.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from dralloc.problem import Problem
from dralloc.show.plot.holdings import HeldDevice
from dralloc.show.plot.physical_devices import PhysicalDevice

__all__ = ["Block", "Box", "blocks"]


class Box(NamedTuple):
    """A rectangle in a unit; the unit is a square from 0 to 1, its y axis points down."""

    x: float
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
    """Return the blocks of a unit. Admin access takes nothing: in a counter set it has no block."""
    if not unit.counters:
        if unit.shareable:
            return list(
                _stacked(
                    [(holding,) for holding in held],
                    [_share_of_device(problem, holding) for holding in held],
                )
            )
        return list(_beside(held, Box(0, 0, 1, 1)))
    groups = _by_device([holding for holding in held if not holding.admin])
    placed = [_tracks(problem, unit, group) for group in groups]
    if unit.tracks and all(placed):
        return list(_in_tracks(unit, groups, placed))
    return list(
        _stacked(
            groups, [_share_of_set(problem, unit, group) for group in groups]
        )
    )


def _by_device(held: Sequence[HeldDevice]) -> list[tuple[HeldDevice, ...]]:
    by_device: dict[int, list[HeldDevice]] = {}
    for holding in held:
        by_device.setdefault(holding.device, []).append(holding)
    return [tuple(group) for group in by_device.values()]


def _beside(group: Sequence[HeldDevice], box: Box) -> Iterator[Block]:
    """Yield the holders of one device side by side."""
    width = box.width / len(group) if group else 0
    for column, holding in enumerate(group):
        yield Block(
            holding, box._replace(x=box.x + column * width, width=width)
        )


def _stacked(
    groups: Sequence[Sequence[HeldDevice]], shares: Sequence[float]
) -> Iterator[Block]:
    """Stack holdings below each other; squeezed if they hold more than there is."""
    scale = 1 / max(1.0, sum(shares))
    top = 0.0
    for group, share in zip(groups, shares, strict=True):
        yield from _beside(group, Box(0, top, 1, share * scale))
        top += share * scale


def _share_of_device(problem: Problem, holding: HeldDevice) -> float:
    """Return the largest share that it has of any capacity of its device."""
    capacity = problem.devices[holding.device].capacity
    shares = [
        amount / capacity[name].total
        for name, amount in holding.amounts
        # A claim keeps what it recorded of a capacity that is not published any more.
        if name in capacity and capacity[name].total
    ]
    return max(shares, default=0.0) or 1 / 16


def _share_of_set(
    problem: Problem, unit: PhysicalDevice, group: Sequence[HeldDevice]
) -> float:
    """Return the largest share that a device in use has of any counter of the set."""
    set_counters = set(unit.counters)
    return max(
        (
            amount / problem.counters[index].total
            for holding in group
            for index, amount in holding.counters
            if index in set_counters and problem.counters[index].total
        ),
        default=0.0,
    )


def _tracks(
    problem: Problem, unit: PhysicalDevice, group: Sequence[HeldDevice]
) -> Mapping[int, float]:
    """Return the share that a device in use has of each track, by the track's position."""
    positions = {index: position for position, index in enumerate(unit.tracks)}
    return {
        positions[index]: amount / problem.counters[index].total
        for index, amount in group[0].counters
        if index in positions and amount
    }


def _in_tracks(
    unit: PhysicalDevice,
    groups: Sequence[Sequence[HeldDevice]],
    placed: Sequence[Mapping[int, float]],
) -> Iterator[Block]:
    filled: dict[int, float] = defaultdict(float)
    height = 1 / len(unit.tracks)
    for group, shares in zip(groups, placed, strict=True):
        for positions in _runs(shares, filled):
            start, width = filled[positions[0]], shares[positions[0]]
            box = Box(
                start,
                positions[0] * height,
                min(width, 1 - start),
                len(positions) * height,
            )
            yield from _beside(group, box)
        for position, share in shares.items():
            filled[position] += share


def _runs(
    shares: Mapping[int, float], filled: Mapping[int, float]
) -> Iterator[list[int]]:
    """Tracks that follow each other and look the same."""
    numbered = enumerate(sorted(shares))
    for _, run in groupby(
        numbered,
        lambda numbered_track: (
            numbered_track[1] - numbered_track[0],
            shares[numbered_track[1]],
            filled.get(numbered_track[1], 0.0),
        ),
    ):
        yield [position for _, position in run]
