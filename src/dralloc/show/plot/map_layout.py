"""Which rows and units a device map shows, and where, in points from the upper left corner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, NamedTuple

from dralloc.problem import DeviceIndex, Problem
from dralloc.show.plot.blocks import Block, blocks
from dralloc.show.plot.canvas import WIDTH
from dralloc.show.plot.holdings import HeldDevice
from dralloc.show.plot.physical_devices import MapRow, PhysicalDevice

__all__ = [
    "MapLayout",
    "MapText",
    "Spot",
    "held_by_slot",
    "layout_of",
    "most_telling",
]

_GAP: Final = 8.0
_TRACK: Final = 15.0
"""Height of a track, of which a label in one line needs that much."""
_ACROSS: Final = 8
"""How many units stand beside each other; a node has eight GPUs at most, as a rule."""
_MOST_UNITS: Final = 32
"""How many units of a row are drawn."""
_TITLE: Final = 12.0
"""Height of the title of a unit."""
_HEADER: Final = 22.0
"""Height of the name of a row."""


class MapText(NamedTuple):
    """A line of text: the name of a row or of a unit, or what is left out."""

    text: str
    x: float
    baseline: float
    level: int


class Spot(NamedTuple):
    """A unit in its place, with what is in it."""

    unit: PhysicalDevice
    x: float
    top: float
    width: float
    height: float
    blocks: list[Block]


@dataclass(frozen=True)
class MapLayout:
    """The texts and units of a map in their places. ``height`` is where the last row ends."""

    lines: tuple[MapText, ...]
    spots: tuple[Spot, ...]
    height: float


def most_telling(
    rows: Sequence[MapRow], tellings: Sequence[Mapping[int, int]], maximum: int
) -> tuple[MapRow, ...]:
    """Return at most so many rows: those with the largest counts, the first count first; in their order.

    `tellings` has counts by device: how many holdings of one sort or another it has.
    """
    if len(rows) <= maximum:
        return tuple(rows)

    def rank(row_index: int) -> tuple[int, ...]:
        devices = [
            device for unit in rows[row_index].units for device in unit.devices
        ]
        totals = [_total(counts, devices) for counts in tellings]
        return (*(-total for total in totals), row_index)

    most_telling_first = sorted(range(len(rows)), key=rank)
    return tuple(
        rows[row_index] for row_index in sorted(most_telling_first[:maximum])
    )


def _total(counts: Mapping[int, int], devices: Iterable[DeviceIndex]) -> int:
    return sum(counts.get(device, 0) for device in devices)


def held_by_slot(
    problem: Problem, held: Sequence[HeldDevice]
) -> Mapping[int, Sequence[HeldDevice]]:
    """Group holdings by the slot of their device."""
    by_slot: dict[int, list[HeldDevice]] = {}
    for holding in held:
        by_slot.setdefault(problem.devices[holding.device].slot, []).append(
            holding
        )
    return by_slot


def layout_of(
    problem: Problem,
    rows: Sequence[MapRow],
    held: Mapping[int, Sequence[HeldDevice]],
    left_out: int,
    top: float,
) -> MapLayout:
    """Put the rows below each other, the units of a row beside each other in lines.

    Parameters
    ----------
    held
        What is held, by the slot of its device (`held_by_slot`).
    left_out
        How many rows are not drawn, which a line below the others says.
    top
        Where the first row begins.
    """
    lines: list[MapText] = []
    spots: list[Spot] = []
    for row in rows:
        top += _HEADER
        filled = {unit: _blocks(problem, unit, held) for unit in row.units}
        shown = _shown(row.units, filled)
        # Units that are left out count, too, and an owner with several devices once.
        placed = {
            block.holding.owner
            for unit_blocks in filled.values()
            for block in unit_blocks
            if block.holding.new
        }
        lines.append(
            MapText(
                f"{row.name}: {len(placed) or 'nothing'} placed here",
                0,
                top - 8,
                1,
            )
        )
        for line in _in_lines(shown):
            height = max(map(_height, line))
            for column, unit in enumerate(line):
                x = column * (_unit_width() + _GAP)
                lines.append(MapText(unit.title, x, top + _TITLE - 4, 2))
                spots.append(
                    Spot(
                        unit,
                        x,
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
                    f"and {len(row.units) - len(shown)} more devices",
                    0,
                    top + 8,
                    2,
                )
            )
            top += _HEADER - _GAP
    if left_out:
        lines.append(
            MapText(
                f"and {left_out} more nodes or groups of nodes", 0, top + 14, 1
            )
        )
        top += _HEADER
    return MapLayout(tuple(lines), tuple(spots), top)


def _blocks(
    problem: Problem,
    unit: PhysicalDevice,
    held: Mapping[int, Sequence[HeldDevice]],
) -> list[Block]:
    unit_holdings: list[HeldDevice] = []
    for device in unit.devices:
        counters = problem.devices[device].consumes
        for holding in held.get(problem.devices[device].slot, ()):
            # A holding may name another number of the same slot: the device as the pool
            # published it before.
            is_current = holding.device == device
            unit_holdings.append(
                holding
                if is_current
                else replace(holding, device=device, counters=counters)
            )
    # What was held before is drawn first, so that it stays where it was in all pictures.
    return blocks(
        problem, unit, sorted(unit_holdings, key=lambda holding: holding.new)
    )


def _shown(
    units: Sequence[PhysicalDevice],
    filled: Mapping[PhysicalDevice, Sequence[Block]],
) -> Sequence[PhysicalDevice]:
    """Return at most so many units, in order; those that hold nothing are the first to be left out."""
    if len(units) <= _MOST_UNITS:
        return units
    shown = sorted(
        range(len(units)),
        key=lambda unit_index: (not filled[units[unit_index]], unit_index),
    )[:_MOST_UNITS]
    return [units[unit_index] for unit_index in sorted(shown)]


def _in_lines(
    units: Sequence[PhysicalDevice],
) -> Iterator[Sequence[PhysicalDevice]]:
    """Yield the lines of a row: units of one driver and height, as many as there is room for."""
    order = Counter[tuple[str, float]]()
    for unit in units:
        order[unit.driver, _height(unit)] += 1
    positions = {key: position for position, key in enumerate(order)}

    def line_key(unit: PhysicalDevice) -> int:
        return positions[unit.driver, _height(unit)]

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
