"""How many examples generated tests try: ``DRALLOC_EXAMPLES=10`` in the environment makes it ten times as many."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["TIMES", "examples"]

TIMES: Final = int(os.environ.get("DRALLOC_EXAMPLES", "1"))
"""So many times the usual number of examples; above 1 they are other ones in each run."""


def examples(usual: int) -> int:
    """As many as asked for, where there would usually be so many."""
    return usual * TIMES
