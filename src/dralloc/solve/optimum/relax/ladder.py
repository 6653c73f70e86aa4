"""A ladder of relaxations: each rung proves more, and takes longer.

On each rung a linear program guesses prices (`dralloc.solve.optimum.relax.guide`), over more regions of nodes than on
the one before (`dralloc.solve.optimum.relax.regions`), and what these prove is a bound for each level of the weight. A
level is bounded together with those before it, each of which counts so much that the bound is sharp where all that is
possible of them is placed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from math import inf, isfinite
from time import perf_counter
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from dralloc.problem import DemandIndex, Problem
from dralloc.problem.solution import (
    APPRAISAL_UNIT,
    Appraisal,
    LevelPrices,
)
from dralloc.solve.optimum.objective import Objective
from dralloc.solve.optimum.relax.bounds import Bound, Inequality, LevelRange
from dralloc.solve.optimum.relax.guesses import (
    NEXT_TO_NOTHING,
    Guess,
    counts_of,
    scale_of,
    weighted,
)
from dralloc.solve.optimum.relax.guide import (
    Guide,
    KnownLimit,
    SolvedProgram,
)
from dralloc.solve.optimum.relax.halves import with_halves
from dralloc.solve.optimum.relax.least_costs import LeastCosts
from dralloc.solve.optimum.relax.levels import costs_of, levels_of
from dralloc.solve.optimum.relax.market import Market, market_of
from dralloc.solve.optimum.relax.patterns import with_patterns
from dralloc.solve.optimum.relax.prices import Prices
from dralloc.solve.optimum.relax.regions import regions_of
from dralloc.solve.optimum.solvers import linear
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = ["RelaxationLadder", "relaxed_bounds"]
_RATIO: Final = 100
"""What a demand counts beside one of the next level: nobody stands in the way of so many."""

_LOWER_RATIOS: Final = (10.0, 3.0)
"""What it may also count; it takes no other linear program to prove what follows from that."""

_EXCHANGE: Final = 3.0
_FEW_REGIONS: Final = 20
"""About so many demands of a level find room where one of the level above does not stand. Prices for that take a linear
program of their own, which is solved where it takes no time."""

_HIGHEST: Final = _RATIO**3


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


class RelaxationLadder:
    """Proves bounds, rung by rung, and knows then what demands pay.

    Parameters
    ----------
    tiers
        What answers cost.
    stop
        When there is no time for more; see `allow`.
    most_of_gang
        As `DemandSubset` has it.
    """

    def __init__(
        self,
        problem: Problem,
        tiers: Sequence[Objective],
        stop: Stop,
        most_of_gang: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.problem = problem
        self.tiers = tiers
        self.stop = stop
        self._most_of_gang = most_of_gang
        self._rungs = deque(_rungs(len(problem.nodes)))
        self._best: tuple[int, ...] | None = None
        self._needed = 0.0
        # By how much each rung made the limits smaller, as a part of all demands, added up over levels.
        self._gains: list[float] = []
        self.levels = levels_of(demand.weight for demand in problem.demands)
        self.limits = [level.total for level in self.levels]
        self.proven: list[list[Inequality]] = [[] for _ in self.levels]
        # By level, the guess behind each of the inequalities.
        self._guesses: list[list[Guess]] = [[] for _ in self.levels]
        # The last ones for all levels, and what demands are worth at these, if anybody has asked.
        self._prices: Prices | None = None
        # What each level counts at these prices: a later guess without any has a scale of its own.
        self._factors: Sequence[int] = ()
        self._appraisal: Appraisal | None = None
        # What was proven by looking closer, by level and of all together.
        self._closer: list[list[Inequality]] = [[] for _ in self.levels]
        self._together: list[Inequality] = []
        # The linear programs that there was time for, each larger than those before it.
        self._programs: list[SolvedProgram] = []

    @cached_property
    def market(self) -> Market:
        """What nodes offer and demands need; raises `Stopped` if there is no time to find out."""
        return market_of(
            self.problem,
            self.stop,
            with_patterns,
            with_halves,
            most_of_gang=self._most_of_gang,
        )

    def allow(self, stop: Stop) -> None:
        """Set another time to stop, for climbing on."""
        self.stop = stop
        if self.known_market is not None:
            self.market.stop = stop

    def bounds(
        self, least_gain: float = 0.0, begun_for: Stop | None = None
    ) -> Iterator[Bound]:
        """Climb from where it was left, and give out each bound that is better than those before it.

        A rung that there was no time for is climbed the next time.

        Parameters
        ----------
        least_gain
            Rungs that are likely to bring less are not climbed, as a part of all demands.
        begun_for
            Rungs that are likely to end later are not begun, though one that is begun may end later; None for those
            that are likely to end after the ladder's own stop.
        """
        with suppress(Stopped):
            while self._rungs and self._likely_gain >= least_gain:
                rung = self._rungs[0]
                self._prepare(rung)
                before = self.stop.seconds()
                if self._needed > (begun_for or self.stop).seconds():
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
                # The first rung is no linear program: it says nothing about how long the next one takes.
                if rung.regions and isfinite(before):
                    self._needed = _GROWTH * (before - self.stop.seconds())

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
    def known_market(self) -> Market | None:
        """The market, if it is known by now."""
        market: Market | None = vars(self).get("market")
        return market

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
                level_index = len(known.factors) - 1
                if level_index < len(self.levels):
                    guess = Guess(known.factors, np.array(by_row) * units)
                    self._prove(level_index, guess)
            costs = costs_of(self.problem, self.tiers, self.levels, self.limits)
            return self._bound(tuple(costs), _AS_BEFORE)
        return None

    def _bound(self, costs: tuple[int, ...], why: str) -> Bound:
        """Return what is proven by now."""
        return Bound(
            costs,
            why,
            self.levels,
            self._all_proven(),
            [
                self._named(guess)
                for guesses in self._guesses
                for guess in guesses[-_MOST_GUESSES:]
            ],
            tuple(self._together),
        )

    def _named(self, guess: Guess) -> LevelPrices:
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
        if self._prices is not None and self._appraisal is None:
            self._appraisal = self._appraised(self._prices)
        return self._appraisal

    def _appraised(self, prices: Prices) -> Appraisal:
        factors = self._factors
        # A demand of the last level is worth its factor, in the unit of prices.
        unit = factors[-1]
        last_level = len(self.levels) - 1
        worth_of_kind = weighted(factors, self._counts(last_level))
        paid = prices.least_paid()
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
        values = prices.node_values()
        return Appraisal(
            sizes,
            profits,
            tuple([value * APPRAISAL_UNIT // unit for value in values]),
        )

    def _climb(self, rung: _Rung) -> Iterator[Sequence[int]]:
        """Yield what is placed of each level at most, in units, level by level."""
        guide = None
        if rung.regions:
            regions = regions_of(self.market, rung.regions)
            guide = Guide(self.market, regions, rung.lots)
        for level_index in range(len(self.levels)):
            before = perf_counter()
            guess = self._guess(level_index, guide, _RATIO)
            if guess is not None:
                if guide is not None:
                    seconds = perf_counter() - before
                    self._programs.append(SolvedProgram(guide, seconds))
                for exchange in self._exchanges(
                    level_index, guide, rung.regions, guess
                ):
                    self._prove(level_index, exchange)
                self._prove(level_index, guess)
            yield self.limits

    def _exchanges(
        self, level_index: int, guide: Guide | None, regions: int, guess: Guess
    ) -> Iterator[Guess]:
        """Give out guesses that also prove something where an answer has less of the levels above than there can be."""
        yield from _with_lower_factors(guess)
        if level_index and guide is not None and regions <= _FEW_REGIONS:
            exchange = self._guess(level_index, guide, _EXCHANGE)
            if exchange is not None:
                yield exchange

    def _counts(self, last_level: int) -> list[list[int]]:
        """By level up to this one, and by kind: what a demand counts."""
        return counts_of(self.market, self.levels[: last_level + 1])

    def _guess(
        self, level_index: int, guide: Guide | None, ratio: float
    ) -> Guess | None:
        """Prices for a bound on a level and those before it; None if there is no time.

        Each level counts as much as makes the bound sharp, given that of those before it all that is possible is
        placed; no more than the ratio beside the next one.
        """
        counts = self._counts(level_index)
        factors = [
            float(min(ratio ** (level_index - upper_level), _HIGHEST))
            for upper_level in range(level_index + 1)
        ]
        if guide is None:
            return Guess(factors, np.zeros(len(self.market.offers.rows)))
        caps = list(map(KnownLimit, counts, self.limits[:level_index]))
        shadow_prices = guide.solve(weighted(factors, counts), caps, self.stop)
        if shadow_prices is None:
            return None
        # What a cap is worth, one more of its level is not.
        above = np.array(factors[:level_index]) - shadow_prices.caps
        return Guess(
            [*np.maximum(0.0, above).tolist(), 1.0], shadow_prices.rows
        )

    # What follows from an answer in hand.

    @property
    def least_seconds_to_look_closer(self) -> float:
        """About how long it takes to prove anything by looking closer.

        Infinite if there was no time for a linear program yet.
        """
        return self._programs[-1].seconds if self._programs else inf

    @property
    def seconds_to_look_closer(self) -> float:
        """About how long it takes to look closer at all levels, and at all of them together before and after that."""
        return self.least_seconds_to_look_closer * (len(self.levels) + 1)

    def look_closer(
        self, bound: Bound, reached: Sequence[int], best: Sequence[int]
    ) -> Bound:
        """Prove more of levels behind the first, given how much some answer has of those before them.

        On a rung of the ladder, a level is bounded as if those before it had all that is possible. Here they have what
        the optimum surely has, as far as the answer says: the linear program says what one more of them takes, and
        prices that prove this hold for all answers, as always.

        Parameters
        ----------
        bound
            What is proven so far.
        reached, best
            As `Bound.ranges` takes them.

        Returns
        -------
        The same bound with what else is known then, as far as there was time.
        """
        proven_before = bound.proven
        with suppress(Stopped):
            # First what says the most, as there may be no time for more.
            ranges = bound.ranges(reached, best)
            self._look_at_all(ranges)
            for level_index in range(1, len(self.levels)):
                if (
                    self._has_time
                    and ranges[level_index].most > reached[level_index]
                ):
                    factors = [*[NEXT_TO_NOTHING] * level_index, 1.0]
                    self._closer[level_index] += self._proof_between(
                        factors, ranges[:level_index]
                    )
                    bound = replace(bound, proven=self._all_proven())
                    ranges = bound.ranges(reached, best)
            if self._has_time and bound.proven != proven_before:
                self._look_at_all(ranges)
        return replace(bound, together=tuple(self._together))

    @property
    def _has_time(self) -> bool:
        """Whether there is time for a linear program."""
        return self.least_seconds_to_look_closer <= self.stop.seconds()

    def _look_at_all(self, ranges: Sequence[LevelRange]) -> None:
        """Prove a bound of all levels together."""
        self._together += self._proof_between([1.0] * len(ranges), ranges)

    def least_cost(self, tier_name: str, placed: Sequence[int]) -> int:
        """Return what any answer costs in a tier behind the weight that places so much of each level at least.

        Parameters
        ----------
        tier_name, placed
            As `dralloc.solve.optimum.relax.least_costs.LeastCosts` takes them.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        least_costs = LeastCosts(self.market, self.levels, self._programs)
        return least_costs.of_tier(tier_name, placed, self.stop)

    def _all_proven(self) -> list[tuple[Inequality, ...]]:
        """By level, what was proven on the ladder and by looking closer."""
        return [
            (*proven, *closer)
            for proven, closer in zip(self.proven, self._closer, strict=True)
        ]

    def _proof_between(
        self, factors: Sequence[float], ranges: Sequence[LevelRange]
    ) -> Iterator[Inequality]:
        """Prove a bound on the weighted sum of levels, with prices for so much of each; nothing if there is no time.

        What it costs to have the least that there surely is of a level, one more of the level counts in addition; what
        it is worth to have no more than the most, it counts less.
        """
        if not self._programs:
            return
        guide, _ = self._programs[-1]
        counts = self._counts(len(factors) - 1)
        # The last level has no range if it is the one that is bounded.
        most = [
            KnownLimit(kind_counts, level.most)
            for kind_counts, level in zip(counts, ranges, strict=False)
        ]
        least = [
            KnownLimit.at_least(kind_counts, level.least)
            for kind_counts, level in zip(counts, ranges, strict=False)
        ]
        shadow_prices = guide.solve(
            weighted(factors, counts), [*most, *least], self.stop
        )
        if shadow_prices is None:
            return
        worth_of_most, cost_of_least = np.split(shadow_prices.caps, 2)
        sums = np.array(factors)
        sums[: len(ranges)] += cost_of_least - worth_of_most
        whole = np.maximum(0.0, sums).tolist()
        yield self._inequality(Guess(whole, shadow_prices.rows))[0]

    # Proofs.

    def _prove(self, level_index: int, guess: Guess) -> None:
        """Enter what prices prove of a level and those before it, and keep them."""
        inequality, prices = self._inequality(guess)
        if guess.rows.any() and level_index == len(self.levels) - 1:
            self._prices, self._appraisal = prices, None
            self._factors = inequality.factors
        self.proven[level_index].append(inequality)
        self._guesses[level_index].append(guess)
        # What is less in one level may leave room for more below.
        for index, level in enumerate(self.levels):
            before = self.limits[:index]
            limits = [proven.limit(before) for proven in self.proven[index]]
            self.limits[index] = min([level.total, *limits])

    def _inequality(self, guess: Guess) -> tuple[Inequality, Prices]:
        """Return what prices prove of the levels that they are for, whatever is placed; and these prices."""
        factors, counts = guess.factors, self._counts(len(guess.factors) - 1)
        # What a level counts in floats is a guess; as whole numbers, the bound holds for exactly these.
        scale = scale_of(self.market, guess, counts)
        whole_factors = [round(factor * scale) for factor in factors]
        prices = Prices(self.market, guess.rows * scale)
        bound = prices.bound(weighted(whole_factors, counts))
        return Inequality(whole_factors, bound), prices


def _with_lower_factors(guess: Guess) -> Iterator[Guess]:
    """Give out the same prices, with levels above that count less.

    Where an answer does not reach the limit of a level above, each demand that it lacks leaves as much room to the
    level as that one counts. Mostly it takes far less than what surely nobody does.
    """
    level_index = len(guess.factors) - 1
    for ratio in _LOWER_RATIOS:
        if level_index and guess.factors[level_index - 1] > ratio:
            above = [
                ratio ** (level_index - upper_level)
                for upper_level in range(level_index)
            ]
            yield Guess([*above, 1.0], guess.rows)
