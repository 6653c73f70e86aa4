"""Levels: weights of which each is worth more than all below them, so that their sums can be bounded in turn."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from math import gcd
from typing import NamedTuple

from dralloc.problem import Problem
from dralloc.solve.optimum.objective import Objective
from dralloc.solve.optimum.rows import WeightTier

__all__ = ["LexicographicLevel", "costs_of", "levels_of"]


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
