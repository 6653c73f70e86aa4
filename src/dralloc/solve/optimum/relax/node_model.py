"""Who goes to which node, as whole demands: the rows of a relaxation as an integer program.

A linear program places half of a pod on this node and half on that one, and two thirds of a gang. Where there are few
enough demands and nodes, the same rows are solved in whole demands, gangs and devices, by CP-SAT, which proves in
integers. That says more than any prices can. The answer says which demands go where, though not with which devices, and
it need not keep the rules that relaxations leave out (`dralloc.solve.optimum.relax`). Most often nearly all of these
demands find devices there, as the rows of a node say most of what matters on it.

As in the linear program, rows of equal role on a node are one (`dralloc.solve.optimum.relax.merged`): so equal devices
need no names. What is merged says less than its parts; so every answer to the problem is one to these rows.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Final, NamedTuple

import numpy as np

from dralloc.objects.choices import Options
from dralloc.problem import DemandIndex, NodeIndex
from dralloc.problem.indices import grouped
from dralloc.solve.optimum.relax.demand_kinds import DemandKind, OptionSet
from dralloc.solve.optimum.relax.levels import LexicographicLevel
from dralloc.solve.optimum.relax.market import Market, MarketGang
from dralloc.solve.optimum.relax.merged import merged_offers
from dralloc.solve.optimum.relax.offers import PatternClass
from dralloc.solve.optimum.rows import SAFE_SUM, Term, WeightTier, sum_of
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop

__all__ = ["NodeAssignment", "NodeModel"]


_MOST_PARTS: Final = 5040
"""A device that users of a claim share from several nodes is counted in parts, of which there are so many at most."""


class NodeAssignment(NamedTuple):
    """What the integer program has come to.

    Parameters
    ----------
    bound
        The weight that is missing in any answer at least, in units of the tier.
    missing
        The weight that is missing in this one.
    nodes
        The node of each demand that is placed.
    """

    bound: int
    missing: int
    nodes: Mapping[DemandIndex, NodeIndex]


class _EqualDemands(NamedTuple):
    """Demands that are equal to all rows: of one kind, in the same gang if in any, and with equal amounts.

    Parameters
    ----------
    on_nodes
        How many of them are on each node where any could be.
    missing
        How many of them are nowhere.
    """

    kind: DemandKind
    gang: int | None
    members: Sequence[DemandIndex]
    on_nodes: Mapping[NodeIndex, cp_model.IntVar]
    missing: cp_model.IntVar


class _Row:
    """A row ``sum(coefficient * variable) <= limit``."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.terms: list[tuple[cp_model.IntVar, Fraction]] = []

    def draw(self, variable: cp_model.IntVar, amount: Fraction | int) -> None:
        """Let a variable draw on it; a negative amount is a supply."""
        self.terms.append((variable, Fraction(amount)))

    def add_to(self, cp: cp_model.CpModel) -> None:
        """Add it in whole numbers.

        Where they would be too large for the solver, they are divided and rounded down: whoever kept the row keeps it
        still, as the sum of what was rounded down is a whole number and no more than the limit.
        """
        scale = lcm(*(amount.denominator for _, amount in self.terms))
        variables = [variable for variable, _ in self.terms]
        amounts = [int(amount * scale) for _, amount in self.terms]
        limit = self.limit * scale
        largest = limit + sum(
            abs(amount) * variable.domain.max()
            for variable, amount in zip(variables, amounts, strict=True)
        )
        unit = largest // SAFE_SUM + 1
        total = cp_model.LinearExpr.weighted_sum(
            variables, [amount // unit for amount in amounts]
        )
        cp.add(total <= limit // unit)


class NodeModel:
    """The integer program over the rows of a market.

    Raises
    ------
    Stopped
        It is time to stop.
    """

    def __init__(self, market: Market, stop: Stop) -> None:
        self._market = market
        self._cp = cp_model.CpModel()
        self._offers = merged_offers(market, np.arange(market.offers.nodes))
        self._rows = [_Row(limit) for limit in self._offers.limits]
        # Patterns have no node, either: where they count as common, the program only says less.
        self._common_rows = {
            merged
            for merged, row in zip(
                self._offers.row_of, market.offers.rows, strict=True
            )
            if row.node is None
        }
        sharers = (
            choice.sharers
            for shape in market.demand_kinds.shapes
            for choice in shape
        )
        self._parts = min(lcm(*sharers), _MOST_PARTS)
        self._supply_rows: dict[int, _Row] = {}
        self._item_rows: dict[tuple[int, int], _Row] = {}
        for pattern_class in market.offers.pattern_classes:
            self._list_patterns(pattern_class)
        self._groups = [
            self._group(*group)
            for group in stop.hundreds(_equal_members(market))
        ]
        groups_of_gangs = grouped((group.gang, group) for group in self._groups)
        for gang_index, gang in enumerate(market.gangs):
            self._keep_together(gang, groups_of_gangs.get(gang_index, ()))
        for row in stop.hundreds(self._rows):
            if row.terms:
                row.add_to(self._cp)

    # Supplies.

    def _row(self) -> _Row:
        """A row between what makes something and what needs it."""
        row = _Row(0)
        self._rows.append(row)
        return row

    def _market_row(self, row: int) -> _Row:
        return self._rows[self._offers.row_of[row]]

    def _list_patterns(self, pattern_class: PatternClass) -> None:
        """A variable for each pattern: on how many devices there is this one."""
        device_count = len(pattern_class.nodes)
        rows = list(map(self._market_row, pattern_class.rows))
        devices_by_pattern = []
        for pattern in pattern_class.patterns.tolist():
            devices = self._cp.new_int_var(0, device_count, "")
            devices_by_pattern.append(devices)
            for row, times in zip(rows, pattern, strict=True):
                if times:
                    row.draw(devices, -times)
        self._cp.add(sum(devices_by_pattern) <= device_count)

    def _item(self, node: NodeIndex, item: int) -> _Row:
        """The row of what makes an item on a node, and of what needs it."""
        key = node, item
        if key not in self._item_rows:
            self._item_rows[key] = row = self._row()
            for draws, most in self._offers.combinations[key].items():
                parts = max(self._parts_of(supply) for supply, _ in draws)
                uses = self._cp.new_int_var(0, most * parts, "")
                row.draw(uses, Fraction(-1, parts))
                for supply, times in draws:
                    self._supply(supply).draw(uses, Fraction(times, parts))
        return self._item_rows[key]

    def _supply(self, supply: int) -> _Row:
        """The row of what gives devices of a supply, and of what needs them."""
        if supply not in self._supply_rows:
            self._supply_rows[supply] = row = self._row()
            parts = self._parts_of(supply)
            for draws, most in self._offers.ways[supply].items():
                uses = self._cp.new_int_var(0, most * parts, "")
                row.draw(uses, Fraction(-1, parts))
                for merged_row, amount in draws:
                    draw = Fraction(amount, parts)
                    self._rows[merged_row].draw(uses, draw)
        return self._supply_rows[supply]

    def _parts_of(self, supply: int) -> int:
        """In how many parts a device of a supply is counted.

        Users of one claim count for a part of its devices each. A device of one node has them all there, and is used as
        a whole; of one that several nodes reach, users on each of them take their part.
        """
        is_common = any(
            row in self._common_rows
            for draws in self._offers.ways[supply]
            for row, _ in draws
        )
        return self._parts if is_common else 1

    # Demands.

    def _group(
        self,
        kind_index: int,
        gang: int | None,
        amounts: tuple[int, ...],
        members: Sequence[DemandIndex],
    ) -> _EqualDemands:
        kind = self._market.demand_kinds.kinds[kind_index]
        nodes = self._nodes(kind_index, gang, amounts)
        on_nodes = {
            node: self._placed(kind, amounts, len(members), node)
            for node in nodes
        }
        missing = self._cp.new_int_var(0, len(members), "")
        self._cp.add(sum(on_nodes.values()) + missing == len(members))
        return _EqualDemands(kind, gang, members, on_nodes, missing)

    def _nodes(
        self, kind_index: int, gang: int | None, amounts: Sequence[int]
    ) -> list[NodeIndex]:
        """The nodes where demands of a kind with these amounts could be."""
        market = self._market
        nodes = market.nodes[kind_index]
        taken = np.array(amounts, dtype=np.int64)[:, np.newaxis]
        is_roomy = (taken <= market.amount_limits[:, nodes]).all(axis=0)
        domains = None if gang is None else market.gangs[gang].domains
        if domains is not None:
            kind = market.demand_kinds.kinds[kind_index]
            domain_of = market.domain_of[kind.domains][nodes]
            is_roomy &= np.isin(domain_of, domains)
        return list(map(NodeIndex, nodes[is_roomy].tolist()))

    def _placed(
        self,
        kind: DemandKind,
        amounts: Sequence[int],
        count: int,
        node: NodeIndex,
    ) -> cp_model.IntVar:
        """How many of so many demands are on a node, where they draw on what they need."""
        market = self._market
        placed = self._cp.new_int_var(0, count, "")
        amount_rows = market.amount_rows[:, node].tolist()
        domain_limits = list(kind.domain_limits)
        limit_rows = market.domain_limit_rows[domain_limits, node].tolist()
        draws = [
            *zip(amount_rows, amounts, strict=True),
            *((row, 1) for row in limit_rows),
        ]
        # The last row stands for what there is no end of.
        nothing = len(market.offers.rows)
        for row, amount in draws:
            if amount and row != nothing:
                self._market_row(row).draw(placed, amount)
        for choice in market.demand_kinds.shapes[kind.shape]:
            self._choose(choice, placed, count, node)
        return placed

    def _choose(
        self,
        choice: OptionSet,
        placed: cp_model.IntVar,
        count: int,
        node: NodeIndex,
    ) -> None:
        """Give each of those who are placed one of some options, or its part of one."""
        picks: list[cp_model.IntVar] = []
        for option in choice.options:
            if all(
                self._market.available[item, node] >= times
                for item, times in option
            ):
                pick = self._cp.new_int_var(0, count, "")
                picks.append(pick)
                for item, times in option:
                    # Rounded down, where there are more parts than are counted.
                    parts = times * self._parts // choice.sharers
                    part = Fraction(parts, self._parts)
                    self._item(node, item).draw(pick, part)
        self._cp.add(sum(picks) == placed)

    # Gangs.

    def _keep_together(
        self, gang: MarketGang, groups: Sequence[_EqualDemands]
    ) -> None:
        """A gang is placed as far as its quorum says, in one domain if it needs one, or not at all."""
        if gang.domains is None:
            self._keep_quorum(gang, groups, None)
            return
        chosen = [
            self._keep_quorum(gang, groups, domain) for domain in gang.domains
        ]
        if chosen:
            self._cp.add_at_most_one(chosen)

    def _keep_quorum(
        self,
        gang: MarketGang,
        groups: Iterable[_EqualDemands],
        domain: int | None,
    ) -> cp_model.IntVar:
        """Return whether the gang is in a domain, or anywhere if it needs none; if so, as far as its quorum says."""
        is_here = self._cp.new_bool_var("")
        everybody: list[cp_model.IntVar] = []
        for group in groups:
            domain_of = self._market.domain_of[group.kind.domains]
            here = [
                placed
                for node, placed in group.on_nodes.items()
                if domain is None or domain_of[node] == domain
            ]
            self._cp.add(sum(here) <= len(group.members) * is_here)
            everybody += here
        self._cp.add(sum(everybody) >= gang.quorum * is_here)
        self._cp.add(sum(everybody) <= gang.most * is_here)
        return is_here

    # Answers.

    def require(self, level: LexicographicLevel, units: int) -> None:
        """Have at least so much of a level placed."""
        missing = [
            (group.missing, level.of(group.kind.weight))
            for group in self._groups
        ]
        lost = self._lost(level)
        self._cp.add(sum_of(missing) <= level.total - units - lost)

    def _lost(self, weights: LexicographicLevel | WeightTier) -> int:
        """The weight of demands that nobody could place, in units."""
        placeable = {
            member for group in self._groups for member in group.members
        }
        return sum(
            weights.of(demand.weight)
            for index, demand in enumerate(self._market.problem.demands)
            if index not in placeable
        )

    def solve(
        self,
        tier: WeightTier,
        present: Mapping[DemandIndex, NodeIndex],
        options: Options,
        stop: Stop,
    ) -> NodeAssignment | None:
        """Place as much weight of a tier as possible, once; None if there was no time for any answer.

        Parameters
        ----------
        present
            The nodes of demands now, to start from.
        """
        cost: list[Term] = [
            (group.missing, tier.of(group.kind.weight))
            for group in self._groups
            if tier.of(group.kind.weight)
        ]
        for group in self._groups:
            self._hint(group, present)
        lost = self._lost(tier)
        outcome = minimise(self._cp, cost, options, stop, hint_is_answer=False)
        if outcome.values is None:
            return None
        values = outcome.values
        missing = sum(
            weight * values[variable.index] for variable, weight in cost
        )
        nodes: dict[DemandIndex, NodeIndex] = {}
        for group in self._groups:
            nodes.update(_nodes_of_members(group, values, present))
        return NodeAssignment(outcome.bound + lost, missing + lost, nodes)

    def _hint(
        self, group: _EqualDemands, present: Mapping[DemandIndex, NodeIndex]
    ) -> None:
        placed = Tally(
            present[member] for member in group.members if member in present
        )
        for node, variable in group.on_nodes.items():
            self._cp.add_hint(variable, placed[node])
        self._cp.add_hint(group.missing, len(group.members) - placed.total())


def _equal_members(
    market: Market,
) -> Iterator[tuple[int, int | None, tuple[int, ...], Sequence[DemandIndex]]]:
    """Give out demands that are equal to all rows: their kind, gang and amounts, and who they are."""
    gang_of = {
        member: gang_index
        for gang_index, gang in enumerate(market.gangs)
        for member in gang.places
    }
    for kind_index, kind in enumerate(market.demand_kinds.kinds):
        amounts = market.amounts[kind_index].tolist()
        placeable = np.flatnonzero(market.placeable[kind_index]).tolist()
        members_by_key = grouped(
            (
                (gang_of.get((kind_index, index)), tuple(amounts[index])),
                kind.members[index],
            )
            for index in placeable
        )
        for (gang_of_members, taken), members in members_by_key.items():
            yield kind_index, gang_of_members, taken, members


def _nodes_of_members(
    group: _EqualDemands,
    values: Sequence[int],
    present: Mapping[DemandIndex, NodeIndex],
) -> Mapping[DemandIndex, NodeIndex]:
    """Say who of equal demands is on which node: where it is now, if it can be."""
    room = {
        node: values[variable.index]
        for node, variable in group.on_nodes.items()
    }
    nodes: dict[DemandIndex, NodeIndex] = {}
    for member in group.members:
        node = present.get(member)
        if node is not None and room.get(node, 0):
            nodes[member] = node
            room[node] -= 1
    others = [member for member in group.members if member not in nodes]
    remaining = [node for node, seats in room.items() for _ in range(seats)]
    # Who is behind the last of them is placed nowhere.
    nodes.update(zip(others, remaining, strict=False))
    return nodes
