"""The garbage collector, out of the way while millions of objects come into being that are all there to stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_garbage_collection"]


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Switch it off in the block, which forms no cycles: looking for them would take longer than the work itself."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
