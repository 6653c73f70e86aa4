"""Several demands at once: how many of each fit beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from dralloc.check import check
from dralloc.problem import Demand, Problem
from dralloc.solution import Placement, Solution
from dralloc.solvers.cpsat import Options, solve
from dralloc.solvers.first_fit import first_fit
from dralloc.whatif.copies import copies
from dralloc.whatif.front import Vector

__all__ = ["JointPacking", "PlacedMultiset"]


@dataclass(frozen=True)
class PlacedMultiset:
    """For each of several demands, the placements of its copies; the number of a placement's demand means nothing."""

    placements: tuple[tuple[Placement, ...], ...]

    @property
    def numbers(self) -> Vector:
        """How many there are of each."""
        return tuple(map(len, self.placements))


@dataclass
class JointPacking:
    """Copies of several demands in an inventory.

    Parameters
    ----------
    problem
        Of which only the inventory is looked at.
    demands
        None of them can be had without end.
    most
        How many of each fit alone, at most.
    proven
        Whether everything that was said so far is proven.
    """

    problem: Problem
    demands: Sequence[Demand]
    most: Vector
    options: Options = field(default_factory=Options)
    proven: bool = True

    def reach(self, least: Vector, last: int = 0) -> PlacedMultiset | None:
        """Place at least so many of each, and beyond that as many as possible; None if that is too many.

        What has to be had outweighs all that comes beyond, and there each demand outweighs the one that comes last.
        """
        extra = [most - low for low, most in zip(least, self.most, strict=True)]
        beyond = [1 if place == last else extra[last] + 1 for place in range(len(least))]
        must = sum(number * weight for number, weight in zip(extra, beyond, strict=True)) + 1
        weights = [[must] * low + [weight] * more for low, more, weight in zip(least, extra, beyond, strict=True)]
        placed, solution = self.best(weights)
        tier = solution.tiers[0]
        if any(number < low for number, low in zip(placed.numbers, least, strict=True)):
            self.proven &= tier.bound < sum(least) * must
            return None
        self.proven &= tier.proven
        return placed

    def best(self, weights: Sequence[Sequence[int]]) -> tuple[PlacedMultiset, Solution]:
        """The most weight that can be placed, given the weights of the copies of each demand; checked."""
        problem = self._crowded([len(each) for each in weights])
        every = [weight for each in weights for weight in each]
        demands = (replace(copy, weight=weight) for copy, weight in zip(problem.demands, every, strict=True))
        problem = replace(problem, demands=tuple(demands))
        solution = solve(problem, self.options)
        check(problem, solution)
        return _sorted(solution, [len(each) for each in weights]), solution

    def first_fit(self, numbers: Vector) -> Vector:
        """How many of each first fit places, of so many of them, one demand after the other."""
        problem = self._crowded(numbers)
        solution = first_fit(problem)
        check(problem, solution)
        return _sorted(solution, numbers).numbers

    def _crowded(self, numbers: Sequence[int]) -> Problem:
        groups = (copies(demand, number) for demand, number in zip(self.demands, numbers, strict=True))
        return replace(self.problem, demands=tuple(copy for group in groups for copy in group))


def _sorted(solution: Solution, numbers: Sequence[int]) -> PlacedMultiset:
    """The placements by the demand that they are copies of."""
    spans = [range(*span) for span in pairwise(accumulate(numbers, initial=0))]
    return PlacedMultiset(tuple(tuple(each for each in solution.placements if each.demand in span) for span in spans))
