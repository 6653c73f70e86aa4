"""What answers cost at least in a tier behind the weight, given how much of each weight they place.

The linear program of a rung of the ladder says what one more of each level costs. These are prices: with them, all that
could be placed is worth no more than what the relaxation proves, less what it costs; and so an answer that places so
much costs what is between the two (`dralloc.solve.optimum.relax.prices`). Whatever the prices are, that holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Final

import numpy as np

from dralloc.objects.choices import Goal
from dralloc.solve.optimum.objective import ALTERNATIVES
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
    ShadowPrices,
    SolvedProgram,
)
from dralloc.solve.optimum.relax.levels import LexicographicLevel
from dralloc.solve.optimum.relax.market import Market
from dralloc.solve.optimum.relax.prices import Prices
from dralloc.solve.optimum.relax.tier_costs import (
    RANKS,
    TierCosts,
    goal_costs,
)
from dralloc.solve.optimum.stopping import Stop

__all__ = ["LeastCosts"]

_MOST_PROGRAMS: Final = 4
"""So many linear programs at most are solved for what a tier costs at least."""

_LARGEST_SCALE: Final = 2.0**40
"""What 1 costs as a price, at most: a demand may have thousands of devices that count."""

_ROUNDING: Final = 1e-6
"""What a linear program says in floats may be wrong by so much."""


class LeastCosts:
    """Bounds for tiers behind the weight.

    Parameters
    ----------
    levels
        Of the weight.
    programs
        Linear programs that were solved for the market, each larger than those before it.
    """

    def __init__(
        self,
        market: Market,
        levels: Sequence[LexicographicLevel],
        programs: Sequence[SolvedProgram],
    ) -> None:
        self._market = market
        self._levels = levels
        self._programs = programs
        self._counts = counts_of(market, levels)

    def of_tier(self, tier_name: str, placed: Sequence[int], stop: Stop) -> int:
        """Return what any answer costs that places so much of each level at least.

        Parameters
        ----------
        tier_name
            The ranks of alternatives (KEP-4816), or a packing goal; of other tiers nothing is known.
        placed
            By level, in its units.

        Returns
        -------
        0 also if there is no time for a linear program.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        if not any(placed):
            return 0
        if tier_name == ALTERNATIVES:
            return self._least_sum(RANKS, placed, stop)
        if tier_name not in set(Goal):
            return 0
        goal = Goal(tier_name)
        if goal is Goal.SPREAD:
            return self._least_peak(placed)
        market = self._market
        costs = goal_costs(market.problem, market.offers, goal)
        return self._least_sum(costs, placed, stop)

    def _least_sum(
        self, costs: TierCosts, placed: Sequence[int], stop: Stop
    ) -> int:
        """Return the least cost, where it is a sum over what is picked and touched."""
        guide = self._largest_guide(stop)
        if guide is None:
            return 0
        shadow_prices = self._prices_for(guide, costs, placed, stop)
        if shadow_prices is None:
            return 0
        # What one more costs is what it has to be worth, beside what it counts anyway.
        costs_of_levels = np.maximum(0.0, shadow_prices.caps + NEXT_TO_NOTHING)
        guess = Guess(costs_of_levels.tolist(), shadow_prices.rows)
        scale = min(scale_of(self._market, guess, self._counts), _LARGEST_SCALE)
        whole_costs = [round(cost * scale) for cost in guess.factors]
        cost_price = round(scale)
        prices = Prices(self._market, guess.rows * scale, costs, cost_price)
        bound = prices.bound(weighted(whole_costs, self._counts))
        worth: int = sum(map(mul, whole_costs, placed))
        # Rounded up: costs are whole numbers.
        return max(0, -((bound - worth) // cost_price))

    def _largest_guide(self, stop: Stop) -> Guide | None:
        """Return the largest program that there is time for as often as may be; None if there is none."""
        seconds = stop.seconds() / _MOST_PROGRAMS
        guides = [
            program.guide
            for program in self._programs
            if program.seconds <= seconds
        ]
        return guides[-1] if guides else None

    def _prices_for(
        self,
        guide: Guide,
        costs: TierCosts,
        placed: Sequence[int],
        stop: Stop,
    ) -> ShadowPrices | None:
        """Return prices at which so much of each level costs the least; None if there is no time for them.

        In the program, where nodes are put together, there may be no room for all that is placed; and then its prices
        say nothing. So less is asked for, by what was missing.
        """
        worth = weighted([NEXT_TO_NOTHING] * len(self._levels), self._counts)
        least = list(placed)
        shadow_prices = None
        for attempt in range(_MOST_PROGRAMS):
            limits = map(KnownLimit.at_least, self._counts, least)
            shadow_prices = guide.solve(worth, list(limits), stop, costs)
            if shadow_prices is None:
                break
            missing = np.ceil(shadow_prices.short - _ROUNDING).astype(int)
            if not missing.any():
                break
            least = [
                max(0, units - missing_units - 2**attempt)
                for units, missing_units in zip(
                    least, missing.tolist(), strict=True
                )
            ]
        return shadow_prices

    def _least_peak(self, placed: Sequence[int]) -> int:
        """Return how many demands some node has at least: no node has more of them than have room there."""
        demand_counts = [
            -(-units // level.of(level.highest))
            for level, units in zip(self._levels, placed, strict=True)
        ]
        demand_count = sum(demand_counts)
        room = self._market.room_together().tolist()
        # If they were spread evenly; no fewer than that are on some node.
        peak = -(-demand_count // len(room))
        while (
            peak < demand_count
            and sum(min(peak, node_room) for node_room in room) < demand_count
        ):
            peak += 1
        return peak
