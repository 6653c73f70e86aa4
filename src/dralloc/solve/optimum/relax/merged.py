"""Offers of regions: rows, supplies and ways to make an item that are of the same kind in a region are one.

What a region has of them together says less than each of them; but there are fewer of them, and equal devices need no
names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from dralloc.solve.optimum.classes.numbering import Listed
from dralloc.solve.optimum.relax.amounts import Integers
from dralloc.solve.optimum.relax.demand_kinds import Draws
from dralloc.solve.optimum.relax.market import Market

__all__ = ["MergedOffers", "merged_offers"]


class MergedOffers(NamedTuple):
    """The offers of regions.

    Parameters
    ----------
    row_of
        By row of the market, the merged row that it belongs to.
    limits
        By merged row: its limit, in the unit of the market.
    ways
        By merged supply: what each way to get a device draws on, and how often it can be had at most.
    combinations
        By region and item: from which merged supplies one can be made, and how often at most.
    way_of
        By way of the market: the merged supply that it belongs to, and what it draws on there.
    """

    row_of: Sequence[int]
    limits: Sequence[int]
    ways: Sequence[Mapping[Draws, int]]
    combinations: Mapping[tuple[int, int], Mapping[Draws, int]]
    way_of: Sequence[tuple[int, Draws]]


def merged_offers(market: Market, regions: Integers) -> MergedOffers:
    """Merge what a region has of equal role; ``regions``: by node.

    Rows that several nodes draw on stay what they are. Rows of equal role have the same unit.
    """
    row_of, limits = _merged_rows(market, regions)
    supply_of, way_of = _merged_supplies(market, regions, row_of)
    # Ways that draw on the same merged rows are one, and can be had as often as all of them together.
    ways: list[dict[Draws, int]] = [
        defaultdict(int) for _ in range(max(supply_of, default=-1) + 1)
    ]
    for (supply, draws), (_, way) in zip(
        way_of, market.offers.ways(), strict=True
    ):
        ways[supply][draws] += way.limit
    items: dict[tuple[int, int], dict[Draws, int]] = {}
    for (node, item), combinations in market.offers.items.items():
        of_region = items.setdefault(
            (int(regions[node]), item), defaultdict(int)
        )
        for combination in combinations:
            supplied = [
                (supply_of[supply], times)
                for supply, times in combination.draws
            ]
            of_region[tuple(supplied)] += combination.limit
    return MergedOffers(row_of, limits, ways, items, way_of)


def _merged_rows(
    market: Market, regions: Integers
) -> tuple[list[int], list[int]]:
    """By row, its merged row; and the limits of these."""
    keys: Listed[Hashable] = Listed()
    row_of: list[int] = []
    for index, row in enumerate(market.offers.rows):
        key: Hashable = ("row", index)
        if row.node is not None:
            key = (int(regions[row.node]), row.role)
        row_of.append(keys.number(key))
    limits = [0] * len(keys)
    row_limits = market.limits[:-1].tolist()
    for merged, limit in zip(row_of, row_limits, strict=True):
        limits[merged] += limit
    return row_of, limits


def _merged_supplies(
    market: Market, regions: Integers, row_of: Sequence[int]
) -> tuple[list[int], list[tuple[int, Draws]]]:
    """By supply, its merged supply; and by way, that of its supply and what it draws on."""
    keys: Listed[Hashable] = Listed()
    supply_of = [
        keys.number((int(regions[supply.node]), supply.role))
        for supply in market.offers.supplies
    ]
    way_of: list[tuple[int, Draws]] = []
    starts = iter(market.way_starts.tolist())
    rows, amounts = market.way_rows.tolist(), market.way_amounts.tolist()
    for merged, supply in zip(supply_of, market.offers.supplies, strict=True):
        for way in supply.ways:
            first = next(starts)
            draws = [
                (row_of[rows[index]], amounts[index])
                for index in range(first, first + len(way.draws))
            ]
            way_of.append((merged, tuple(draws)))
    return supply_of, way_of
