"""Everything that is known when changes are looked for."""

from __future__ import annotations

from dataclasses import dataclass

from dralloc.compiler import CompiledCluster
from dralloc.explain.change import Change
from dralloc.explain.lab import Lab
from dralloc.explain.wording import Wording
from dralloc.problem import Problem

__all__ = ["Situation", "Wish"]


@dataclass(frozen=True)
class Situation:
    """A demand that cannot be placed.

    Parameters
    ----------
    lab
        Where changes are tried.
    problem
        The whole problem.
    wording
        Names things.
    compiled
        The objects behind the problem, if there are any.
    most_moves
        How many claims may be moved.
    """

    lab: Lab
    problem: Problem
    wording: Wording
    compiled: CompiledCluster | None = None
    most_moves: int = 2


@dataclass(frozen=True)
class Wish:
    """Another request that can be served: in words, how far it is from the one there was, and where it fits."""

    text: str
    change: Change
    amount: int
    node: int
