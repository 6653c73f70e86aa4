"""Demands with an answer, and what is proven about it, in whichever way they are solved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dralloc.problem.solution import Placement
from dralloc.solve.optimum.objective import DemandSubset, Objective

__all__ = ["Answered", "is_next", "is_proven", "raise_bounds"]


class Answered(Protocol):
    """Demands with the best answer so far and what is proven about it: what any answer costs in each tier."""

    subset: DemandSubset
    tiers: Sequence[Objective]
    bounds: list[int]

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The best answer."""

    def cost(self, level: int) -> int:
        """Return what the best answer costs in a tier."""


def is_proven(answer: Answered, level: int) -> bool:
    """Whether no answer is better in a tier, given the tiers before it."""
    return answer.cost(level) == answer.bounds[level]


def is_next(answer: Answered, level: int) -> bool:
    """Whether a tier is the first that is not proven."""
    if is_proven(answer, level):
        return False
    return all(is_proven(answer, earlier) for earlier in range(level))


def raise_bounds(answer: Answered, costs: Sequence[int]) -> None:
    """Take over what relaxations prove: of a tier if the answer costs no more in those before it.

    Answers that cost more in one tier than a relaxation says may cost less in later ones, even if it is proven by other
    means that there is none better.
    """
    for level, cost in enumerate(costs):
        answer.bounds[level] = max(answer.bounds[level], cost)
        if answer.cost(level) > cost:
            break
