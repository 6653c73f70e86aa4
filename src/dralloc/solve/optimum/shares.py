"""Shares of one device, and which of them fit beside each other: patterns, as in cutting stock.

Source: Gilmore and Gomory 1961; the shares are those of KEP-5075.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from math import inf
from typing import Final

__all__ = ["Share", "SharePattern", "TooManyPatterns", "share_patterns"]

_STEPS_PER_PATTERN: Final = 50
"""So many sets of shares are looked at for each pattern that may be listed."""

Share = tuple[int, ...]
"""How much is taken of each capacity."""

SharePattern = tuple[int, ...]
"""How often each share is taken."""


class TooManyPatterns(Exception):  # noqa: N818 - no error: a sign to go another way
    """There are more patterns than are worth a list."""


def share_patterns(
    limits: Sequence[int],
    shares: Sequence[Share],
    longest: int,
    wanted: Sequence[int] | None = None,
) -> list[SharePattern]:
    """List the maximal patterns: no share that is wanted can be added to one.

    Parameters
    ----------
    limits
        How much there is of each capacity.
    shares
        What may be taken.
    longest
        So many patterns are listed at most.
    wanted
        How often each share is taken at most; None if as often as it fits, and then each takes something.

    Raises
    ------
    TooManyPatterns
        There are more, or it takes too long to find them.
    """
    at_most = list(repeat(inf, len(shares)) if wanted is None else wanted)
    patterns: list[SharePattern] = []
    steps = 1
    # Patterns that are begun: how often there is each of the first shares, and what remains then.
    begun: list[tuple[SharePattern, Sequence[int]]] = [((), limits)]
    while begun:
        counts, remainder = begun.pop()
        if len(counts) < len(shares):
            share, limit = shares[len(counts)], at_most[len(counts)]
            most = int(min(_fitting(remainder, share), limit))
            # Asked before they are begun: of a byte, a device has billions of shares.
            steps += most + 1
            if steps > _STEPS_PER_PATTERN * longest:
                raise TooManyPatterns
            for times in range(most + 1):
                rest = [
                    amount - times * taken
                    for amount, taken in zip(remainder, share, strict=True)
                ]
                begun.append(((*counts, times), rest))
        elif not any(
            count < limit and _fitting(remainder, share)
            for count, limit, share in zip(counts, at_most, shares, strict=True)
        ):
            if len(patterns) == longest:
                raise TooManyPatterns
            patterns.append(counts)
    return patterns


def _fitting(available: Sequence[int], share: Share) -> float:
    """How often a share fits into what is available; without end if it takes nothing."""
    return min(
        (
            amount // taken
            for amount, taken in zip(available, share, strict=True)
            if taken
        ),
        default=inf,
    )
