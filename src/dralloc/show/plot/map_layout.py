"""Which rows and units a device map shows, and where, in points from the upper left corner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, NamedTuple

from dralloc.problem import Problem
from dralloc.show.plot.blocks import Block, blocks
from dralloc.show.plot.canvas import WIDTH
from dralloc.show.plot.held_devices import HeldDevice
from dralloc.show.plot.physical_devices import MapRow, PhysicalDevice

__all__ = ["MapLayout", "MapText", "Spot", "held_in", "lay_out", "most_telling"]

_GAP: Final = 8.0
_TRACK: Final = 15.0
"""Height of a track, of which a label in one line needs that much."""
_ACROSS: Final = 8
_MOST_UNITS: Final = 32
_TITLE: Final = 12.0
_HEADER: Final = 22.0


class MapText(NamedTuple):
    """A line of text: the name of a row or of a unit, or what is left out."""

    text: str
    left: float
    baseline: float
    level: int


class Spot(NamedTuple):
    """A unit in its place, with what is in it."""

    unit: PhysicalDevice
    left: float
    top: float
    width: float
    height: float
    blocks: list[Block]


@dataclass(frozen=True)
class MapLayout:
    """Everything in its place. ``height`` is where the last row ends."""

    lines: tuple[MapText, ...]
    spots: tuple[Spot, ...]
    height: float


def most_telling(
    rows: Sequence[MapRow], tellings: Sequence[Mapping[int, int]], most: int
) -> tuple[MapRow, ...]:
    """At most so many rows: those with the largest counts, the first count first; in their order.

    `tellings` has counts by device: how many holdings of one sort or another it has.
    """
    if len(rows) <= most:
        return tuple(rows)

    def weight(place: int) -> tuple[int, ...]:
        devices = [device for unit in rows[place].units for device in unit.devices]
        return tuple(
            -sum(counts.get(device, 0) for device in devices) for counts in tellings
        )

    kept = sorted(
        sorted(range(len(rows)), key=lambda place: (*weight(place), place))[:most]
    )
    return tuple(rows[place] for place in kept)


def held_in(
    problem: Problem, held: Sequence[HeldDevice]
) -> Mapping[int, Sequence[HeldDevice]]:
    """Holdings by the slot of their device."""
    found: dict[int, list[HeldDevice]] = {}
    for one in held:
        found.setdefault(problem.devices[one.device].slot, []).append(one)
    return found


def lay_out(
    problem: Problem,
    rows: Sequence[MapRow],
    held: Mapping[int, Sequence[HeldDevice]],
    left_out: int,
    top: float,
) -> MapLayout:
    """Put the rows below each other, the units of a row beside each other in lines."""
    lines: list[MapText] = []
    spots: list[Spot] = []
    for row in rows:
        top += _HEADER
        filled = {unit: _blocks(problem, unit, held) for unit in row.units}
        shown = _shown(row.units, filled)
        count = len(
            {
                block.holding.owner
                for found in filled.values()
                for block in found
                if block.holding.new
            }
        )
        lines.append(
            MapText(f"{row.name}: {count or 'nothing'} placed here", 0, top - 8, 1)
        )
        for line in _in_lines(shown):
            height = max(map(_height, line))
            for place, unit in enumerate(line):
                left = place * (_unit_width() + _GAP)
                lines.append(MapText(unit.title, left, top + _TITLE - 4, 2))
                spots.append(
                    Spot(
                        unit,
                        left,
                        top + _TITLE,
                        _unit_width(),
                        _height(unit),
                        filled[unit],
                    )
                )
            top += _TITLE + height + _GAP
        if len(shown) < len(row.units):
            lines.append(
                MapText(
                    f"and {len(row.units) - len(shown)} more devices", 0, top + 8, 2
                )
            )
            top += _HEADER - _GAP
    if left_out:
        lines.append(
            MapText(f"and {left_out} more nodes or groups of nodes", 0, top + 14, 1)
        )
        top += _HEADER
    return MapLayout(tuple(lines), tuple(spots), top)


def _blocks(
    problem: Problem, unit: PhysicalDevice, held: Mapping[int, Sequence[HeldDevice]]
) -> list[Block]:
    found = [
        one
        if one.device == device
        else replace(one, device=device, counters=problem.devices[device].consumes)
        for device in unit.devices
        for one in held.get(problem.devices[device].slot, ())
    ]
    return blocks(problem, unit, sorted(found, key=lambda one: one.new))


def _shown(
    units: Sequence[PhysicalDevice], filled: Mapping[PhysicalDevice, Sequence[Block]]
) -> Sequence[PhysicalDevice]:
    """At most so many units; where some are left out, those that hold something come first, else in order."""
    if len(units) <= _MOST_UNITS:
        return units
    kept = sorted(
        range(len(units)), key=lambda place: (not filled[units[place]], place)
    )[:_MOST_UNITS]
    return [units[place] for place in sorted(kept)]


def _in_lines(units: Sequence[PhysicalDevice]) -> Iterator[Sequence[PhysicalDevice]]:
    order = Counter[tuple[str, float]]()
    for unit in units:
        order[unit.driver, _height(unit)] += 1
    places = {key: place for place, key in enumerate(order)}

    def line_key(unit: PhysicalDevice) -> int:
        return places[unit.driver, _height(unit)]

    for _, group in groupby(sorted(units, key=line_key), key=line_key):
        members = list(group)
        for start in range(0, len(members), _ACROSS):
            yield members[start : start + _ACROSS]


def _unit_width() -> float:
    return (WIDTH - (_ACROSS - 1) * _GAP) / _ACROSS


def _height(unit: PhysicalDevice) -> float:
    if unit.tracks:
        return _TRACK * min(len(unit.tracks), 16)
    return 8 * _TRACK if unit.counters or unit.shareable else 2 * _TRACK
