"""In which order demands are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from dralloc.problem import Problem
from dralloc.solvers.policies.sizes import PARTS, Sizes

__all__ = ["Order", "as_given", "densest_first", "largest_first"]

Order = Callable[[Problem], Sequence[int]]
"""Puts the demands of a problem, by index, in order."""


def as_given(problem: Problem) -> Sequence[int]:
    """As the scheduler takes pods: by priority, then by age."""
    return range(len(problem.demands))


def largest_first(problem: Problem) -> Sequence[int]:
    """By priority; of equal priority the largest first, of equal size those that may go to fewer nodes.

    Sizes: `dralloc.solvers.policies.sizes`.
    """
    sizes = Sizes(problem)

    def key(number: int) -> tuple[int, int, int]:
        demand = problem.demands[number]
        return -demand.priority, -sizes.of(demand), len(problem.candidate_nodes(demand))

    return sorted(as_given(problem), key=key)


def densest_first(problem: Problem) -> Sequence[int]:
    """The most weight per size first: the greedy order for the knapsack problem (Dantzig 1957)."""
    sizes = Sizes(problem)

    def density(number: int) -> Fraction:
        demand = problem.demands[number]
        return Fraction(demand.weight * PARTS, sizes.of(demand))

    return sorted(as_given(problem), key=density, reverse=True)
