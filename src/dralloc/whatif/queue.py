"""First fit of many demands, one kind after the other, on nodes that have nothing to do with each other.

What it puts on a node depends only on what the node is like, and on what has been put there before. So one node of each
kind is asked for all (see `dralloc.problem.equivalent_nodes`), and once for each state that it comes into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dralloc.check import check
from dralloc.errors import FatalError
from dralloc.problem import Demand, Problem
from dralloc.problem.equivalent_nodes import equivalent_nodes
from dralloc.problem.subproblem import at_home, cut
from dralloc.solvers.first_fit import first_fit
from dralloc.whatif.copies import copies
from dralloc.whatif.front import Vector
from dralloc.whatif.naive import Estimate

__all__ = ["Queue", "find_queue"]


class _EndedError(Exception):
    """An error on a node ends the attempt for every node."""


def find_queue(
    problem: Problem, demands: Sequence[Demand], most: Vector, order: Sequence[int] | None = None
) -> Queue | None:
    """Sort the nodes by what they are like; None if they have to do with each other.

    Parameters
    ----------
    order
        For each node in search order the one of the problem that stands for it; None if they all stand for themselves.
    """
    classes = equivalent_nodes(problem, demands)
    if classes is None:
        return None
    kinds = {node: group[0] for group in classes.groups for node in group}
    nodes = problem.all_nodes if order is None else order
    return Queue(problem, demands, most, tuple(kinds[node] for node in nodes if node in kinds))


@dataclass
class Queue:
    """Nodes in search order.

    Parameters
    ----------
    most
        Not more of each fit alone.
    kinds
        By node, the first one that is alike.
    """

    problem: Problem
    demands: Sequence[Demand]
    most: Vector
    kinds: tuple[int, ...]
    _rooms: dict[tuple[int, Vector], int] = field(default_factory=dict)
    _parts: dict[int, tuple[Problem, list[Demand], Vector]] = field(default_factory=dict)

    def first_fit(self, numbers: Vector) -> Vector | None:
        """How many of each are placed, of so many; None if an error ends that."""
        states: list[Vector] = [()] * len(self.kinds)
        try:
            for number in numbers:
                left = number
                for place, kind in enumerate(self.kinds):
                    taken = min(left, self._room(kind, states[place])) if left else 0
                    left -= taken
                    states[place] = (*states[place], taken)
        except _EndedError:
            return None
        return tuple(map(sum, zip(*states, strict=True))) if states else (0,) * len(numbers)

    def _room(self, kind: int, before: Vector) -> int:
        """How many of the next demand a node takes behind so many of those before."""
        key = kind, before
        if key not in self._rooms:
            part, demands, most = self._part(kind)
            numbers = (*before, most[len(before)])
            groups = (copies(demand, number) for demand, number in zip(demands, numbers, strict=False))
            problem = replace(part, demands=tuple(copy for group in groups for copy in group))
            solution = first_fit(problem)
            if any(isinstance(error, FatalError) for error in solution.errors.values()):
                raise _EndedError
            check(problem, solution)
            self._rooms[key] = len(solution.placements) - sum(before)
        return self._rooms[key]

    def _part(self, kind: int) -> tuple[Problem, list[Demand], Vector]:
        """The node alone, the demands there, and how many of each could fit at most."""
        if kind not in self._parts:
            part, demands = cut(self.problem, [kind]).problem, at_home(self.demands, kind)
            totals = (Estimate(part, demand).total() for demand in demands)
            most = (high if total is None else min(high, total) for high, total in zip(self.most, totals, strict=True))
            self._parts[kind] = part, demands, tuple(most)
        return self._parts[kind]
