"""How much of an amount can be taken in given pieces."""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Final

__all__ = ["FINEST", "most"]

FINEST: Final = 2**20
"""Amounts are told apart as long as no more than so many steps of their common divisor are free."""


@lru_cache(maxsize=4096)
def most(free: int, choices: tuple[tuple[int, ...], ...], repeated: tuple[int, ...]) -> int:
    """The largest sum up to a limit: subset sum, in exact integers.

    Parameters
    ----------
    free
        The limit.
    choices
        Of each of these at most one amount may be taken.
    repeated
        These amounts may be taken any number of times.

    Returns
    -------
    int
        The sum. If the amounts are finer than `FINEST` steps, the limit itself, rounded to a multiple of their
        common divisor: nothing is called stranded that is not.
    """
    step = gcd(*(amount for choice in choices for amount in choice), *repeated)
    limit = free // step if step else 0
    if limit > FINEST:
        return limit * step
    # Bit n stands for a sum of n steps.
    sums, mask = 1, (1 << (limit + 1)) - 1
    for choice in choices:
        before = sums
        for amount in choice:
            sums |= before << amount // step & mask if amount <= free else 0
    for amount in repeated:
        shift = amount // step
        while 0 < shift <= limit:
            sums |= sums << shift & mask
            shift *= 2
    return (sums.bit_length() - 1) * step
