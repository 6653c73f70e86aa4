"""Rows that follow from others by rounding: of those who need more than half of something, one gets it.

In fractions, five demands of 60% each share three devices; but no two of them fit on one. So a row that somebody draws
on with more than half of its limit, and not with all of it, gets a second one: it counts who does, and its limit is 1,
as two of them would take more than there is (Chvátal, Discrete Mathematics 4, 1973, with the multiplier 2). Where the
same demands need more than half of several rows, of memory and of multiprocessors, say, one row says it all.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

from dralloc.solve.optimum.relax.demand_kinds import ResourceRow
from dralloc.solve.optimum.relax.offers import NodeOffers

__all__ = ["with_halves"]


class _WayIndex(NamedTuple):
    """The number of a supply, and that of one of its ways."""

    supply: int
    way: int


def with_halves(offers: NodeOffers) -> NodeOffers:
    """Return the same offers, with the second rows behind all others, and draws on them."""
    rows = list(offers.rows)
    half_rows: dict[_WayIndex, list[int]] = defaultdict(list)
    for row, ways in _ways_by_halved_row(offers).items():
        for index in ways:
            half_rows[index].append(len(rows))
        limited = offers.rows[row]
        role, name = ("half", limited.role), ("half", limited.name)
        rows.append(ResourceRow(limited.node, role, 1, name))
    supplies = list(offers.supplies)
    for (supply, way), numbers in half_rows.items():
        ways_of_supply = list(supplies[supply].ways)
        before = ways_of_supply[way]
        draws = (*before.draws, *((number, 1) for number in numbers))
        ways_of_supply[way] = before._replace(draws=draws)
        supplies[supply] = supplies[supply]._replace(ways=tuple(ways_of_supply))
    return replace(offers, rows=rows, supplies=supplies)


def _ways_by_halved_row(
    offers: NodeOffers,
) -> dict[int, tuple[_WayIndex, ...]]:
    """Return the rows that need a second one, each with the ways that take more than half of it."""
    ways_of: dict[int, list[_WayIndex]] = defaultdict(list)
    # Where who takes more than half takes all, the row itself says that nobody else gets it.
    halved: dict[int, None] = {}
    for supply_number, supply in enumerate(offers.supplies):
        for way_number, way in enumerate(supply.ways):
            for row, amount in way.draws:
                if 2 * amount > offers.rows[row].limit:
                    ways_of[row].append(_WayIndex(supply_number, way_number))
                    if amount < offers.rows[row].limit:
                        halved[row] = None
    first_row: dict[tuple[_WayIndex, ...], int] = {}
    for row in halved:
        first_row.setdefault(tuple(ways_of[row]), row)
    return {row: ways for ways, row in first_row.items()}
