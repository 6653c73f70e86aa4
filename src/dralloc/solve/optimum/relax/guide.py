"""Prices that prove much: the shadow prices of a linear program over regions of nodes, in floats.

Nodes of a region are taken for one, with all that they have together, and demands that differ little for equal ones. So
the program stays small, and its prices come close to the best ones. What they prove is said elsewhere, in
`dralloc.solve.optimum.relax.prices`; here, nothing needs to be exact.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice, product
from threading import Thread
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dralloc.objects.errors import ModelError
from dralloc.problem.indices import grouped, summed
from dralloc.solve.optimum.relax.amounts import Integers
from dralloc.solve.optimum.relax.demand_kinds import (
    Draws,
    OptionSet,
    Shape,
)
from dralloc.solve.optimum.relax.market import Market
from dralloc.solve.optimum.relax.merged import merged_offers
from dralloc.solve.optimum.relax.offers import PatternClass
from dralloc.solve.optimum.relax.tier_costs import FREE, TierCosts
from dralloc.solve.optimum.solvers import linear
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Floats", "Guide", "KnownLimit", "ShadowPrices", "SolvedProgram"]

Floats = npt.NDArray[np.float64]

_LISTEN: Final = 0.05
"""Seconds until it is asked again whether to stop."""

_SHORT: Final = 1000.0
"""What it costs in the program if a demand less is placed than there has to be."""

_MOST_PICKS: Final = 8
"""Of more ways to pick alternatives, the first."""


class _Lot(NamedTuple):
    """Demands of a kind that take about the same of their nodes."""

    kind: int
    size: int
    amounts: Floats


class KnownLimit(NamedTuple):
    """A limit on what is placed, where each demand counts by its kind."""

    counts: Sequence[int]
    limit: int

    @classmethod
    def at_least(cls, counts: Iterable[int], units: int) -> KnownLimit:
        """Return the limit that says that so much is placed: of what is below 0, no more than that below 0."""
        return cls([-count for count in counts], -units)


class ShadowPrices(NamedTuple):
    """The worth of one more: of each row of the market, and of each cap.

    ``short``: by cap, what is missing to what has to be placed, where something may be.
    """

    rows: Floats
    caps: Floats
    short: Floats


class Guide:
    """A linear program over regions of nodes and lots of demands.

    Parameters
    ----------
    regions
        By node.
    lots
        Into so many lots at most demands of a kind are divided.
    """

    def __init__(self, market: Market, regions: Integers, lots: int) -> None:
        self.market = market
        self.regions = regions
        self.offers = merged_offers(market, regions)
        self.row_of = np.array(self.offers.row_of, dtype=np.int64)
        self.lots = [
            lot
            for kind in range(len(market.demand_kinds.kinds))
            for lot in self._lots(kind, lots)
        ]

    def _lots(self, kind: int, lot_count: int) -> list[_Lot]:
        """The demands of a kind, those with about equal amounts together."""
        amounts = self.market.amounts[kind][self.market.placeable[kind]].astype(
            float
        )
        if not amounts.shape[1]:
            return [_Lot(kind, len(amounts), np.zeros(0))]
        # What somebody takes of a node as a part of what there is on average.
        typical = np.maximum(1.0, self.market.amount_limits.mean(axis=1))
        order = np.argsort((amounts / typical).max(axis=1), kind="stable")
        return [
            _Lot(kind, len(part), amounts[part].mean(axis=0))
            for part in np.array_split(order, lot_count)
            if len(part)
        ]

    def solve(
        self,
        worth: Sequence[float],
        caps: Sequence[KnownLimit],
        stop: Stop,
        tier_costs: TierCosts = FREE,
    ) -> ShadowPrices | None:
        """Solve the linear program; None if there was no time.

        Parameters
        ----------
        worth
            By kind, what placing a demand is worth.
        caps
            What is known of all that is placed.
        tier_costs
            What a later tier counts: what of it an answer costs, it is worth less.
        """
        program = _Program(self, worth, caps, tier_costs=tier_costs)
        duals = program.solve(stop)
        if duals is None:
            return None
        first = len(self.offers.limits)
        return ShadowPrices(
            duals[:first][self.row_of],
            duals[first : first + len(caps)],
            program.values[program.short],
        )

    def cover(
        self, costs: Sequence[int], stop: Stop
    ) -> tuple[Floats, Floats] | None:
        """Have everything placed on nodes that can be had any number of times; None if there was no time.

        Parameters
        ----------
        costs
            By region, what its nodes cost.

        Returns
        -------
        How many of each region are needed, and the prices of the rows of the market.
        """
        # Whoever is not placed costs more than a node alone for it.
        worth = [2.0 * max(costs)] * len(self.market.demand_kinds.kinds)
        program = _Program(self, worth, (), costs)
        duals = program.solve(stop)
        if duals is None:
            return None
        prices = duals[: len(self.offers.limits)][self.row_of]
        return program.values[: len(costs)], prices


class SolvedProgram(NamedTuple):
    """A linear program, and how many seconds it took to solve it for a level."""

    guide: Guide
    seconds: float


class _Program:
    """The linear program.

    Parameters
    ----------
    costs
        By region, what it costs to have it once; without any, all are there once for nothing.
    tier_costs
        As `Guide.solve` takes them.
    """

    def __init__(
        self,
        guide: Guide,
        worth: Sequence[float],
        caps: Sequence[KnownLimit],
        costs: Sequence[float] = (),
        tier_costs: TierCosts = FREE,
    ) -> None:
        self.guide = guide
        self.tier_costs = tier_costs
        self.model = linear.ModelBuilderHelper()
        self.rows: list[tuple[list[int], list[float]]] = []
        self.limits: list[float] = []
        self.objective: dict[int, float] = {}
        self.variables = 0
        self.values = np.zeros(0)
        for limit in guide.offers.limits:
            self._row(0.0 if costs else float(limit))
        self.caps = [(self._row(float(cap.limit)), cap.counts) for cap in caps]
        self._buy(costs)
        self._open_things()
        self.short: list[int] = []
        if tier_costs != FREE:
            # Nodes are put together here: what an answer places may be a little more than there is room for.
            self.short = [self._variable([(row, -1.0)]) for row, _ in self.caps]
            self.objective.update(dict.fromkeys(self.short, -_SHORT))
        for pattern_class in guide.market.offers.pattern_classes:
            self._list_patterns(pattern_class)
        self.supply_rows: dict[int, int] = {}
        self.item_rows: dict[tuple[int, int], int] = {}
        for lot in guide.lots:
            if worth[lot.kind]:
                self._place(lot, worth[lot.kind])

    def _buy(self, costs: Sequence[float]) -> None:
        """A variable for each region: how often it is there."""
        if not costs:
            return
        guide = self.guide
        region_of: dict[int, int] = {}
        for row, limited in zip(
            guide.offers.row_of, guide.market.offers.rows, strict=True
        ):
            region_of[row] = int(guide.regions[limited.node])
        limits = guide.offers.limits
        rows = grouped((region, row) for row, region in region_of.items())
        for region, cost in enumerate(costs):
            terms = [(row, -limits[row]) for row in rows.get(region, ())]
            self.objective[self._variable(terms)] = -cost

    def _open_things(self) -> None:
        """A variable for things that are alike: how many are opened. Before that, nobody draws on their rows."""
        guide = self.guide
        limits = guide.market.limits.tolist()
        thing_counts: Tally[tuple[int, ...]] = Tally()
        held: dict[tuple[int, ...], Tally[int]] = defaultdict(Tally)
        for rows in self.tier_costs.openings:
            merged_rows = [guide.offers.row_of[row] for row in rows]
            alike = tuple(sorted(set(merged_rows)))
            thing_counts[alike] += 1
            for row, merged_row in zip(rows, merged_rows, strict=True):
                held[alike][merged_row] += limits[row]
        for alike, thing_count in thing_counts.items():
            opened = [(self._row(float(thing_count)), 1.0)]
            for merged_row, amount in held[alike].items():
                self.limits[merged_row] -= amount
                opened.append((merged_row, -amount / thing_count))
            self.objective[self._variable(opened)] = -1.0

    @cached_property
    def _way_costs(self) -> Mapping[tuple[int, Draws], int]:
        """By merged supply and what a way draws on: what it costs in a later tier."""
        costs: dict[tuple[int, Draws], int] = {}
        for way, cost in zip(
            self.guide.offers.way_of, self.tier_costs.ways, strict=False
        ):
            costs[way] = min(cost, costs.get(way, cost))
        return costs

    def _list_patterns(self, pattern_class: PatternClass) -> None:
        """A variable for each pattern: on how many devices there is this one."""
        rows = self.guide.row_of[list(pattern_class.rows)].tolist()
        devices = self._row(float(len(pattern_class.nodes)))
        for pattern in pattern_class.patterns.tolist():
            supplied = [
                (row, -float(times))
                for row, times in zip(rows, pattern, strict=True)
                if times
            ]
            self._variable([(devices, 1.0), *supplied])

    def _row(self, limit: float) -> int:
        self.rows.append(([], []))
        self.limits.append(limit)
        return len(self.rows) - 1

    def _variable(self, terms: Iterable[tuple[int, float]]) -> int:
        # Two items, or two limits of domains, may draw on the same row; to the solver a row has a variable once.
        for row, coefficient in summed(terms).items():
            self.rows[row][0].append(self.variables)
            self.rows[row][1].append(coefficient)
        self.variables += 1
        return self.variables - 1

    def _place(self, lot: _Lot, weight: float) -> None:
        """A variable for each region and way to serve a lot: how much of it is placed so."""
        guide = self.guide
        market, regions = guide.market, guide.regions
        nodes = market.nodes[lot.kind]
        fits = lot.amounts[:, np.newaxis] <= market.amount_limits[:, nodes]
        roomy_nodes = nodes[fits.all(axis=0)]
        kinds = market.demand_kinds
        shape = kinds.shapes[kinds.kinds[lot.kind].shape]
        caps = [
            (row, float(counts[lot.kind]))
            for row, counts in self.caps
            if counts[lot.kind]
        ]
        # No more of the lot is placed than there is of it, and than is known to be possible.
        limiting = [(self._row(lot.size), 1.0), *caps]
        firsts = np.unique(regions[roomy_nodes], return_index=True)
        for region, first in zip(
            *(part.tolist() for part in firsts), strict=True
        ):
            amount_rows = market.amount_rows[:, roomy_nodes[first]].tolist()
            amounts = [
                (guide.offers.row_of[row], float(amount))
                for row, amount in zip(amount_rows, lot.amounts, strict=True)
                if amount and row < len(guide.offers.row_of)
            ]
            domain_limits = self._domain_limits(lot.kind, roomy_nodes, region)
            combinations = guide.offers.combinations
            for needs, rank in _picks(shape):
                if all((region, item) in combinations for item in needs):
                    items = [
                        (self._item(region, item), amount)
                        for item, amount in needs.items()
                    ]
                    variable = self._variable(
                        [*amounts, *items, *domain_limits, *limiting]
                    )
                    cost = self.tier_costs.rank * rank
                    self.objective[variable] = weight - cost

    def _domain_limits(
        self, kind: int, nodes: Integers, region: int
    ) -> list[tuple[int, float]]:
        """What a kind draws on of the limits of domains, on those of these nodes that are in a region.

        Where a region reaches into several domains of a limit it is left out.
        """
        guide = self.guide
        draws: list[tuple[int, float]] = []
        for limit in guide.market.demand_kinds.kinds[kind].domain_limits:
            inside = nodes[guide.regions[nodes] == region]
            rows = np.unique(guide.market.domain_limit_rows[limit, inside])
            limited = rows[rows < len(guide.row_of)]
            drawn_on = np.unique(guide.row_of[limited])
            if len(limited) == len(rows) and len(drawn_on) == 1:
                draws.append((int(drawn_on[0]), 1.0))
        return draws

    def _item(self, region: int, item: int) -> int:
        """The row of what makes an item in a region, and of what needs it."""
        if (region, item) in self.item_rows:
            return self.item_rows[region, item]
        ways = self.guide.offers.combinations[region, item]
        first = next(iter(ways))
        if len(ways) == len(first) == 1 and first[0][1] == 1:
            # One device of a type: what supplies it makes it.
            row = self._supply(first[0][0])
        else:
            row = self._row(0.0)
            for draws in ways:
                # Different values of a region may be alike, and then are one supply.
                needs = summed(
                    (self._supply(supply), float(times))
                    for supply, times in draws
                )
                self._variable([(row, -1.0), *needs.items()])
        self.item_rows[region, item] = row
        return row

    def _supply(self, supply: int) -> int:
        if supply not in self.supply_rows:
            self.supply_rows[supply] = row = self._row(0.0)
            for draws in self.guide.offers.ways[supply]:
                floats = [
                    (drawn_on, float(amount)) for drawn_on, amount in draws
                ]
                variable = self._variable([(row, -1.0), *floats])
                self.objective[variable] = -float(
                    self._way_costs.get((supply, draws), 0)
                )
        return self.supply_rows[supply]

    def solve(self, stop: Stop) -> Floats | None:
        model = self.model
        for _ in range(self.variables):
            model.add_var()
        for variable in range(self.variables):
            model.set_var_lower_bound(variable, 0.0)
            model.set_var_upper_bound(variable, np.inf)
        for variable, weight in self.objective.items():
            model.set_var_objective_coefficient(variable, weight)
        model.set_maximize(True)
        # In the order of their numbers, by which `Guide` reads the shadow prices.
        for limit, (variables, coefficients) in zip(
            self.limits, self.rows, strict=True
        ):
            row = model.add_linear_constraint()
            model.set_constraint_lower_bound(row, -np.inf)
            model.set_constraint_upper_bound(row, limit)
            for variable, coefficient in zip(
                variables, coefficients, strict=True
            ):
                model.add_term_to_constraint(row, variable, coefficient)
        solver = linear.ModelSolverHelper("GLOP")
        if not _is_solved(solver, model, stop):
            return None
        self.values = np.array(solver.variable_values())
        return np.array(solver.dual_values())


def _is_solved(
    solver: linear.ModelSolverHelper,
    model: linear.ModelBuilderHelper,
    stop: Stop,
) -> bool:
    """Solve in a thread of its own, so that a Ctrl-C is heard here.

    Raises
    ------
    ModelError
        The solver rejects the program. Without it, all that would be seen is a bound that says little.
    """
    thread = Thread(
        target=solver.solve, args=(model,), name="glop", daemon=True
    )
    thread.start()
    while thread.is_alive():
        thread.join(_LISTEN)
        if stop.reached():
            solver.interrupt_solve()
    if solver.status() == linear.SolveStatus.MODEL_INVALID:
        raise ModelError(
            f"the solver rejects the linear program: {solver.status_string()}"
        )
    return bool(solver.has_solution())


class _Pick(NamedTuple):
    """An option of every choice: what is needed of which item, and the ranks added up."""

    needs: Mapping[int, float]
    rank: float


def _picks(shape: Shape) -> list[_Pick]:
    """Return each way to pick an option of every choice, up to so many."""
    options_of_choices = map(_options, shape)
    combinations = islice(product(*options_of_choices), _MOST_PICKS)
    return list(map(_together, combinations))


def _options(choice: OptionSet) -> list[_Pick]:
    """Return each option of a choice, alone: a sharer's part of it."""
    picks: list[_Pick] = []
    for option, rank in zip(choice.options, choice.ranks, strict=True):
        needs = {item: times / choice.sharers for item, times in option}
        picks.append(_Pick(needs, rank / choice.sharers))
    return picks


def _together(options: Sequence[_Pick]) -> _Pick:
    """Return some options as one."""
    needs = chain.from_iterable(option.needs.items() for option in options)
    return _Pick(summed(needs), sum(option.rank for option in options))
