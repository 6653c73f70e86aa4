"""What prices prove: the bound of a relaxation in exact integers, for whatever prices.

Weights come in levels, of which each is worth more than all below it, so that their sums can be bounded in turn.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import gcd, inf
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dralloc.problem import DemandIndex, Problem
from dralloc.problem.indices import grouped
from dralloc.problem.inter_pod import Domains
from dralloc.solve.optimum.objective import Objective
from dralloc.solve.optimum.relax.demand_kinds import (
    DemandKind,
    DemandKinds,
    Integers,
    Option,
    Shape,
    demand_kinds_of,
)
from dralloc.solve.optimum.relax.offers import (
    NodeOffers,
    PatternClass,
    node_offers_of,
)
from dralloc.solve.optimum.rows import WeightTier
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "LexicographicLevel",
    "Market",
    "costs_of",
    "levels_of",
    "market_of",
]

# ----------------------------------------------------------------------------
# Levels: weights of which each is worth more than all below them, so that their sums
# can be bounded in turn.


class LexicographicLevel(NamedTuple):
    """The weights from ``lowest`` to ``highest``, as multiples of ``unit``; together they are ``total`` units."""

    lowest: int
    highest: int
    unit: int
    total: int

    def of(self, weight: int) -> int:
        """Return what a weight counts here, in units."""
        if self.lowest <= weight <= self.highest:
            return weight // self.unit
        return 0


def levels_of(weights: Iterable[int]) -> list[LexicographicLevel]:
    """The levels, most important first.

    Sums of the weights above a line differ by their greatest common divisor at least. If that is more than everything
    below the line, the largest sum of all weights has the largest sum above the line.
    """
    tally = Tally(weight for weight in weights if weight > 0)
    remaining = sum(weight * count for weight, count in tally.items())
    levels: list[LexicographicLevel] = []
    block: list[int] = []
    divisor = 0
    for weight in sorted(tally, reverse=True):
        if block and divisor > remaining:
            levels.append(_level(block, tally))
            block = []
        block.append(weight)
        divisor = gcd(divisor, weight)
        remaining -= weight * tally[weight]
    if block:
        levels.append(_level(block, tally))
    return levels


def _level(block: Sequence[int], tally: Tally[int]) -> LexicographicLevel:
    """The level of weights in descending order."""
    unit = gcd(*block)
    total = sum(weight // unit * tally[weight] for weight in block)
    return LexicographicLevel(block[-1], block[0], unit, total)


def costs_of(
    problem: Problem,
    tiers: Sequence[Objective],
    levels: Sequence[LexicographicLevel],
    limits: Sequence[int],
) -> list[int]:
    """Return what any answer costs in each tier, given what is placed at most of each level: 0 in other tiers."""
    return [
        _missed(problem, tier.weights, levels, limits) if tier.weights else 0
        for tier in tiers
    ]


def _missed(
    problem: Problem,
    tier: WeightTier,
    levels: Sequence[LexicographicLevel],
    limits: Sequence[int],
) -> int:
    """The weight that is missed in a tier at least. A level that reaches into the tier from above says nothing."""
    total = sum(tier.of(demand.weight) for demand in problem.demands)
    placed = 0
    for level, units in zip(levels, limits, strict=True):
        if tier.of(level.highest):
            placed += level.unit * units // tier.unit
        elif tier.of(level.lowest):
            return 0
    return max(0, total - placed)


# ----------------------------------------------------------------------------
# What prices prove.
#
# Let every row have a price of 0 or more. An answer draws on a row up to its limit, so
# all that is placed pays no more than all limits cost. A demand that is placed on a
# node pays at least what the cheapest way costs that there is for it on that node; of a
# claim that several demands use, each pays a part, all together no more than it costs.
# So the weight of an answer is at most what all limits cost, plus for each demand its
# weight less what it pays on the cheapest node, where that is more than 0. A gang is
# placed as far as its quorum says or not at all, and so its demands count together; in
# one domain, if it needs one. Of a shared device a row may count who takes a share:
# instead of its limit there is what the dearest pattern costs, as what is taken of the
# device is part of a pattern. Ranks of alternatives can have a price, too: then it is
# the weight less what ranks cost that is bounded.
#
# The better the prices, the better the bound; but it holds for all of them (Lagrange;
# Geoffrion 1974).

_FAR: Final = 2**58
"""What cannot be had costs this much."""

_DEAREST: Final = 2**54
"""What a row costs whoever takes most of it, at most. Numbers stay in int64, however many rows are drawn on."""

_LARGEST: Final = 2**31
"""Amounts and limits are made smaller than this."""


class _Gang(NamedTuple):
    """Demands of which as many as the quorum says are placed, or none.

    Parameters
    ----------
    places
        Of each demand, its kind and its place among the members of that.
    domains
        The domains where so many could be, all in the same; None if they may be anywhere.
    """

    places: tuple[tuple[int, int], ...]
    quorum: int
    domains: tuple[int, ...] | None


class _Tariff(NamedTuple):
    """What demands pay, by node: for each shape, for each amount, and for each limit of domains."""

    shapes: Sequence[Integers]
    amounts: Integers
    domain_limits: Integers


class Market:
    """All rows, and who draws how much on which of them, as arrays.

    Amounts of a row are divided by their common divisor, limits rounded down.

    Attributes
    ----------
    limits
        By row; a last one stands for what there is no end of, and costs nothing.
    lone, placeable
        By kind, which of its members are in no gang, and which are in none that cannot be placed even alone.
    """

    def __init__(
        self,
        problem: Problem,
        demand_kinds: DemandKinds,
        offers: NodeOffers,
        stop: Stop,
    ) -> None:
        self.problem = problem
        self.demand_kinds = demand_kinds
        self.offers = offers
        self.stop = stop
        self._gather_ways()
        self._gather_combinations()
        self._gather_amounts()
        self._gather_domain_limits()
        self._gather_patterns()
        # By item and node, how often it can be had. Arrays without columns have no minimum.
        table = len(demand_kinds.items), max(1, offers.nodes)
        self.available = np.zeros(table, dtype=np.int64)
        for (node, item), combinations in offers.items.items():
            times = sum(combination.number for combination in combinations)
            self.available[item, node] = times
        self.domain_of = [
            self._domain_numbers(domains) for domains in demand_kinds.domains
        ]
        self.room = [self._room(shape) for shape in demand_kinds.shapes]
        self.nodes = [self._nodes(kind) for kind in demand_kinds.kinds]
        self._gather_gangs()

    # Arrays.

    def _gather_ways(self) -> None:
        rows = self.offers.rows
        draws: list[tuple[int, int]] = []
        starts: list[int] = []
        supply_starts = []
        for supply in self.stop.hundreds(self.offers.supplies):
            supply_starts.append(len(starts))
            for way in supply.ways:
                starts.append(len(draws))
                # A sum over nothing would not be 0.
                draws += way.draws or ((len(rows), 0),)
        divisors = [0] * (len(rows) + 1)
        largest_draws = [1] * (len(rows) + 1)
        for row, amount in draws:
            divisors[row] = gcd(divisors[row], amount)
            largest_draws[row] = max(largest_draws[row], amount)
        units = []
        for number, limited in enumerate(rows):
            largest = max(largest_draws[number], limited.limit)
            units.append(_unit(divisors[number], largest))
        self.units = [float(unit) for unit in units]
        # The last row stands for what there is no end of.
        units.append(1)
        self.way_rows = np.array([row for row, _ in draws], dtype=np.int64)
        self.way_amounts = np.array(
            [amount // units[row] for row, amount in draws], dtype=np.int64
        )
        self.way_starts = np.array(starts, dtype=np.int64)
        self.supply_starts = np.array(supply_starts, dtype=np.int64)
        self.limits = np.array(
            [row.limit // unit for row, unit in zip(rows, units, strict=False)]
            + [0],
            dtype=np.int64,
        )
        self.largest = np.ones(len(rows) + 1, dtype=np.int64)
        np.maximum.at(self.largest, self.way_rows, self.way_amounts)

    def _gather_combinations(self) -> None:
        supplies: list[int] = []
        numbers: list[int] = []
        starts: list[int] = []
        item_starts, places = [], []
        for (node, item), combinations in self.stop.hundreds(
            self.offers.items.items()
        ):
            places.append((item, node))
            item_starts.append(len(starts))
            for combination in combinations:
                starts.append(len(supplies))
                supplies += [supply for supply, _ in combination.draws]
                numbers += [number for _, number in combination.draws]
        self.combination_supplies = np.array(supplies, dtype=np.int64)
        self.combination_numbers = np.array(numbers, dtype=np.int64)
        self.combination_starts = np.array(starts, dtype=np.int64)
        self.item_starts = np.array(item_starts, dtype=np.int64)
        self.item_places = np.array(places, dtype=np.int64).reshape(-1, 2)

    def _gather_amounts(self) -> None:
        amounts, nodes = self.offers.amounts, max(1, self.offers.nodes)
        nothing = len(self.offers.rows)
        self.amount_rows = np.full(
            (len(amounts.names), nodes), nothing, dtype=np.int64
        )
        self.amount_limits = np.full(
            (len(amounts.names), nodes), _LARGEST, dtype=np.int64
        )
        scaled: list[dict[int, int]] = []
        for place, name in enumerate(amounts.names):
            takes = {
                alternative: amounts_taken.get(name, 0)
                for alternative, amounts_taken in amounts.takes.items()
            }
            limits = {
                node: self.offers.rows[row].limit
                for node, row in amounts.rows[place].items()
            }
            # One unit for all nodes, so that everybody takes the same amount wherever it goes.
            largest_amount = max([*takes.values(), *limits.values()], default=0)
            unit = _unit(gcd(*takes.values()), largest_amount)
            scaled.append(
                {
                    alternative: amount // unit
                    for alternative, amount in takes.items()
                }
            )
            largest = max(1, *scaled[-1].values())
            for node, row in amounts.rows[place].items():
                limit = limits[node] // unit
                self.amount_rows[place, node] = row
                self.amount_limits[place, node] = limit
                self.limits[row] = limit
                self.largest[row] = largest
                self.units[row] = float(unit)
        self.amounts = [
            self._amounts_of(kind, scaled) for kind in self.demand_kinds.kinds
        ]

    def _gather_domain_limits(self) -> None:
        """By limit and node: the row that is drawn on, and whether nobody may go there."""
        limits, nodes = self.offers.domain_limits, max(1, self.offers.nodes)
        nothing = len(self.offers.rows)
        self.domain_limit_rows = np.full(
            (len(limits), nodes), nothing, dtype=np.int64
        )
        self.is_closed = np.zeros((len(limits), nodes), dtype=bool)
        for place, limit in enumerate(limits):
            for node, row in limit.rows.items():
                self.domain_limit_rows[place, node] = row
            self.is_closed[place, list(limit.closed)] = True

    def _gather_patterns(self) -> None:
        """What patterns supply, there is nothing else of."""
        for pattern_class in self.offers.pattern_classes:
            rows = list(pattern_class.rows)
            self.limits[rows] = 0
            # A pattern is paid for as a whole.
            self.largest[rows] = pattern_class.patterns.sum(axis=1).max()

    def _amounts_of(
        self, kind: DemandKind, takes: Sequence[Mapping[int, int]]
    ) -> Integers:
        """By member of a kind and name, what it takes of its node."""
        amounts = np.zeros((len(kind.members), len(takes)), dtype=np.int64)
        for place, claim in enumerate(kind.claims):
            if claim is not None:
                amounts[place] = [
                    by_alternative[claim] for by_alternative in takes
                ]
        return amounts

    def _room(self, shape: Shape) -> Integers:
        """By node, how often what is asked for beside amounts could be had there at most."""
        room = np.full(max(1, self.offers.nodes), _LARGEST, dtype=np.int64)
        for choice in shape:
            # At most so often: by each alternative as if the others took nothing.
            rooms = [self._room_of(option) for option in choice.options]
            grants = np.minimum(
                np.sum(rooms, axis=0), _LARGEST // choice.sharers
            )
            room = np.minimum(room, grants * choice.sharers)
        return room

    def _room_of(self, option: Option) -> Integers:
        room = np.full(max(1, self.offers.nodes), _LARGEST, dtype=np.int64)
        for item, number in option:
            room = np.minimum(room, self.available[item] // number)
        return room

    def _nodes(self, kind: DemandKind) -> Integers:
        """The nodes where demands of a kind may be, and find what they ask for beside amounts."""
        allowed = self.demand_kinds.node_sets[kind.nodes]
        nodes = np.arange(self.offers.nodes)
        if allowed is not None:
            nodes = np.array(allowed, dtype=np.int64)
        if kind.domains:
            nodes = nodes[self.domain_of[kind.domains][nodes] >= 0]
        is_closed = self.is_closed[list(kind.domain_limits)].any(axis=0)
        is_roomy = self.room[kind.shape] > 0
        roomy: Integers = nodes[(is_roomy & ~is_closed)[nodes]]
        return roomy

    # Gangs.

    def _gather_gangs(self) -> None:
        """Sort out the gangs that cannot be placed even alone, and the domains where they cannot."""
        self.gangs: list[_Gang] = []
        kinds = self.demand_kinds.kinds
        self.lone = [np.ones(len(kind.members), dtype=bool) for kind in kinds]
        self.placeable = [
            np.ones(len(kind.members), dtype=bool) for kind in kinds
        ]
        places = {
            member: (number, place)
            for number, kind in enumerate(kinds)
            for place, member in enumerate(kind.members)
        }
        for members in self.stop.hundreds(self.demand_kinds.gangs.values()):
            gang = self._gang(members, [places[member] for member in members])
            for number, place in gang.places:
                self.lone[number][place] = False
                self.placeable[number][place] = gang.domains != ()
            self.gangs.append(gang)

    def _domain_numbers(self, domains: Domains) -> Integers:
        """By node the number of its domain; -1 if it has none."""
        numbers = {
            name: number
            for number, name in enumerate(dict.fromkeys(domains.values()))
        }
        domain_of = [
            numbers[domains[node.name]] if node.name in domains else -1
            for node in self.problem.nodes
        ]
        return np.array(domain_of, dtype=np.int64)

    def _gang(
        self, members: Sequence[DemandIndex], places: Sequence[tuple[int, int]]
    ) -> _Gang:
        first = self.problem.demands[members[0]]
        quorum = max(1, len(members) if first.quorum is None else first.quorum)
        room = self._gang_room(places)
        choices = {self.demand_kinds.kinds[kind].domains for kind, _ in places}
        domains: tuple[int, ...] | None
        if len(choices) > 1 or not max(choices):
            domains = None if room.sum() >= quorum else ()
            return _Gang(tuple(places), quorum, domains)
        domain_of = self.domain_of[max(choices)]
        inside = domain_of >= 0
        room_of_domain = np.bincount(
            domain_of[inside], weights=room[: len(inside)][inside]
        )
        domains = tuple(np.flatnonzero(room_of_domain >= quorum).tolist())
        return _Gang(tuple(places), quorum, domains)

    def _gang_room(self, places: Sequence[tuple[int, int]]) -> Integers:
        """By node, how many of a gang's demands could be there at most, if there was nobody else.

        Of demands that ask for the same beside amounts there are no more than that allows; those that ask for something
        else may be there as well. Of each amount, all of them together take at least so often what the most modest of
        them takes.
        """
        room = np.zeros(max(1, self.offers.nodes), dtype=np.int64)
        kinds = self.demand_kinds.kinds
        by_shape = grouped((kinds[kind].shape, kind) for kind, _ in places)
        for shape, kinds_of_members in by_shape.items():
            nodes = np.unique(
                np.concatenate([self.nodes[kind] for kind in kinds_of_members])
            )
            room[nodes] += np.minimum(
                len(kinds_of_members), self.room[shape][nodes]
            )
        amounts = [self.amounts[kind][place] for kind, place in places]
        for name, least in enumerate(np.min(amounts, axis=0).tolist()):
            if least:
                limits = self.amount_limits[name] // least
                room = np.minimum(room, limits)
        return room

    # Bounds.

    @cached_property
    def _dearest(self) -> Integers:
        """By row, the highest price that can be multiplied with whatever there is."""
        return _DEAREST // np.maximum(self.largest, self.limits)[:-1]

    def most_affordable(self, prices: npt.NDArray[np.float64]) -> float:
        """Return what all prices can be multiplied with, so that none has to be cut off; inf if all are 0."""
        priced = prices > 0
        return float((self._dearest[priced] / prices[priced]).min(initial=inf))

    def affordable(
        self, prices: Sequence[float] | npt.NDArray[np.float64]
    ) -> Integers:
        """The prices as integers that can be multiplied with whatever there is; the last one is for nothing."""
        rounded = np.clip(np.rint(prices), 0, self._dearest).astype(np.int64)
        return np.append(rounded, 0)

    def bound(
        self, prices: Integers, weights: Sequence[int], rank_price: int = 0
    ) -> int:
        """Return the most that can be placed, in worth.

        Parameters
        ----------
        prices
            By row, as `affordable` makes them.
        weights
            By kind, what placing a demand is worth, in the unit of prices.
        rank_price
            What it costs if an alternative has a rank more, in that unit.
        """
        total: int = sum((prices * self.limits).tolist())
        for pattern_class in self.offers.pattern_classes:
            devices = len(pattern_class.nodes)
            total += devices * _dearest_pattern(pattern_class, prices)
        tariff = self._tariff(prices, rank_price)
        values: list[Integers] = []
        for number, kind in enumerate(self.stop.each(self.demand_kinds.kinds)):
            by_node = self._values(number, weights[number], tariff)
            best = by_node.max(axis=1, initial=-_FAR)
            if kind.domains:
                best = self._by_domain(number, by_node)
            else:
                # Whoever pays more than it is worth is not placed.
                total += sum(np.maximum(0, best[self.lone[number]]).tolist())
            values.append(best)
        for gang in self.gangs:
            total += self._gang_value(gang, values)
        return total

    def least_paid(self, prices: Integers) -> list[int | None]:
        """By demand, what it pays on the node where it pays the least; None for one that fits on no node."""
        tariff = self._tariff(prices)
        paid: list[int | None] = [None] * len(self.problem.demands)
        for number, kind in enumerate(self.stop.each(self.demand_kinds.kinds)):
            by_node = self._values(number, _FAR // 2, tariff)
            best = by_node.max(axis=1, initial=-_FAR)
            for member, value in zip(kind.members, best.tolist(), strict=True):
                if value >= 0:
                    paid[member] = max(0, _FAR // 2 - value)
        return paid

    def node_values(self, prices: Integers) -> list[int]:
        """By node, what all of its own rows cost together."""
        values = [0] * self.offers.nodes
        # As Python's integers: sums over a node may be beyond int64.
        worth = (
            prices[:-1].astype(object) * self.limits[:-1].astype(object)
        ).tolist()
        for row, value in zip(self.offers.rows, worth, strict=True):
            # What several nodes draw on says nothing about any of them.
            if row.node is not None:
                values[row.node] += value
        for pattern_class in self.offers.pattern_classes:
            value = _dearest_pattern(pattern_class, prices)
            for node in pattern_class.nodes:
                values[node] += value
        return values

    def _tariff(self, prices: Integers, rank_price: int = 0) -> _Tariff:
        return _Tariff(
            self._shape_costs(prices, rank_price),
            prices[self.amount_rows],
            prices[self.domain_limit_rows],
        )

    def _shape_costs(self, prices: Integers, rank_price: int) -> list[Integers]:
        """By shape and node, what the cheapest way costs."""
        costs = np.full(self.available.shape, _FAR, dtype=np.int64)
        if len(self.item_starts):
            ways = np.add.reduceat(
                prices[self.way_rows] * self.way_amounts, self.way_starts
            )
            supplies = np.minimum.reduceat(ways, self.supply_starts)
            parts = (
                supplies[self.combination_supplies] * self.combination_numbers
            )
            combinations = np.add.reduceat(parts, self.combination_starts)
            items = np.minimum.reduceat(combinations, self.item_starts)
            costs[self.item_places[:, 0], self.item_places[:, 1]] = items
        return [
            self._shape_cost(shape, costs, rank_price)
            for shape in self.demand_kinds.shapes
        ]

    def _shape_cost(
        self, shape: Shape, costs: Integers, rank_price: int
    ) -> Integers:
        total = np.zeros(costs.shape[1], dtype=np.int64)
        for choice in shape:
            cheapest = np.full(costs.shape[1], _FAR, dtype=np.int64)
            for option, rank in zip(choice.options, choice.ranks, strict=True):
                cost = np.full(
                    costs.shape[1], rank * rank_price, dtype=np.int64
                )
                for item, number in option:
                    price = np.minimum(costs[item], _FAR // number) * number
                    price[self.available[item] < number] = _FAR
                    cost = np.minimum(_FAR, cost + price)
                cheapest = np.minimum(cheapest, cost)
            part = np.where(cheapest < _FAR, cheapest // choice.sharers, _FAR)
            total = np.minimum(_FAR, total + part)
        return total

    def _values(self, number: int, weight: int, tariff: _Tariff) -> Integers:
        """By member of a kind and node: the weight less what is paid there, far below 0 where there is no room.

        Who is worth nothing need not be placed, and so pays nothing.
        """
        kind, nodes = self.demand_kinds.kinds[number], self.nodes[number]
        amounts = self.amounts[number]
        table = len(amounts), len(nodes)
        if not weight:
            return np.zeros(table, dtype=np.int64)
        costs = tariff.shapes[kind.shape][nodes]
        for limit in kind.domain_limits:
            costs = costs + tariff.domain_limits[limit, nodes]
        values = np.broadcast_to(weight - costs, table).copy()
        for name in range(amounts.shape[1]):
            by_member = amounts[:, name, np.newaxis]
            values -= by_member * tariff.amounts[name, nodes]
            values[by_member > self.amount_limits[name, nodes]] = -_FAR
        return values

    def _by_domain(self, number: int, values: Integers) -> Integers:
        """By member of a kind and domain, the best of the values by node."""
        domain_of = self.domain_of[self.demand_kinds.kinds[number].domains]
        domain_count = domain_of.max(initial=-1) + 1
        best = np.full((len(values), domain_count), -_FAR, dtype=np.int64)
        domains = domain_of[self.nodes[number]]
        order = np.argsort(domains, kind="stable")
        present, starts = np.unique(domains[order], return_index=True)
        if len(present):
            best[:, present] = np.maximum.reduceat(
                values[:, order], starts, axis=1
            )
        return best

    def _gang_value(self, gang: _Gang, values: Sequence[Integers]) -> int:
        if gang.domains is None:
            anywhere = [
                int(values[kind][place].max(initial=-_FAR))
                for kind, place in gang.places
            ]
            return _worth(anywhere, gang.quorum)
        best = 0
        for domain in gang.domains:
            inside = [
                int(values[kind][place, domain]) for kind, place in gang.places
            ]
            best = max(best, _worth(inside, gang.quorum))
        return best


def market_of(
    problem: Problem, stop: Stop, *closer: Callable[[NodeOffers], NodeOffers]
) -> Market:
    """Read what demands need and what nodes offer.

    Parameters
    ----------
    closer
        What limits offers more closely, one after the other.

    Raises
    ------
    Stopped
        There is no time to find out.
    """
    demand_kinds = demand_kinds_of(problem, stop)
    offers = node_offers_of(problem, demand_kinds, stop)
    for with_more_rows in closer:
        offers = with_more_rows(offers)
    return Market(problem, demand_kinds, offers, stop)


def _dearest_pattern(pattern_class: PatternClass, prices: Integers) -> int:
    """What the shares of a device cost together at most."""
    costs = pattern_class.patterns @ prices[list(pattern_class.rows)]
    return int(costs.max())


def _worth(values: Sequence[int], quorum: int) -> int:
    """The best sum over as many as a quorum, at least; 0 if that is better."""
    if len(values) < quorum:
        return 0
    best = sorted(values, reverse=True)
    needed, optional = best[:quorum], best[quorum:]
    return max(0, sum(needed) + sum(value for value in optional if value > 0))


def _unit(divisor: int, largest: int) -> int:
    """Return what to divide amounts by, so that they become small enough."""
    if largest // max(1, divisor) >= _LARGEST:
        return max(1, divisor, largest // _LARGEST + 1)
    return max(1, divisor)
