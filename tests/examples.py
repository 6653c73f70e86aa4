"""How many examples generated tests try: ``DRALLOC_EXAMPLES=10`` in the environment makes it ten times as many."""

from __future__ import annotations

import os
from typing import Final

from hypothesis.internal.conjecture.providers import (
    AVAILABLE_PROVIDERS,
    HypothesisProvider,
)

__all__ = ["INDEPENDENT", "TIMES", "examples"]

TIMES: Final = int(os.environ.get("DRALLOC_EXAMPLES", "1"))
"""So many times the usual number of examples; above 1 they are other ones in each run."""

INDEPENDENT: Final = "independent"
"""The backend of Hypothesis for examples that have nothing to do with each other.

Usually five of six examples are the one before with a part of it in place of another, too, which helps with parsers,
but seldom makes another cluster of a cluster. Under any other name than its own, Hypothesis draws all of them afresh.
"""

AVAILABLE_PROVIDERS[INDEPENDENT] = HypothesisProvider


def examples(usual: int) -> int:
    """As many as asked for, where there would usually be so many."""
    return usual * TIMES
