"""A ladder of relaxations: each rung proves more, and takes longer.

From top to bottom: the linear program over regions of nodes that guesses prices; the regions, nodes that are about
alike; the ladder; and, with the same prices, what nodes cost at least that hold everything.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import chain, islice, product
from math import floor, gcd, inf, isfinite, log2
from operator import mul
from threading import Thread
from typing import Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dralloc.problem import DemandIndex, Problem
from dralloc.problem.indices import grouped, summed
from dralloc.problem.solution import (
    APPRAISAL_UNIT,
    Appraisal,
    LevelPrices,
)
from dralloc.solve.optimum.classes.demand_classes import Listed
from dralloc.solve.optimum.objective import Objective
from dralloc.solve.optimum.relax.demand_kinds import (
    Draws,
    Integers,
    Shape,
    demand_kinds_of,
)
from dralloc.solve.optimum.relax.offers import node_offers_of
from dralloc.solve.optimum.relax.prices import (
    LexicographicLevel,
    Market,
    costs_of,
    levels_of,
)
from dralloc.solve.optimum.solvers import linear
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = [
    "Bound",
    "RelaxationLadder",
    "RelaxedCover",
    "relaxed_bounds",
    "relaxed_cover",
]

# ----------------------------------------------------------------------------
# Prices that prove much: the shadow prices of a linear program over regions of nodes,
# in floats.
#
# Nodes of a region are taken for one, with all that they have together, and demands
# that differ little for equal ones. So the program stays small, and its prices come
# close to the best ones. What they prove is said elsewhere, in
# `dralloc.solve.optimum.relax.prices`; here, nothing needs to be exact.

_Draws = tuple[tuple[int, float], ...]
"""Rows with amounts, in the unit of the first of those that are one."""

Floats = npt.NDArray[np.float64]

_LISTEN: Final = 0.05
"""Seconds until it is asked again whether to stop."""

_MOST_PICKS: Final = 8
"""Of more ways to pick alternatives, the first."""


class _Lot(NamedTuple):
    """Demands of a kind that take about the same of their nodes."""

    kind: int
    number: int
    amounts: Floats


class KnownLimit(NamedTuple):
    """A limit on what is placed, where each demand counts by its kind."""

    counts: Sequence[int]
    limit: int


class ShadowPrices(NamedTuple):
    """The worth of one more: of each row of the market, and of each cap."""

    rows: Floats
    caps: Floats


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
        self._gather_rows()
        self._gather_supplies()
        self.lots = [
            lot
            for kind in range(len(market.demand_kinds.kinds))
            for lot in self._lots(kind, lots)
        ]

    def _gather_rows(self) -> None:
        """Rows of equal role in a region are one."""
        rows: Listed[Hashable] = Listed()
        regions = self.regions
        row_of = []
        for number, row in enumerate(self.market.offers.rows):
            key: Hashable = ("row", number)
            # Rows that several nodes draw on stay what they are.
            if row.node is not None:
                key = (int(regions[row.node]), row.role)
            row_of.append(rows.number(key))
        self.row_of = np.array(row_of, dtype=np.int64)
        units = np.array([*self.market.units, 1.0])
        self.scale = np.ones(len(rows))
        # Backwards, so that the first row that is one with others gives the unit.
        self.scale[self.row_of[::-1]] = units[:-1][::-1]
        self.factors = units[:-1] / self.scale[self.row_of]
        self.limits = np.zeros(len(rows))
        np.add.at(
            self.limits, self.row_of, self.market.limits[:-1] * self.factors
        )

    def _gather_supplies(self) -> None:
        """Supplies of equal role in a region are one, with all their ways; and so are the ways to make an item."""
        offers, regions = self.market.offers, self.regions
        supplies: Listed[Hashable] = Listed()
        self.ways: list[dict[_Draws, None]] = []
        supply_of = []
        starts = iter(self.market.way_starts.tolist())
        rows, amounts = (
            self.market.way_rows.tolist(),
            self.market.way_amounts.tolist(),
        )
        for supply in offers.supplies:
            number = supplies.number((int(regions[supply.node]), supply.role))
            if number == len(self.ways):
                self.ways.append({})
            supply_of.append(number)
            for way in supply.ways:
                first = next(starts)
                draws = []
                for place in range(first, first + len(way.draws)):
                    row = rows[place]
                    amount = float(amounts[place] * self.factors[row])
                    draws.append((int(self.row_of[row]), amount))
                self.ways[number][tuple(draws)] = None
        self.items: dict[tuple[int, int], dict[Draws, None]] = defaultdict(dict)
        for (node, item), combinations in offers.items.items():
            ways = self.items[int(regions[node]), item]
            for combination in combinations:
                supply_draws = [
                    (supply_of[supply], number)
                    for supply, number in combination.draws
                ]
                ways[tuple(supply_draws)] = None

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
        self, worth: Sequence[float], caps: Sequence[KnownLimit], stop: Stop
    ) -> ShadowPrices | None:
        """Solve the linear program; None if there was no time.

        Parameters
        ----------
        worth
            By kind, what placing a demand is worth.
        caps
            What is known of all that is placed.
        """
        program = _Program(self, worth, caps)
        duals = program.solve(stop)
        if duals is None:
            return None
        first = len(self.limits)
        return ShadowPrices(
            duals[:first][self.row_of] * self.factors,
            duals[first : first + len(caps)],
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
        prices = duals[: len(self.limits)][self.row_of] * self.factors
        return program.values[: len(costs)], prices


class _Program:
    """The linear program.

    Parameters
    ----------
    costs
        By region, what it costs to have it once; without any, all are there once for nothing.
    """

    def __init__(
        self,
        guide: Guide,
        worth: Sequence[float],
        caps: Sequence[KnownLimit],
        costs: Sequence[float] = (),
    ) -> None:
        self.guide = guide
        self.model = linear.ModelBuilderHelper()
        self.rows: list[tuple[list[int], list[float]]] = []
        self.limits: list[float] = []
        self.objective: dict[int, float] = {}
        self.variables = 0
        self.values = np.zeros(0)
        for limit in guide.limits.tolist():
            self._row(0.0 if costs else limit)
        self._buy(costs)
        self.caps = [(self._row(float(cap.limit)), cap.counts) for cap in caps]
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
            guide.row_of.tolist(), guide.market.offers.rows, strict=True
        ):
            region_of[row] = int(guide.regions[limited.node])
        limits = guide.limits.tolist()
        rows = grouped((region, row) for row, region in region_of.items())
        for region, cost in enumerate(costs):
            terms = [(row, -limits[row]) for row in rows.get(region, ())]
            self.objective[self._variable(terms)] = -cost

    def _row(self, limit: float) -> int:
        self.rows.append(([], []))
        self.limits.append(limit)
        return len(self.rows) - 1

    def _variable(self, terms: Iterable[tuple[int, float]]) -> int:
        for row, coefficient in terms:
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
        limiting = [(self._row(lot.number), 1.0), *caps]
        firsts = np.unique(regions[roomy_nodes], return_index=True)
        for region, first in zip(
            *(part.tolist() for part in firsts), strict=True
        ):
            amount_rows = market.amount_rows[:, roomy_nodes[first]].tolist()
            amounts = [
                (int(guide.row_of[row]), float(amount * guide.factors[row]))
                for row, amount in zip(amount_rows, lot.amounts, strict=True)
                if amount and row < len(guide.row_of)
            ]
            for needs in _picks(shape):
                if all((region, item) in guide.items for item in needs):
                    items = [
                        (self._item(region, item), float(number))
                        for item, number in needs.items()
                    ]
                    variable = self._variable([*amounts, *items, *limiting])
                    self.objective[variable] = weight

    def _item(self, region: int, item: int) -> int:
        """The row of what makes an item in a region, and of what needs it."""
        if (region, item) in self.item_rows:
            return self.item_rows[region, item]
        ways = self.guide.items[region, item]
        first = next(iter(ways))
        if len(ways) == len(first) == 1 and first[0][1] == 1:
            # One device of a type: what supplies it makes it.
            row = self._supply(first[0][0])
        else:
            row = self._row(0.0)
            for draws in ways:
                needs = [
                    (self._supply(supply), float(number))
                    for supply, number in draws
                ]
                self._variable([(row, -1.0), *needs])
        self.item_rows[region, item] = row
        return row

    def _supply(self, supply: int) -> int:
        if supply not in self.supply_rows:
            self.supply_rows[supply] = row = self._row(0.0)
            for draws in self.guide.ways[supply]:
                self._variable([(row, -1.0), *draws])
        return self.supply_rows[supply]

    def solve(self, stop: Stop) -> Floats | None:
        model = self.model
        for _ in range(self.variables):
            model.add_var()
        for number in range(self.variables):
            model.set_var_lower_bound(number, 0.0)
            model.set_var_upper_bound(number, np.inf)
        for variable, weight in self.objective.items():
            model.set_var_objective_coefficient(variable, weight)
        model.set_maximize(True)
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
    """Solve in a thread of its own, so that a Ctrl-C is heard here."""
    thread = Thread(
        target=solver.solve, args=(model,), name="glop", daemon=True
    )
    thread.start()
    while thread.is_alive():
        thread.join(_LISTEN)
        if stop.reached():
            solver.interrupt_solve()
    return bool(solver.has_solution())


def _picks(shape: Shape) -> list[dict[int, int]]:
    """Return what is needed of which item, for each way to pick an option of every choice."""
    picks = islice(product(*shape), _MOST_PICKS)
    return [summed(chain.from_iterable(options)) for options in picks]


# ----------------------------------------------------------------------------
# Regions: nodes that are about alike, so that what they have together says much about
# each of them.


def _regions_of(market: Market, region_count: int) -> Integers:
    """By node, the number of its region; there are as many regions as asked for, or one for each node.

    The region that differs most in itself is divided where that helps most, until there are enough.
    """
    nodes = market.offers.nodes
    if region_count >= nodes:
        return np.arange(nodes)
    traits = _traits(market)
    heap = [_with_spread(traits, 0, np.arange(nodes))]
    heapify(heap)
    while len(heap) < region_count and heap[0][0] < 0:
        _, number, members = heappop(heap)
        traits_inside = traits[members]
        values = traits_inside[:, traits_inside.var(axis=0).argmax()]
        upper = values > values.mean()
        heappush(heap, _with_spread(traits, number, members[~upper]))
        heappush(heap, _with_spread(traits, len(heap) + 1, members[upper]))
    regions = np.zeros(nodes, dtype=np.int64)
    by_first_node = sorted(
        (members for _, _, members in heap), key=lambda m: int(m[0])
    )
    for number, members in enumerate(by_first_node):
        regions[members] = number
    return regions


def _with_spread(
    traits: Floats, number: int, members: Integers
) -> tuple[float, int, Integers]:
    """Return some nodes with how much they differ, largest first in a heap; the number decides between equals."""
    spread = float(traits[members].var(axis=0).sum() * len(members))
    return -spread, number, members


def _traits(market: Market) -> Floats:
    """By node: what there is of everything, and to which sets of nodes it belongs, each from 0 to 1."""
    nodes = market.offers.nodes
    sets = np.zeros((len(market.demand_kinds.node_sets), nodes))
    for number, members in enumerate(market.demand_kinds.node_sets):
        sets[number, list(members) if members is not None else slice(None)] = (
            1.0
        )
    columns = np.concatenate(
        [market.available[:, :nodes], market.amount_limits[:, :nodes], sets]
    ).astype(float)
    largest = np.maximum(1.0, columns.max(axis=1, initial=0.0))
    traits: Floats = (columns / largest[:, np.newaxis]).T
    return traits


# ----------------------------------------------------------------------------
# The ladder: rung by rung, a bound for each level of the weight. A level is bounded
# together with those before it, each of which counts so much that the bound is sharp
# where all that is possible of them is placed.

N = TypeVar("N", int, float)

_RATIO: Final = 100
"""What a demand counts beside one of the next level: nobody stands in the way of so many."""

_LOWER_RATIOS: Final = (10.0, 3.0)
"""What it may also count; it takes no other linear program to prove what follows from that."""

_HIGHEST: Final = _RATIO**3
_LARGEST: Final = 2**52
"""Weights are multiplied by a power of two up to this size, so that prices can be whole numbers, and by a smaller one
where a row is worth many demands: a price that is cut off proves little."""


class _Rung(NamedTuple):
    """A rung of the ladder: so many regions at most, and so many lots of demands of a kind."""

    regions: int
    lots: int
    why: str


_MOST_LOTS: Final = 8
"""More lots of demands of a kind change next to nothing."""

_PUT_TOGETHER: Final = "with nodes put together that are alike"
_IN_FRACTIONS: Final = "with fractions of demands"
_AS_BEFORE: Final = "with the prices of an earlier answer"
_GROWTH: Final = 4
"""A rung takes about so many times as long as the one before it."""

_RUNGS_TO_JUDGE_BY: Final = 3
"""The gains of the first rung, which is none of a linear program, say nothing."""

_MOST_GUESSES: Final = 3
"""So many guesses for each level are worth remembering, the last ones."""

_LADDER: Final = (
    _Rung(0, 0, "of each demand alone"),
    _Rung(12, 1, _PUT_TOGETHER),
    _Rung(60, 3, _PUT_TOGETHER),
    _Rung(150, 4, _PUT_TOGETHER),
    _Rung(400, 6, _PUT_TOGETHER),
)


def relaxed_bounds(
    problem: Problem, tiers: Sequence[Objective], stop: Stop
) -> Iterator[Bound]:
    """Prove what answers cost at least, each time it is more than before.

    Ends when there is no better relaxation, or when it is time to stop.
    """
    return RelaxationLadder(problem, tiers, stop).bounds()


def _rungs(nodes: int) -> Iterator[_Rung]:
    """Up to the first one that tells all nodes apart: this one with all lots."""
    for rung in _LADDER:
        if rung.regions and rung.regions >= nodes:
            if nodes:
                yield _Rung(nodes, _MOST_LOTS, _IN_FRACTIONS)
            return
        yield rung


class _Guess(NamedTuple):
    """The worth of one more: of each level up to that which is bounded, and of each row, in the units of the market."""

    factors: Sequence[float]
    rows: Floats


class _Proven(NamedTuple):
    """``sum(factor * units) <= bound`` for what is placed of a level and of those before it."""

    factors: Sequence[int]
    bound: int

    def limit(self, before: Sequence[int]) -> int:
        """Return what is placed of the level at most, with so much of those before it."""
        used = sum(
            factor * units
            for factor, units in zip(self.factors, before, strict=False)
        )
        return max(0, (self.bound - used) // self.factors[-1])


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of what any answer costs, by tier.

    Parameters
    ----------
    costs
        As `Objective.cost` counts them. They hold one after the other: no answer costs less in the first tier, none
        that costs as much there costs less in the second, and so on.
    why
        What was left out to prove it.
    levels
        The levels of the weight.
    proven
        What was proven of each level.
    prices
        The guesses that proved it. Which of those for a level is the best depends on what is placed of those above.
    """

    costs: tuple[int, ...]
    why: str
    levels: Sequence[LexicographicLevel] = ()
    proven: Sequence[Sequence[_Proven]] = ()
    prices: Sequence[LevelPrices] = ()

    def most_of_optimum(self, reached: Sequence[int]) -> list[int]:
        """Return what the optimum places of each level at most, in units, given what some answer does.

        The optimum places no less of the first level than any answer; and no less of the next, if the answer has as
        much of the first as there can be. Of those behind the first level where more may be possible it may place
        anything. The more is placed of levels above, the less room there is for a level.
        """
        limits: list[int] = []
        surely: list[int] = []
        is_best_so_far = True
        for level, inequalities, units in zip(
            self.levels, self.proven, reached, strict=True
        ):
            proven_limits = [
                inequality.limit(surely) for inequality in inequalities
            ]
            limit = min([level.total, *proven_limits])
            limits.append(limit)
            surely.append(min(units, limit) if is_best_so_far else 0)
            is_best_so_far = is_best_so_far and units >= limit
        return limits


def _market(problem: Problem, stop: Stop) -> Market:
    demand_kinds = demand_kinds_of(problem, stop)
    offers = node_offers_of(problem, demand_kinds, stop)
    return Market(problem, demand_kinds, offers, stop)


class RelaxationLadder:
    """Proves bounds, rung by rung, and knows then what demands pay.

    Parameters
    ----------
    tiers
        What answers cost.
    stop
        When there is no time for more; see `allow`.
    """

    def __init__(
        self, problem: Problem, tiers: Sequence[Objective], stop: Stop
    ) -> None:
        self.problem = problem
        self.tiers = tiers
        self.stop = stop
        self._rungs = deque(_rungs(len(problem.nodes)))
        self._best: tuple[int, ...] | None = None
        self._needed = 0.0
        # By how much each rung made the limits smaller, as a part of all demands, added up over levels.
        self._gains: list[float] = []
        self.levels = levels_of(demand.weight for demand in problem.demands)
        self.limits = [level.total for level in self.levels]
        self.proven: list[list[_Proven]] = [[] for _ in self.levels]
        # By level, the guess behind each of the inequalities.
        self._guesses: list[list[_Guess]] = [[] for _ in self.levels]
        self._prices: Integers | None = None

    @cached_property
    def market(self) -> Market:
        """What nodes offer and demands need; raises `Stopped` if there is no time to find out."""
        return _market(self.problem, self.stop)

    def allow(self, stop: Stop) -> None:
        """Set another time to stop, for climbing on."""
        self.stop = stop
        if "market" in vars(self):
            self.market.stop = stop

    def bounds(self, least_gain: float = 0.0) -> Iterator[Bound]:
        """Climb from where it was left, and give out each bound that is better than those before it.

        A rung that there was no time for is climbed the next time.

        Parameters
        ----------
        least_gain
            Rungs that are likely to bring less are not climbed, as a part of all demands.
        """
        with suppress(Stopped):
            while self._rungs and self._likely_gain >= least_gain:
                rung = self._rungs[0]
                self._prepare(rung)
                before = self.stop.seconds()
                if self._needed > before:
                    # The rung would not be reached in time.
                    break
                parts_before = self._placed_parts()
                for limits in self._climb(rung):
                    costs = tuple(
                        costs_of(self.problem, self.tiers, self.levels, limits)
                    )
                    if self._best is None or costs > self._best:
                        self._best = costs
                        yield self._bound(costs, rung.why)
                self._rungs.popleft()
                self._gains.append(parts_before - self._placed_parts())
                taken = (
                    before - self.stop.seconds() if isfinite(before) else 0.0
                )
                self._needed = _GROWTH * taken

    def _placed_parts(self) -> float:
        """What part of each level is placed at most, added up."""
        return sum(
            limit / level.total
            for limit, level in zip(self.limits, self.levels, strict=True)
        )

    @property
    def _likely_gain(self) -> float:
        """What the next rung is likely to bring: as much less than the last one as that beside the one before it."""
        if len(self._gains) < _RUNGS_TO_JUDGE_BY:
            return inf
        *_, before, last = self._gains
        return last * last / before if before else last

    def _prepare(self, rung: _Rung) -> None:
        """Read what nodes offer, and import the solver, so that the first rungs do not seem to take long."""
        _ = self.market
        if rung.regions:
            linear.ModelBuilderHelper()

    @property
    def is_at_the_top(self) -> bool:
        """Whether there is no better relaxation."""
        return not self._rungs

    def bound_by(self, prices: Sequence[LevelPrices]) -> Bound | None:
        """Return what prices prove that are known from a problem that differs little; None if there is no time.

        No linear program is solved, and what differs costs sharpness only: the sum that proves the bound is over this
        problem.
        """
        with suppress(Stopped):
            for _ in self._climb(_LADDER[0]):
                pass
            rows, units = self.market.offers.rows, np.array(self.market.units)
            for known in prices:
                by_row = [known.rows.get(row.name, 0.0) for row in rows]
                number = len(known.factors) - 1
                if number < len(self.levels):
                    guess = _Guess(known.factors, np.array(by_row) * units)
                    self._prove(number, guess)
            costs = costs_of(self.problem, self.tiers, self.levels, self.limits)
            return self._bound(tuple(costs), _AS_BEFORE)
        return None

    def _bound(self, costs: tuple[int, ...], why: str) -> Bound:
        """Return what is proven by now."""
        return Bound(
            costs,
            why,
            self.levels,
            list(map(tuple, self.proven)),
            [
                self._named(guess)
                for guesses in self._guesses
                for guess in guesses[-_MOST_GUESSES:]
            ],
        )

    def _named(self, guess: _Guess) -> LevelPrices:
        """Return prices by the names of rows, for one of what they limit."""
        prices = (guess.rows / np.array(self.market.units)).tolist()
        by_name = {
            row.name: price
            for row, price in zip(self.market.offers.rows, prices, strict=True)
            if price
        }
        return LevelPrices(tuple(guess.factors), by_name)

    def appraisal(self) -> Appraisal | None:
        """Return what demands pay at the last prices, and what nodes are worth; None without prices.

        What nothing is short of costs nothing.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        if self._prices is None:
            return None
        [*_, last] = self.proven
        factors = last[-1].factors
        # A demand of the last level is worth its factor, in the unit of prices.
        unit = factors[-1]
        last_level = len(self.levels) - 1
        worth_of_kind = _weighted(factors, self._counts(last_level))
        paid = self.market.least_paid(self._prices)
        sizes: dict[DemandIndex, int] = {}
        profits: dict[DemandIndex, int] = {}
        for kind, worth in zip(
            self.market.demand_kinds.kinds, worth_of_kind, strict=True
        ):
            for member in kind.members:
                price = paid[member]
                sizes[member], profits[member] = 0, 0
                if price is not None:
                    sizes[member] = price * APPRAISAL_UNIT // unit
                    profits[member] = (worth - price) * APPRAISAL_UNIT // unit
        values = self.market.node_values(self._prices)
        return Appraisal(
            sizes,
            profits,
            tuple([value * APPRAISAL_UNIT // unit for value in values]),
        )

    def _climb(self, rung: _Rung) -> Iterator[Sequence[int]]:
        """Yield what is placed of each level at most, in units, level by level."""
        guide = None
        if rung.regions:
            regions = _regions_of(self.market, rung.regions)
            guide = Guide(self.market, regions, rung.lots)
        for number in range(len(self.levels)):
            guess = self._guess(number, guide)
            if guess is not None:
                for exchange in _with_lower_factors(guess):
                    self._prove(number, exchange)
                self._prove(number, guess)
            yield self.limits

    def _counts(self, number: int) -> list[list[int]]:
        """By level up to this one, and by kind: what a demand counts."""
        weights = [kind.weight for kind in self.market.demand_kinds.kinds]
        return [
            list(map(level.of, weights)) for level in self.levels[: number + 1]
        ]

    def _guess(self, number: int, guide: Guide | None) -> _Guess | None:
        """Prices for a bound on a level and those before it; None if there is no time.

        Each level counts as much as makes the bound sharp, given that of those before it all that is possible is
        placed.
        """
        counts = self._counts(number)
        factors = [
            float(min(_RATIO ** (number - place), _HIGHEST))
            for place in range(number + 1)
        ]
        if guide is None:
            return _Guess(factors, np.zeros(len(self.market.offers.rows)))
        caps = list(map(KnownLimit, counts, self.limits[:number]))
        shadow_prices = guide.solve(_weighted(factors, counts), caps, self.stop)
        if shadow_prices is None:
            return None
        # What a cap is worth, one more of its level is not.
        above = np.array(factors[:number]) - shadow_prices.caps
        return _Guess(
            [*np.maximum(0.0, above).tolist(), 1.0], shadow_prices.rows
        )

    def _prove(self, number: int, guess: _Guess) -> None:
        """Enter what prices prove of a level and those before it; it holds for whatever else is placed, too."""
        factors, counts = guess.factors, self._counts(number)
        # What a level counts in floats is a guess; as whole numbers, the bound holds for exactly these.
        largest = sum(
            factor * max(level_counts, default=0)
            for factor, level_counts in zip(factors, counts, strict=True)
        )
        affordable = self.market.most_affordable(guess.rows)
        scale = _power_of_two(min(_LARGEST / max(1.0, largest), affordable))
        whole_factors = [round(factor * scale) for factor in factors]
        prices = self.market.affordable(guess.rows * scale)
        bound = self.market.bound(prices, _weighted(whole_factors, counts))
        if guess.rows.any() and number == len(self.levels) - 1:
            self._prices = prices
        self.proven[number].append(_Proven(whole_factors, bound))
        self._guesses[number].append(guess)
        # What is less in one level may leave room for more below.
        for place, level in enumerate(self.levels):
            before = self.limits[:place]
            limits = [proven.limit(before) for proven in self.proven[place]]
            self.limits[place] = min([level.total, *limits])


def _power_of_two(largest: float) -> float:
    """Return the largest power of two up to a number, and no less than 1."""
    return 2.0 ** floor(log2(max(1.0, largest)))


def _with_lower_factors(guess: _Guess) -> Iterator[_Guess]:
    """Give out the same prices, with levels above that count less.

    Where an answer does not reach the limit of a level above, each demand that it lacks leaves as much room to the
    level as that one counts. Mostly it takes far less than what surely nobody does.
    """
    number = len(guess.factors) - 1
    for ratio in _LOWER_RATIOS:
        if number and guess.factors[number - 1] > ratio:
            above = [ratio ** (number - place) for place in range(number)]
            yield _Guess([*above, 1.0], guess.rows)


def _weighted(factors: Sequence[N], counts: Sequence[Sequence[int]]) -> list[N]:
    """By kind, what it counts in all levels together."""
    return [
        sum(map(mul, factors, kind_counts))
        for kind_counts in zip(*counts, strict=True)
    ]


# ----------------------------------------------------------------------------
# What nodes cost at least that hold everything, of types that can be had any number of
# times.
#
# Let every row of a node have a price of 0 or more, and let a demand be worth what it
# pays on the node where it pays the least. Who is on a node pays for all that it draws
# there, and that is at most what all rows of the node cost. So as many nodes as hold
# everything are worth as much as all demands together; and one of a type is worth what
# its rows cost. The cheapest way to be worth that much is by nodes of the type that is
# worth the most for its cost (Farley, Operations Research 38, 1990).
#
# The prices are a guess in floats, by the linear program in which nodes and demands can
# be had in fractions; what they prove is a sum in exact integers, as in
# `dralloc.solve.optimum.relax.prices`.

_LOTS: Final = 8
"""Into so many lots demands of a kind are divided."""

_SCALE: Final = 2.0**40
"""What a cost of 1 is as a price, at most."""


@dataclass(frozen=True, slots=True)
class RelaxedCover:
    """Node types that hold everything in fractions.

    Parameters
    ----------
    numbers
        By node type, about how many of it are needed.
    worth
        By demand, what it pays where it pays the least: a measure of its size.
    bound
        Nothing cheaper holds everything.
    """

    numbers: tuple[float, ...]
    worth: tuple[int, ...]
    bound: int


def relaxed_cover(
    problem: Problem, costs: Sequence[int], stop: Stop
) -> RelaxedCover | None:
    """Find the cheapest nodes in fractions, and prove a bound; None if there is no time for the linear program.

    Parameters
    ----------
    problem
        One node of each type with nothing in use, and all demands, none of which has rules about others.
    costs
        By node, what one of its type costs.

    Raises
    ------
    Stopped
        It is time to stop before there is a linear program.
    """
    market = _market(problem, stop)
    guide = Guide(market, np.arange(len(problem.nodes)), _LOTS)
    cover = guide.cover(costs, stop)
    if cover is None:
        return None
    numbers, rows = cover
    prices = market.affordable(rows * (_SCALE / max(costs)))
    worth = [paid or 0 for paid in market.least_paid(prices)]
    values = market.node_values(prices)
    richest = max(
        (
            Fraction(value, cost)
            for value, cost in zip(values, costs, strict=True)
        ),
        default=Fraction(0),
    )
    unit = gcd(*costs)
    bound = (
        -(-Fraction(sum(worth)) // (richest * unit)) * unit if richest else 0
    )
    return RelaxedCover(tuple(numbers.tolist()), tuple(worth), bound)
