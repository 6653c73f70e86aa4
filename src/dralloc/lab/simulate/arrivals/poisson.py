"""Arrivals by chance: a Poisson process, by day and night, with durations of any of some distributions.

What is drawn depends on the seed and on nothing else. Sources: Lewis and Shedler, "Simulation of nonhomogeneous Poisson
processes by thinning" (1979), for rates that change with the hour; Pareto and log-normal durations are what traces of
GPU clusters show (Weng et al., "MLaaS in the Wild", NSDI'22, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import cos, isfinite, log, pi
from random import Random
from typing import Final

from dralloc.lab.simulate.arrivals.trace import MILLISECONDS, Arrival
from dralloc.objects.choices import Durations, chosen
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey

__all__ = ["PoissonArrivals"]

_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_MOST_ARRIVALS: Final = 10_000_000


@dataclass(frozen=True)
class PoissonArrivals:
    """Arrivals at random times.

    Parameters
    ----------
    mix
        What arrives, as in a trace, and how often beside the others.
    per_hour
        How many arrive in an hour on average.
    hours
        For how long they arrive.
    mean_hours
        How long they run on average.
    durations
        The distribution of how long they run.
    shape
        The standard deviation of the logarithm for ``lognormal``, and the exponent, above 1, for ``pareto``.
    swing
        By how much the rate rises above its mean at noon and falls below it at midnight, as a part of the mean.
    priorities
        Priorities, and how often each is drawn beside the others; none for those of the templates.

    Raises
    ------
    DrallocError
        A number is out of its range; `ChoiceError` if there is no such distribution.

    Examples
    --------
    >>> import dralloc
    >>> mix = {"small": 3, "large": 1}
    >>> day = dralloc.PoissonArrivals(mix, per_hour=20, hours=24, mean_hours=0.5)
    >>> len(day.draw(seed=1))
    487
    """

    mix: Mapping[str, float]
    per_hour: float
    hours: float
    mean_hours: float = 1.0
    durations: Durations | str = Durations.EXPONENTIAL
    shape: float = 1.5
    swing: float = 0.0
    priorities: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        durations = chosen(Durations, "distribution", self.durations)
        object.__setattr__(self, "durations", durations)
        for name in ("per_hour", "hours", "mean_hours", "shape"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise DrallocError(
                    f"arrivals: {name}: {value} is not a positive number"
                )
        if not 0 <= self.swing <= 1:
            raise DrallocError(
                f"arrivals: swing: {self.swing} is not between 0 and 1"
            )
        if durations is Durations.PARETO and self.shape <= 1:
            raise DrallocError(
                f"arrivals: shape: with an exponent of {self.shape} the Pareto distribution has no mean"
            )
        if self.per_hour * self.hours > _MOST_ARRIVALS:
            raise DrallocError(
                f"arrivals: more than {_MOST_ARRIVALS} are expected"
            )
        for name, shares in (
            ("mix", self.mix),
            ("priorities", self.priorities),
        ):
            weights = list(shares.values())
            if any(
                not (isfinite(weight) and weight >= 0) for weight in weights
            ) or (weights and not sum(weights) > 0):
                raise DrallocError(
                    f"arrivals: {name}: the shares are not from 0, with a sum above 0"
                )
        if not self.mix:
            raise DrallocError("arrivals: mix: names no template")

    def draw(self, seed: int) -> tuple[Arrival, ...]:
        """Return the arrivals of a seed, in order."""
        random = Random(f"arrivals {seed}")
        templates = [ClaimKey.parse(name) for name in self.mix]
        shares = list(self.mix.values())
        priorities: list[int | None] = [*self.priorities] or [None]
        of_priorities = list(self.priorities.values()) or [1.0]
        return tuple(
            Arrival(
                time=time,
                template=random.choices(templates, shares)[0],
                duration=self._duration(random),
                priority=random.choices(priorities, of_priorities)[0],
            )
            for time in self._times(random)
        )

    def _times(self, random: Random) -> Iterator[int]:
        """Draw times at the highest rate, and keep each as likely as the rate is beside the highest one then."""
        end = self.hours * _HOUR
        highest = self.per_hour * (1 + self.swing) / _HOUR
        seconds = random.expovariate(highest)
        while seconds < end:
            if random.random() * (1 + self.swing) < 1 - self.swing * cos(
                2 * pi * seconds / _DAY
            ):
                yield round(seconds * MILLISECONDS)
            seconds += random.expovariate(highest)

    def _duration(self, random: Random) -> int:
        mean = self.mean_hours * _HOUR * MILLISECONDS
        match self.durations:
            case Durations.FIXED:
                length = mean
            case Durations.EXPONENTIAL:
                length = random.expovariate(1 / mean)
            case Durations.LOGNORMAL:
                length = random.lognormvariate(
                    log(mean) - self.shape**2 / 2, self.shape
                )
            case _:
                length = (
                    mean
                    * (self.shape - 1)
                    / self.shape
                    * random.paretovariate(self.shape)
                )
        return max(1, round(length))
