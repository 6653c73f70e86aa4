"""Answers for the optimum to start from: first fit in other orders, then the best of these changed again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from dralloc.objects.choices import Options
from dralloc.problem import Problem
from dralloc.problem.solution import Placement
from dralloc.solve.policies.starts import starts
from dralloc.solve.recreate.search import recreated

__all__ = ["Starts"]

_ORDERS: Final = 0.1
"""The part of the time in which other orders are tried; one that is begun is tried to its end."""


class Starts:
    """Makes answers to start from; see the module.

    Parameters
    ----------
    problem
        What is to be placed. Answers keep all of its rules but budgets.
    options
        As `recreated` takes them.
    """

    def __init__(self, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._options = options

    def __call__(
        self, present: Sequence[Placement], seconds: Callable[[], float]
    ) -> Iterator[Sequence[Placement]]:
        """Give out answers, the later ones better and better.

        Parameters
        ----------
        present
            An answer that is known.
        seconds
            Tells how many seconds are left.
        """
        best = present
        later = (1 - _ORDERS) * seconds()
        for placements in starts(self._problem):
            yield placements
            best = max(best, placements, key=self._worth)
            if seconds() < later:
                break
        yield from recreated(self._problem, best, self._options, seconds)

    def _worth(self, placements: Sequence[Placement]) -> int:
        return sum(
            self._problem.demands[placement.demand].weight for placement in placements
        )
