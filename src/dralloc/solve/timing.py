"""Seconds by phase."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

__all__ = ["phase"]


@contextmanager
def phase(timings: dict[str, float], name: str) -> Iterator[None]:
    """Add the time that the block takes to the phase of that name."""
    started = perf_counter()
    try:
        yield
    finally:
        timings[name] = timings.get(name, 0.0) + perf_counter() - started
