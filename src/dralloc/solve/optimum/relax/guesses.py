"""Guesses of what one more is worth, of each level and of each row, on their way to whole numbers.

In floats they come from linear programs; what they prove is a sum in integers (`dralloc.solve.optimum.relax.prices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log2
from operator import mul
from typing import Final, NamedTuple, TypeVar

from dralloc.solve.optimum.relax.guide import Floats
from dralloc.solve.optimum.relax.levels import LexicographicLevel
from dralloc.solve.optimum.relax.market import Market
from dralloc.solve.optimum.relax.prices import most_affordable

__all__ = [
    "NEXT_TO_NOTHING",
    "Guess",
    "counts_of",
    "scale_of",
    "weighted",
]

N = TypeVar("N", int, float)

NEXT_TO_NOTHING: Final = 2.0**-20
"""What a demand counts whose level is not bounded, but has its part in the linear program."""

_LARGEST: Final = 2**52
"""Weights are multiplied by a power of two up to this size, so that prices can be whole numbers, and by a smaller one
where a row is worth many demands: a price that is cut off proves little."""


class Guess(NamedTuple):
    """The worth of one more: of each level up to that which is bounded, and of each row, in the units of the market."""

    factors: Sequence[float]
    rows: Floats


def counts_of(
    market: Market, levels: Sequence[LexicographicLevel]
) -> list[list[int]]:
    """By level, and by kind of demand: what a demand counts, in units of the level."""
    weights = [kind.weight for kind in market.demand_kinds.kinds]
    return [list(map(level.of, weights)) for level in levels]


def weighted(factors: Sequence[N], counts: Sequence[Sequence[int]]) -> list[N]:
    """By kind, what it counts in all levels together."""
    return [
        sum(map(mul, factors, kind_counts))
        for kind_counts in zip(*counts, strict=True)
    ]


def scale_of(
    market: Market, guess: Guess, counts: Sequence[Sequence[int]]
) -> float:
    """Return what a guess is multiplied with, so that it can be whole numbers; ``counts``: by level and kind."""
    largest = sum(
        factor * max(level_counts, default=0)
        for factor, level_counts in zip(guess.factors, counts, strict=True)
    )
    affordable = most_affordable(market, guess.rows)
    return _power_of_two(min(_LARGEST / max(1.0, largest), affordable))


def _power_of_two(largest: float) -> float:
    """Return the largest power of two up to a number, and no less than 1."""
    return 2.0 ** floor(log2(max(1.0, largest)))
