"""First fit of many demands, one class after the other, on nodes that have nothing to do with each other.

What it puts on a node depends only on what the node is like, and on what has been put there before. So one node of each
class is asked for all (see `dralloc.problem.equivalent_nodes`), and once for each state that it comes into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dralloc.ask.whatif.copies import replicated
from dralloc.ask.whatif.front import Vector
from dralloc.ask.whatif.per_device_bound import PerDeviceBound
from dralloc.check import check
from dralloc.objects.errors import FatalError
from dralloc.problem import Demand, Problem
from dralloc.problem.equivalent_nodes import equivalent_nodes
from dralloc.problem.subproblem import cut_alone
from dralloc.solve.first_fit import first_fit

__all__ = ["IsolatedFirstFit", "isolated_first_fit"]


class _EndedError(Exception):
    """An error on a node ends the attempt for every node."""


def isolated_first_fit(
    problem: Problem,
    demands: Sequence[Demand],
    most: Vector,
    order: Sequence[int] | None = None,
) -> IsolatedFirstFit | None:
    """Sort the nodes by what they are like; None if they have to do with each other.

    Parameters
    ----------
    order
        For each node in search order the one of the problem that stands for it; None if they all stand for themselves.
    """
    classes = equivalent_nodes(problem, demands)
    if classes is None:
        return None
    first = {node: group[0] for group in classes.groups for node in group}
    nodes = problem.all_nodes if order is None else order
    return IsolatedFirstFit(
        problem, demands, most, tuple(first[node] for node in nodes if node in first)
    )


@dataclass
class IsolatedFirstFit:
    """Nodes in search order.

    Parameters
    ----------
    most
        Not more of each fit alone.
    representatives
        By node, the first one that is equivalent.
    """

    problem: Problem
    demands: Sequence[Demand]
    most: Vector
    representatives: tuple[int, ...]
    _counts: dict[tuple[int, Vector], int] = field(default_factory=dict)
    _parts: dict[int, tuple[Problem, list[Demand], Vector]] = field(
        default_factory=dict
    )

    def first_fit(self, numbers: Vector) -> Vector | None:
        """How many of each are placed, of so many; None if an error ends that."""
        states: list[Vector] = [()] * len(self.representatives)
        try:
            for number in numbers:
                left = number
                for place, representative in enumerate(self.representatives):
                    taken = (
                        min(left, self._count(representative, states[place]))
                        if left
                        else 0
                    )
                    left -= taken
                    states[place] = (*states[place], taken)
        except _EndedError:
            return None
        return (
            tuple(map(sum, zip(*states, strict=True)))
            if states
            else (0,) * len(numbers)
        )

    def _count(self, representative: int, before: Vector) -> int:
        """How many of the next demand a node takes behind so many of those before."""
        key = representative, before
        if key not in self._counts:
            part, demands, most = self._part(representative)
            numbers = (*before, most[len(before)])
            problem = replicated(part, demands[: len(numbers)], numbers)
            solution = first_fit(problem)
            if any(isinstance(error, FatalError) for error in solution.errors.values()):
                raise _EndedError
            check(problem, solution)
            self._counts[key] = len(solution.placements) - sum(before)
        return self._counts[key]

    def _part(self, representative: int) -> tuple[Problem, list[Demand], Vector]:
        """The node alone, the demands there, and how many of each could fit at most."""
        if representative not in self._parts:
            part, demands = cut_alone(self.problem, self.demands, representative)
            totals = (PerDeviceBound(part, demand).total() for demand in demands)
            most = (
                high if total is None else min(high, total)
                for high, total in zip(self.most, totals, strict=True)
            )
            self._parts[representative] = part, demands, tuple(most)
        return self._parts[representative]
