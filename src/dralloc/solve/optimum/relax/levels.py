"""Levels: weights of which each is worth more than all below them, so that their sums can be bounded in turn."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from math import gcd
from typing import NamedTuple

from dralloc.problem import Problem
from dralloc.solve.optimum.objective import Objective
from dralloc.solve.optimum.weight_tiers import WeightTier

__all__ = ["LexicographicLevel", "costs_of", "levels_of"]


class LexicographicLevel(NamedTuple):
    """The weights from ``least`` to ``most``, as multiples of ``unit``; all of them together are ``total`` units."""

    least: int
    most: int
    unit: int
    total: int

    def of(self, weight: int) -> int:
        """What a weight counts here, in units."""
        return weight // self.unit if self.least <= weight <= self.most else 0


def levels_of(weights: Iterable[int]) -> list[LexicographicLevel]:
    """The levels, most important first.

    Sums of the weights above a line differ by their greatest common divisor at least. If that is more than everything
    below the line, the largest sum of all weights has the largest sum above the line.
    """
    tally = Tally(weight for weight in weights if weight > 0)
    rest = sum(weight * number for weight, number in tally.items())
    levels: list[LexicographicLevel] = []
    block: list[int] = []
    divisor = 0
    for weight in sorted(tally, reverse=True):
        if block and divisor > rest:
            levels.append(_level(block, tally))
            block = []
        block.append(weight)
        divisor = gcd(divisor, weight)
        rest -= weight * tally[weight]
    return [*levels, _level(block, tally)] if block else []


def _level(block: Sequence[int], tally: Tally[int]) -> LexicographicLevel:
    unit = gcd(*block)
    return LexicographicLevel(
        block[-1],
        block[0],
        unit,
        sum(weight // unit * tally[weight] for weight in block),
    )


def costs_of(
    problem: Problem,
    tiers: Sequence[Objective],
    levels: Sequence[LexicographicLevel],
    most: Sequence[int],
) -> list[int]:
    """What any answer costs in each tier, given what is placed at most of each level: 0 in tiers of something else."""
    return [
        _missed(problem, tier.weights, levels, most) if tier.weights else 0
        for tier in tiers
    ]


def _missed(
    problem: Problem,
    tier: WeightTier,
    levels: Sequence[LexicographicLevel],
    most: Sequence[int],
) -> int:
    """The weight that is missed in a tier at least. A level that reaches into the tier from above says nothing."""
    total = sum(tier.of(demand.weight) for demand in problem.demands)
    placed = 0
    for level, units in zip(levels, most, strict=True):
        if tier.of(level.most):
            placed += level.unit * units // tier.unit
        elif tier.of(level.least):
            return 0
    return max(0, total - placed)
