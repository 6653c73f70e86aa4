"""The weight of what is placed as tiers of small numbers.

Strict priorities are weights: each is worth more than all below it together. As one number that is soon beyond the
solver's integers; but where all weights above a line are worth more than everything below it, the sums above can be
solved first, and then the sums below.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from math import gcd
from typing import Final, NamedTuple

__all__ = ["ALL_WEIGHTS", "WeightTier", "weight_tiers"]

_MERGED: Final = 2**31
"""Up to such sums priorities are one tier. More would fit, but linear programs have floats."""


class WeightTier(NamedTuple):
    """The weights from ``least`` to ``most`` (None: all above), in units of which each is a multiple."""

    least: int
    most: int | None
    unit: int

    def of(self, weight: int) -> int:
        """What a weight counts here."""
        return (
            weight // self.unit
            if self.least <= weight and (self.most is None or weight <= self.most)
            else 0
        )


ALL_WEIGHTS: Final = WeightTier(0, None, 1)
"""The only tier, if one is enough."""


def weight_tiers(weights: Iterable[int]) -> tuple[WeightTier, ...]:
    """The tiers, most important first: as few as small sums allow, and none that others below could outweigh."""
    tally = Tally(weights)
    unit = gcd(*tally) or 1
    whole = (
        ALL_WEIGHTS
        if tally.total() * max(tally, default=0) <= _MERGED
        else WeightTier(0, None, unit)
    )
    if _sum(tally, list(tally)) <= _MERGED:
        return (whole,)
    merged: list[list[int]] = []
    for block in _blocks(tally):
        if merged and _sum(tally, [*merged[-1], *block]) <= _MERGED:
            merged[-1] += block
        else:
            merged.append(block)
    return (
        tuple(WeightTier(block[-1], block[0], gcd(*block)) for block in merged)
        if len(merged) > 1
        else (whole,)
    )


def _blocks(tally: Tally[int]) -> list[list[int]]:
    """The weights from the largest on, where each block is worth more than all those after it together."""
    blocks: list[list[int]] = [[]]
    rest = sum(weight * number for weight, number in tally.items())
    for weight in sorted(filter(None, tally), reverse=True):
        if blocks[-1] and blocks[-1][-1] > rest:
            blocks.append([])
        blocks[-1].append(weight)
        rest -= weight * tally[weight]
    return blocks


def _sum(tally: Tally[int], weights: Sequence[int]) -> int:
    """What these add up to in their unit."""
    return sum(weight * tally[weight] for weight in weights) // (gcd(*weights) or 1)
