"""Rows that follow from others by rounding: of those who need more than half of something, one gets it.

In fractions, five demands of 60% each share three devices; but no two of them fit on one. So a row that somebody draws
on with more than half of its limit, and not with all of it, gets a second one: it counts who does, and its limit is 1,
as two of them would take more than there is (Chvátal, Discrete Mathematics 4, 1973, with the multiplier 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dralloc.solve.optimum.relax.demand_kinds import ResourceRow
from dralloc.solve.optimum.relax.offers import (
    DeviceAssignment,
    NodeOffers,
    TypeSupply,
)

__all__ = ["with_halves"]


def with_halves(offers: NodeOffers) -> NodeOffers:
    """Return the same offers, with the second rows behind all others, and draws on them."""
    rows = list(offers.rows)
    half_rows: dict[int, int] = {}
    for row, amount in _draws(offers):
        limited = offers.rows[row]
        is_between = limited.limit < 2 * amount < 2 * limited.limit
        if is_between and row not in half_rows:
            half_rows[row] = len(rows)
            role, name = ("half", limited.role), ("half", limited.name)
            rows.append(ResourceRow(limited.node, role, 1, name))
    supplies = [
        _drawing_on_halves(supply, offers.rows, half_rows)
        for supply in offers.supplies
    ]
    return replace(offers, rows=rows, supplies=supplies)


def _draws(offers: NodeOffers) -> Iterator[tuple[int, int]]:
    for supply in offers.supplies:
        for way in supply.ways:
            yield from way.draws


def _drawing_on_halves(
    supply: TypeSupply, rows: list[ResourceRow], half_rows: Mapping[int, int]
) -> TypeSupply:
    ways: list[DeviceAssignment] = []
    for way in supply.ways:
        halves = [
            (half_rows[row], 1)
            for row, amount in way.draws
            if row in half_rows and 2 * amount > rows[row].limit
        ]
        ways.append(way._replace(draws=(*way.draws, *halves)))
    return supply._replace(ways=tuple(ways))
