"""Rounding as Go does it."""

from __future__ import annotations

from math import floor

__all__ = ["rounded"]


def rounded(value: float) -> int:
    """The nearest integer, halves away from zero (``math.Round`` of a value that is not negative)."""
    whole = floor(value)
    return whole + (value - whole >= 0.5)
