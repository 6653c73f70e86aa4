"""What prices prove: the bound of a relaxation in exact integers, for whatever prices.

Let every row have a price of 0 or more. An answer draws on a row up to its limit, so all that is placed pays no more
than all limits cost. A demand that is placed on a node pays at least what the cheapest way costs that there is for it
on that node; of a claim that several demands use, each pays a part, all together no more than it costs. So the weight
of an answer is at most what all limits cost, plus for each demand its weight less what it pays on the cheapest node,
where that is more than 0. A gang is placed as far as its quorum says or not at all, and so its demands count together,
no more of them than have room; in one domain, if it needs one. Of a shared device a row may count who takes a share:
instead of its limit there is what the dearest pattern costs, as what is taken of the device is part of a pattern.

What an answer costs in a later tier can have a price, too: then it is the weight less what that costs that is bounded.
A demand pays for ranks of its alternatives, and for devices that it has for itself. Of what costs something once,
however many draw on it, nothing is drawn before that: its rows cost what their limits do less the price for it, or
nothing, if that is less than 0.

The better the prices, the better the bound; but it holds for all of them (Lagrange; Geoffrion 1974).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt

from dralloc.solve.optimum.relax.amounts import Integers
from dralloc.solve.optimum.relax.demand_kinds import Option, OptionSet, Shape
from dralloc.solve.optimum.relax.market import Market, MarketGang
from dralloc.solve.optimum.relax.offers import PatternClass
from dralloc.solve.optimum.relax.tier_costs import FREE, TierCosts

__all__ = ["Prices", "most_affordable"]

_FAR: Final = 2**58
"""What cannot be had costs this much."""

_DEAREST: Final = 2**54
"""What a row costs whoever takes most of it, at most. Numbers stay in int64, however many rows are drawn on."""


def _highest_prices(market: Market) -> Integers:
    """By row, the highest price that can be multiplied with whatever is drawn."""
    return _DEAREST // np.maximum(market.largest, market.limits)[:-1]


def most_affordable(market: Market, prices: npt.NDArray[np.float64]) -> float:
    """Return what all prices can be multiplied with, so that none has to be cut off; inf if all are 0."""
    priced = prices > 0
    factors = _highest_prices(market)[priced] / prices[priced]
    return float(factors.min(initial=inf))


class Prices:
    """A price for each row of a market, as whole numbers, and what they prove.

    Parameters
    ----------
    by_row
        In floats; they are rounded, and cut off where they could not be multiplied with what is drawn.
    tier_costs
        What a later tier counts.
    cost_price
        What 1 of that costs.
    """

    def __init__(
        self,
        market: Market,
        by_row: Sequence[float] | npt.NDArray[np.float64],
        tier_costs: TierCosts = FREE,
        cost_price: int = 0,
    ) -> None:
        self.market = market
        self.tier_costs = tier_costs
        self.cost_price = cost_price
        rounded = np.clip(np.rint(by_row), 0, _highest_prices(market))
        # The last row stands for what there is no end of, and costs nothing.
        self.by_row: Integers = np.append(rounded.astype(np.int64), 0)

    def bound(self, weights: Sequence[int]) -> int:
        """Return the most that can be placed, in worth.

        Parameters
        ----------
        weights
            By kind, what placing a demand is worth, in the unit of prices.
        """
        market = self.market
        # As Python's integers: sums of many rows may be beyond int64.
        row_values = (self.by_row * market.limits).tolist()
        total: int = sum(row_values)
        for rows in self.tier_costs.openings:
            values_of_rows = [row_values[row] for row in rows]
            total -= min(self.cost_price, sum(values_of_rows))
        for pattern_class in market.offers.pattern_classes:
            devices = len(pattern_class.nodes)
            total += devices * self._dearest_pattern(pattern_class)
        values: list[Integers] = []
        kinds = market.demand_kinds.kinds
        for kind_index, kind in enumerate(market.stop.each(kinds)):
            by_node = self._values(kind_index, weights[kind_index])
            best = by_node.max(axis=1, initial=-_FAR)
            if kind.domains:
                best = self._best_of_domains(kind_index, by_node)
            else:
                # Whoever pays more than it is worth is not placed.
                lone = best[market.lone[kind_index]]
                total += sum(np.maximum(0, lone).tolist())
            values.append(best)
        for gang in market.gangs:
            total += _gang_value(gang, values)
        return total

    def least_paid(self) -> list[int | None]:
        """By demand, what it pays on the node where it pays the least; None for one that fits on no node."""
        market = self.market
        paid: list[int | None] = [None] * len(market.problem.demands)
        kinds = market.demand_kinds.kinds
        weight = _FAR // 2
        for kind_index, kind in enumerate(market.stop.each(kinds)):
            by_node = self._values(kind_index, weight)
            best = by_node.max(axis=1, initial=-_FAR)
            for member, value in zip(kind.members, best.tolist(), strict=True):
                if value >= 0:
                    paid[member] = max(0, weight - value)
        return paid

    def node_values(self) -> list[int]:
        """By node, what all of its own rows cost together."""
        market = self.market
        values = [0] * market.offers.nodes
        # As Python's integers: sums over a node may be beyond int64.
        prices = self.by_row[:-1].astype(object)
        row_values = (prices * market.limits[:-1].astype(object)).tolist()
        for row, value in zip(market.offers.rows, row_values, strict=True):
            # What several nodes draw on says nothing about any of them.
            if row.node is not None:
                values[row.node] += value
        for pattern_class in market.offers.pattern_classes:
            value = self._dearest_pattern(pattern_class)
            for node in pattern_class.nodes:
                values[node] += value
        return values

    def _dearest_pattern(self, pattern_class: PatternClass) -> int:
        """What the shares of a device cost together at most."""
        prices = self.by_row[list(pattern_class.rows)]
        return int((pattern_class.patterns @ prices).max())

    # What demands pay: for what they ask for, for amounts, and for places in domains.

    @cached_property
    def _item_costs(self) -> Integers:
        """By item and node, what the cheapest way to have it costs."""
        market = self.market
        costs = np.full(market.available.shape, _FAR, dtype=np.int64)
        if not len(market.item_starts):
            return costs
        drawn = self.by_row[market.way_rows] * market.way_amounts
        ways = np.add.reduceat(drawn, market.way_starts)
        if self.tier_costs.ways:
            ways += self.cost_price * np.array(self.tier_costs.ways)
        supplies = np.minimum.reduceat(ways, market.supply_starts)
        parts = supplies[market.combination_supplies] * market.combination_times
        combinations = np.add.reduceat(parts, market.combination_starts)
        items, nodes = market.item_places.T
        costs[items, nodes] = np.minimum.reduceat(
            combinations, market.item_starts
        )
        return costs

    @cached_property
    def _shape_costs(self) -> list[Integers]:
        """By shape and node, what the cheapest way costs to have all that it asks for beside amounts."""
        return [
            self._shape_cost(shape) for shape in self.market.demand_kinds.shapes
        ]

    def _shape_cost(self, shape: Shape) -> Integers:
        total = np.zeros(self.market.available.shape[1], dtype=np.int64)
        for choice in shape:
            total = np.minimum(_FAR, total + self._choice_cost(choice))
        return total

    def _choice_cost(self, choice: OptionSet) -> Integers:
        """By node, what each of those who share it pays for the cheapest option."""
        cheapest = np.full(self.market.available.shape[1], _FAR, dtype=np.int64)
        for option, rank in zip(choice.options, choice.ranks, strict=True):
            cheapest = np.minimum(cheapest, self._option_cost(option, rank))
        return np.where(cheapest < _FAR, cheapest // choice.sharers, _FAR)

    def _option_cost(self, option: Option, rank: int) -> Integers:
        available = self.market.available
        rank_price = rank * self.tier_costs.rank * self.cost_price
        cost = np.full(available.shape[1], rank_price, dtype=np.int64)
        for item, times in option:
            price = np.minimum(self._item_costs[item], _FAR // times) * times
            price[available[item] < times] = _FAR
            cost = np.minimum(_FAR, cost + price)
        return cost

    @cached_property
    def _amount_prices(self) -> Integers:
        """By amount and node."""
        return self.by_row[self.market.amount_rows]

    @cached_property
    def _domain_limit_prices(self) -> Integers:
        """By limit of domains and node."""
        return self.by_row[self.market.domain_limit_rows]

    def _values(self, kind_index: int, weight: int) -> Integers:
        """By member of a kind and node: the weight less what is paid there, far below 0 where there is no room.

        Who is worth nothing need not be placed, and so pays nothing.
        """
        market = self.market
        kind, nodes = (
            market.demand_kinds.kinds[kind_index],
            market.nodes[kind_index],
        )
        amounts = market.amounts[kind_index]
        table = len(amounts), len(nodes)
        if not weight:
            return np.zeros(table, dtype=np.int64)
        costs = self._shape_costs[kind.shape][nodes]
        for limit in kind.domain_limits:
            costs = costs + self._domain_limit_prices[limit, nodes]
        values = np.broadcast_to(weight - costs, table).copy()
        for name in range(amounts.shape[1]):
            by_member = amounts[:, name, np.newaxis]
            values -= by_member * self._amount_prices[name, nodes]
            values[by_member > market.amount_limits[name, nodes]] = -_FAR
        return values

    def _best_of_domains(self, kind_index: int, values: Integers) -> Integers:
        """By member of a kind and domain, the best of the values by node."""
        market = self.market
        domain_of = market.domain_of[
            market.demand_kinds.kinds[kind_index].domains
        ]
        domain_count = domain_of.max(initial=-1) + 1
        best = np.full((len(values), domain_count), -_FAR, dtype=np.int64)
        domains = domain_of[market.nodes[kind_index]]
        order = np.argsort(domains, kind="stable")
        present, starts = np.unique(domains[order], return_index=True)
        if len(present):
            best[:, present] = np.maximum.reduceat(
                values[:, order], starts, axis=1
            )
        return best


def _gang_value(gang: MarketGang, values: Sequence[Integers]) -> int:
    """What a gang is worth at most, less what it pays; ``values``: by kind, of each member by domain or at best."""
    if gang.domains is None:
        anywhere = [
            int(values[kind][member_index].max(initial=-_FAR))
            for kind, member_index in gang.places
        ]
        return _worth(anywhere, gang)
    best = 0
    for domain in gang.domains:
        inside = [
            int(values[kind][member_index, domain])
            for kind, member_index in gang.places
        ]
        best = max(best, _worth(inside, gang))
    return best


def _worth(values: Sequence[int], gang: MarketGang) -> int:
    """The best sum over as many as a quorum, at least, and as have room, at most; 0 if that is better."""
    if len(values) < gang.quorum:
        return 0
    best = sorted(values, reverse=True)
    needed = best[: gang.quorum]
    optional = best[gang.quorum : gang.most]
    return max(0, sum(needed) + sum(value for value in optional if value > 0))
