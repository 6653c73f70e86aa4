"""Garbage collection is off while very many objects are made at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["without_garbage_collection"]

_LOCK = Lock()
_INSIDE: list[bool] = []
"""Of each block that is entered, in whichever thread: whether collection was on before it."""


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Nothing made inside is garbage: looking for it again and again takes as long as the work itself.

    Blocks may overlap, also in several threads: who leaves last puts things back as they were before the first.
    """
    with _LOCK:
        _INSIDE.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _LOCK:
            before = _INSIDE[0]
            _INSIDE.pop()
            if before and not _INSIDE:
                gc.enable()
