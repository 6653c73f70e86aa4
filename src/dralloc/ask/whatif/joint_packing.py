"""Several demands at once: how many of each fit beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dralloc.ask.whatif.copies import by_demand, replicated
from dralloc.ask.whatif.front import Vector
from dralloc.ask.whatif.per_device_bound import PerDeviceBound
from dralloc.check import check
from dralloc.objects.choices import Options
from dralloc.problem import Demand, Problem
from dralloc.problem.solution import Placement, Solution
from dralloc.problem.subproblem import cut_alone
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve

__all__ = ["JointPacking", "PlacedCopies"]

PlacedCopies = tuple[tuple[Placement, ...], ...]
"""For each of several demands, the placements of its copies; the number of a placement's demand means nothing."""


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
    found
        What has been placed so far, by how many of each; the checker has accepted it.
    """

    problem: Problem
    demands: Sequence[Demand]
    most: Vector
    options: Options = field(default_factory=Options)
    proven: bool = True
    found: dict[Vector, PlacedCopies] = field(default_factory=dict)

    @classmethod
    def alone(
        cls,
        problem: Problem,
        demands: Sequence[Demand],
        node: int,
        most: Vector,
        options: Options,
    ) -> JointPacking:
        """One node alone, and how many of each demand fit there, but not more than so many."""
        part, here = cut_alone(problem, demands, node)

        def fitting(demand: Demand, limit: int) -> int:
            bound = PerDeviceBound(part, demand).total()
            number = limit if bound is None else min(limit, bound)
            _, solution = cls(part, [demand], (number,), options).best([[1] * number])
            return solution.tiers[0].bound

        return cls(part, here, tuple(map(fitting, here, most)), options)

    def reach(self, least: Vector, last: int = 0) -> Vector | None:
        """Place at least so many of each, and beyond that as many as possible; None if that is too many.

        What has to be had outweighs all that comes beyond, and there each demand outweighs the one that comes last.
        """
        extra = [most - low for low, most in zip(least, self.most, strict=True)]
        beyond = [
            1 if place == last else extra[last] + 1 for place in range(len(least))
        ]
        must = (
            sum(number * weight for number, weight in zip(extra, beyond, strict=True))
            + 1
        )
        weights = [
            [must] * low + [weight] * more
            for low, more, weight in zip(least, extra, beyond, strict=True)
        ]
        numbers, solution = self.best(weights)
        tier = solution.tiers[0]
        if any(number < low for number, low in zip(numbers, least, strict=True)):
            self.proven &= tier.bound < sum(least) * must
            return None
        self.proven &= tier.proven
        return numbers

    def best(self, weights: Sequence[Sequence[int]]) -> tuple[Vector, Solution]:
        """How many of each the most weight has, given the weights of the copies of each demand."""
        sizes = [len(each) for each in weights]
        problem = replicated(self.problem, self.demands, sizes)
        every = (weight for each in weights for weight in each)
        weighted = (
            replace(copy, weight=weight)
            for copy, weight in zip(problem.demands, every, strict=True)
        )
        problem = replace(problem, demands=tuple(weighted))
        solution = solve(problem, self.options)
        check(problem, solution)
        placed = by_demand(solution.placements, sizes)
        numbers = tuple(map(len, placed))
        if any(numbers):
            self.found.setdefault(numbers, placed)
        return numbers, solution

    def first_fit(self, numbers: Vector) -> Vector:
        """How many of each first fit places, of so many of them, one demand after the other."""
        problem = replicated(self.problem, self.demands, numbers)
        solution = first_fit(problem)
        check(problem, solution)
        return tuple(map(len, by_demand(solution.placements, numbers)))
