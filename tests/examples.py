"""How many examples generated tests try.

Usually a tenth of the full number, so that all tests pass within minutes. ``DRALLOC_EXAMPLES`` in the environment says
how much of it to try: CI tries a third, 1 is the full number, and 10 ten times as many.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice
from math import ceil
from typing import Final, TypeVar

from hypothesis.internal.conjecture.providers import (
    AVAILABLE_PROVIDERS,
    HypothesisProvider,
)

__all__ = ["INDEPENDENT", "TIMES", "examples", "some_of"]

T = TypeVar("T")

TIMES: Final = Fraction(os.environ.get("DRALLOC_EXAMPLES", "1/10"))
"""So many times the full number of examples; above 1 they are other ones in each run."""

INDEPENDENT: Final = "independent"
"""The backend of Hypothesis for examples that have nothing to do with each other.

Usually five of six examples are the one before with a part of it in place of another, too, which helps with parsers,
but seldom makes another cluster of a cluster. Under any other name than its own, Hypothesis draws all of them afresh.
"""

AVAILABLE_PROVIDERS[INDEPENDENT] = HypothesisProvider


def examples(in_full: int) -> int:
    """Return how many examples to try where so many are the full number."""
    return ceil(in_full * TIMES)


def some_of(cases: Iterable[T]) -> Iterator[T]:
    """Yield all cases where the full number of examples is tried; else every n-th, for as large a part."""
    return islice(cases, 0, None, max(1, round(1 / TIMES)))
