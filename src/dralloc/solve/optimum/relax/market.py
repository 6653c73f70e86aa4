"""The market of a relaxation: all rows, and who draws how much on which of them, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import gcd
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from dralloc.problem import Demand, DemandIndex, Problem
from dralloc.problem.indices import grouped
from dralloc.problem.inter_pod import Domains
from dralloc.solve.optimum.classes.numbering import Listed
from dralloc.solve.optimum.relax.amounts import Integers
from dralloc.solve.optimum.relax.demand_kinds import (
    DemandKind,
    DemandKinds,
    Option,
    Shape,
    demand_kinds_of,
)
from dralloc.solve.optimum.relax.offers import (
    NodeOffers,
    node_offers_of,
)
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Market", "MarketGang", "market_of"]

_LARGEST: Final = 2**31
"""Amounts and limits are made smaller than this."""


class MarketGang(NamedTuple):
    """A gang, or users of a claim: as many of them are placed as the quorum says, or none, and ``most`` at most.

    Parameters
    ----------
    places
        Of each demand, its kind and its place among the members of that.
    domains
        The domains where so many could be, all in the same; None if they may be anywhere.
    """

    places: tuple[tuple[int, int], ...]
    quorum: int
    most: int
    domains: tuple[int, ...] | None


class Market:
    """All rows, and who draws how much on which of them, as arrays.

    Amounts of rows of equal role are divided by their common divisor, limits rounded down. Behind the rows stands one
    more for what there is no end of.

    Attributes
    ----------
    limits, largest
        By row: what is drawn on it at most by all together, and by whoever draws most.
    units
        By row, what amounts and its limit were divided by: the same for rows of equal role.
    way_rows, way_amounts, way_starts, supply_starts
        Rows and amounts that ways of supplies draw, one way after the other; where each way begins among them, and
        where each supply begins among the ways.
    combination_supplies, combination_times, combination_starts, item_starts, item_places
        Supplies that combinations draw, and how often, one combination after the other; where each begins; where each
        item of a node begins among the combinations; and the item and the node of these.
    available
        By item and node, how often it can be had there.
    amount_rows, amount_limits
        By amount and node: the row that is drawn on, and its limit.
    amounts
        By kind, by member and amount, what it takes of its node.
    domain_limit_rows, is_closed
        By limit of domains and node: the row that is drawn on, and whether nobody may go there.
    domain_of
        By set of domains and node, the number of its domain; -1 if it has none.
    room
        By shape and node, how often what it asks for beside amounts could be had there at most.
    nodes
        By kind, where its demands may be, and find what they ask for beside amounts.
    gangs
        All of them, with the domains where they could be if they were alone.
    lone, placeable
        By kind, which of its members are in no gang, and which are in none that cannot be placed even alone.
    """

    def __init__(
        self,
        problem: Problem,
        demand_kinds: DemandKinds,
        offers: NodeOffers,
        stop: Stop,
        most_of_gang: Mapping[str, int],
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
            times = sum(combination.limit for combination in combinations)
            self.available[item, node] = times
        self.domain_of = [
            self._domain_indices(domains) for domains in demand_kinds.domains
        ]
        self.room = [self._room(shape) for shape in demand_kinds.shapes]
        self.nodes = [self._nodes(kind) for kind in demand_kinds.kinds]
        self._gather_gangs(most_of_gang)

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
        # One unit for all rows of equal role, so that they can be added up.
        roles: Listed[Hashable] = Listed()
        role_of = [roles.number(row.role) for row in rows]
        # The last row stands for what there is no end of.
        nothing = roles.number(None)
        role_of.append(nothing)
        divisors = [0] * len(roles)
        largest_amounts = [1] * len(roles)
        for role, row in zip(role_of, rows, strict=False):
            largest_amounts[role] = max(largest_amounts[role], row.limit)
        for drawn_on, amount in draws:
            role = role_of[drawn_on]
            divisors[role] = gcd(divisors[role], amount)
            largest_amounts[role] = max(largest_amounts[role], amount)
        unit_of_role = list(map(_unit, divisors, largest_amounts))
        unit_of_role[nothing] = 1
        units = [unit_of_role[role] for role in role_of]
        self.units = [float(unit) for unit in units[:-1]]
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
        times: list[int] = []
        starts: list[int] = []
        item_starts, item_places = [], []
        for (node, item), combinations in self.stop.hundreds(
            self.offers.items.items()
        ):
            item_places.append((item, node))
            item_starts.append(len(starts))
            for combination in combinations:
                starts.append(len(supplies))
                supplies += [supply for supply, _ in combination.draws]
                times += [count for _, count in combination.draws]
        self.combination_supplies = np.array(supplies, dtype=np.int64)
        self.combination_times = np.array(times, dtype=np.int64)
        self.combination_starts = np.array(starts, dtype=np.int64)
        self.item_starts = np.array(item_starts, dtype=np.int64)
        self.item_places = np.array(item_places, dtype=np.int64).reshape(-1, 2)

    def _gather_amounts(self) -> None:
        amounts, nodes = self.offers.amounts, max(1, self.offers.nodes)
        nothing = len(self.offers.rows)
        self.amount_rows = np.full(
            (len(amounts.names), nodes), nothing, dtype=np.int64
        )
        self.amount_limits = np.full(
            (len(amounts.names), nodes), _LARGEST, dtype=np.int64
        )
        scaled: list[dict[DemandIndex, int]] = []
        for name_index, name in enumerate(amounts.names):
            takes = {
                demand: amounts_taken.get(name, 0)
                for demand, amounts_taken in amounts.takes.items()
            }
            limits = {
                node: self.offers.rows[row].limit
                for node, row in amounts.rows[name_index].items()
            }
            # One unit for all nodes, so that everybody takes the same amount wherever it goes.
            largest_amount = max([*takes.values(), *limits.values()], default=0)
            unit = _unit(gcd(*takes.values()), largest_amount)
            scaled.append(
                {demand: amount // unit for demand, amount in takes.items()}
            )
            largest = max([1, *scaled[-1].values()])
            for node, row in amounts.rows[name_index].items():
                limit = limits[node] // unit
                self.amount_rows[name_index, node] = row
                self.amount_limits[name_index, node] = limit
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
        for limit_index, limit in enumerate(limits):
            for node, row in limit.rows.items():
                self.domain_limit_rows[limit_index, node] = row
            self.is_closed[limit_index, list(limit.closed)] = True

    def _gather_patterns(self) -> None:
        """What patterns supply, there is nothing else of."""
        for pattern_class in self.offers.pattern_classes:
            rows = list(pattern_class.rows)
            self.limits[rows] = 0
            # A pattern is paid for as a whole.
            self.largest[rows] = pattern_class.patterns.sum(axis=1).max()

    def _amounts_of(
        self, kind: DemandKind, takes: Sequence[Mapping[DemandIndex, int]]
    ) -> Integers:
        """By member of a kind and name, what it takes of its node."""
        amounts = np.zeros((len(kind.members), len(takes)), dtype=np.int64)
        for member_index, member in enumerate(kind.members):
            amounts[member_index] = [by_demand[member] for by_demand in takes]
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
        for item, times in option:
            room = np.minimum(room, self.available[item] // times)
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

    def _gather_gangs(self, most_of_gang: Mapping[str, int]) -> None:
        """Sort out the gangs that cannot be placed even alone, and the domains where they cannot."""
        self.gangs: list[MarketGang] = []
        kinds = self.demand_kinds.kinds
        self.lone = [np.ones(len(kind.members), dtype=bool) for kind in kinds]
        self.placeable = [
            np.ones(len(kind.members), dtype=bool) for kind in kinds
        ]
        place_of = {
            member: (kind_index, member_index)
            for kind_index, kind in enumerate(kinds)
            for member_index, member in enumerate(kind.members)
        }
        for name, members in self.stop.hundreds(
            self.demand_kinds.gangs.items()
        ):
            most = len(members)
            # Users of a claim are no gang, and have no such name.
            if isinstance(name, str):
                most = most_of_gang.get(name, most)
            places = [place_of[member] for member in members]
            gang = self._gang(members, places, most)
            # Without any domain it can be nowhere; with None for domains, anywhere.
            for kind_index, member_index in gang.places:
                self.lone[kind_index][member_index] = False
                self.placeable[kind_index][member_index] = gang.domains != ()
            self.gangs.append(gang)

    def _domain_indices(self, domains: Domains) -> Integers:
        """By node the number of its domain; -1 if it has none."""
        domain_indices = {
            name: index
            for index, name in enumerate(dict.fromkeys(domains.values()))
        }
        domain_of = [
            domain_indices[domains[node.name]] if node.name in domains else -1
            for node in self.problem.nodes
        ]
        return np.array(domain_of, dtype=np.int64)

    def _gang(
        self,
        members: Sequence[DemandIndex],
        places: Sequence[tuple[int, int]],
        most: int,
    ) -> MarketGang:
        first = self.problem.demands[members[0]]
        quorum = _quorum(first, len(members))
        room = self._room_of_all(places)
        choices = {self.demand_kinds.kinds[kind].domains for kind, _ in places}
        domains: tuple[int, ...] | None
        if len(choices) > 1 or not max(choices):
            domains = None if room.sum() >= quorum else ()
            return MarketGang(tuple(places), quorum, most, domains)
        domain_of = self.domain_of[max(choices)]
        inside = domain_of >= 0
        room_of_domain = np.bincount(
            domain_of[inside], weights=room[: len(inside)][inside]
        )
        domains = tuple(np.flatnonzero(room_of_domain >= quorum).tolist())
        return MarketGang(tuple(places), quorum, most, domains)

    def room_together(self) -> Integers:
        """Return by node how many demands could be there at most."""
        places = [
            (kind_index, member_index)
            for kind_index, kind in enumerate(self.demand_kinds.kinds)
            for member_index in range(len(kind.members))
        ]
        return self._room_of_all(places)

    def _room_of_all(self, places: Sequence[tuple[int, int]]) -> Integers:
        """By node, how many of some demands could be there at most, if there was nobody else.

        Of demands that ask for the same beside amounts there are no more than that allows; those that ask for something
        else may be there as well. Of each amount, all of them together take at least so often what the most modest of
        them takes.
        """
        room = np.zeros(max(1, self.offers.nodes), dtype=np.int64)
        kinds = self.demand_kinds.kinds
        by_shape = grouped((kinds[kind].shape, kind) for kind, _ in places)
        for shape, kinds_of_members in by_shape.items():
            nodes = np.unique(
                np.concatenate(
                    [self.nodes[kind] for kind in set(kinds_of_members)]
                )
            )
            room[nodes] += np.minimum(
                len(kinds_of_members), self.room[shape][nodes]
            )
        amounts = [
            self.amounts[kind][member_index] for kind, member_index in places
        ]
        for name, least in enumerate(np.min(amounts, axis=0).tolist()):
            if least:
                limits = self.amount_limits[name] // least
                # A node that has no end of it has room for any number, however much each of them takes.
                is_limited = self.amount_rows[name] < len(self.offers.rows)
                room = np.where(is_limited, np.minimum(room, limits), room)
        return room


def _quorum(member: Demand, size: int) -> int:
    """Return how many of a gang have to be placed for any to be: of users of a claim, who are in none, any one."""
    if not member.gang:
        return 1
    return max(1, size if member.quorum is None else member.quorum)


def market_of(
    problem: Problem,
    stop: Stop,
    *closer: Callable[[NodeOffers], NodeOffers],
    most_of_gang: Mapping[str, int] = MappingProxyType({}),
) -> Market:
    """Read what demands need and what nodes offer.

    Parameters
    ----------
    closer
        What limits offers more closely, one after the other.
    most_of_gang
        As `dralloc.solve.optimum.objective.DemandSubset` has it.

    Raises
    ------
    Stopped
        There is no time to find out.
    """
    demand_kinds = demand_kinds_of(problem, stop)
    offers = node_offers_of(problem, demand_kinds, stop)
    for with_more_rows in closer:
        offers = with_more_rows(offers)
    return Market(problem, demand_kinds, offers, stop, most_of_gang)


def _unit(divisor: int, largest: int) -> int:
    """Return what to divide amounts by, so that they become small enough."""
    if largest // max(1, divisor) >= _LARGEST:
        return max(1, divisor, largest // _LARGEST + 1)
    return max(1, divisor)
