"""What is reported while the search for an optimum runs; `dralloc.choices` has what can be chosen."""

from __future__ import annotations

from dataclasses import dataclass

from dralloc.choices import Options
from dralloc.solution import relative_gap

__all__ = ["Options", "Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a solve is: the tier that is being solved, its value and bound over the whole problem, seconds so far."""

    phase: str
    best: int
    bound: int
    seconds: float

    @property
    def gap(self) -> float:
        """Distance of the best to its bound relative to the larger of the two."""
        return relative_gap(self.best, self.bound)
