"""One time limit for a question that takes several runs of a solver."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Final, TypeVar

from dralloc.objects.choices import Options
from dralloc.solve.optimum.stopping import Stop

__all__ = ["with_time_left"]

AnyOptions = TypeVar("AnyOptions", bound=Options)

_LEAST: Final = 0.01
"""Seconds that a run gets even when time is over."""


def with_time_left(options: AnyOptions, stop: Stop, part: float = 1.0) -> AnyOptions:
    """Return the options with what is left of the time as their limit, or with a part of it."""
    seconds = stop.seconds()
    if seconds == inf:
        return options
    return replace(options, time_limit=max(_LEAST, part * seconds))
