"""Rows that follow from others by rounding: of those who need more than half of something, one gets it.

In fractions, five demands of 60% each share three devices; but no two of them fit on one. So a row that somebody draws
on with more than half of its limit, and not with all of it, gets a second one: it counts who does, and its limit is 1,
as two of them would take more than there is (Chvátal, Discrete Mathematics 4, 1973, with the multiplier 2). Where the
same demands need more than half of several rows, of memory and of multiprocessors, say, one row says it all.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import chain

from dralloc.solve.optimum.relax.demand_kinds import ResourceRow
from dralloc.solve.optimum.relax.offers import NodeOffers, WayIndex

__all__ = ["with_halves"]


def with_halves(offers: NodeOffers) -> NodeOffers:
    """Return the same offers, with the second rows behind all others, and draws on them."""
    rows = list(offers.rows)
    draws: dict[WayIndex, list[tuple[int, int]]] = defaultdict(list)
    for row, ways in _ways_by_halved_row(offers).items():
        for index in ways:
            draws[index].append((len(rows), 1))
        limited = offers.rows[row]
        role, name = ("half", limited.role), ("half", limited.name)
        rows.append(ResourceRow(limited.node, role, 1, name, limited.owner))
    return replace(offers.with_draws(draws), rows=rows)


def _ways_by_halved_row(
    offers: NodeOffers,
) -> dict[int, tuple[WayIndex, ...]]:
    """Return the rows that need a second one, each with the ways that take more than half of it."""
    ways_of: dict[int, list[WayIndex]] = defaultdict(list)
    # Where who takes more than half takes all, the row itself says that nobody else gets it.
    halved: dict[int, None] = {}
    # Patterns say which halves fit beside each other, and more.
    covered = set(
        chain.from_iterable(
            pattern_class.covered for pattern_class in offers.pattern_classes
        )
    )
    for index, way in offers.ways():
        for row, amount in way.draws:
            if row not in covered and 2 * amount > offers.rows[row].limit:
                ways_of[row].append(index)
                if amount < offers.rows[row].limit:
                    halved[row] = None
    first_row: dict[tuple[WayIndex, ...], int] = {}
    for row in halved:
        first_row.setdefault(tuple(ways_of[row]), row)
    return {row: ways for ways, row in first_row.items()}
