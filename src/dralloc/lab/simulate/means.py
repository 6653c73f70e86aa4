"""Means over seeds, and how far they may be from the mean over all seeds.

Seeds are drawn independently, so that Student's distribution tells the interval: with as many seeds as ten it is a good
approximation for means of figures that are no means themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev
from typing import Final

__all__ = ["MeanInterval"]

_STUDENT: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""The quantiles of 97.5% of Student's distribution with 1, 2, ... 30 degrees of freedom; with more, 2.042 is enough."""


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """The mean of a figure, and half the width of its confidence interval of 95%; 0 if there is one seed."""

    name: str
    mean: float
    half_width: float

    @classmethod
    def of(cls, name: str, values: Sequence[float]) -> MeanInterval:
        """Return the interval of some values, one for each seed."""
        freedom = len(values) - 1
        if not freedom:
            return cls(name, float(values[0]), 0.0)
        quantile = _STUDENT[min(freedom, len(_STUDENT)) - 1]
        return cls(
            name, mean(values), quantile * stdev(values) / sqrt(len(values))
        )
