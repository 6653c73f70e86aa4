"""Answers for the optimum to start from: first fit in other orders, then the best of these changed again and again.

Where many of a higher priority wait, they are searched before that, as if the others were not there.

`Starts` is all that is cheap to have before a model is built.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from dralloc.objects.choices import Options
from dralloc.problem import NodeIndex, Problem
from dralloc.problem.solution import Appraisal, AskAppraisal, Placement
from dralloc.solve.caps import within_caps
from dralloc.solve.recreate.orders import placed_in_orders
from dralloc.solve.recreate.search import recreated
from dralloc.solve.recreate.top_down import TopDown

__all__ = ["Starts"]

_ORDERS: Final = 0.05
"""The part of the time in which other orders are tried; one that is begun then is tried to its end."""

_MOST_FOR_ONE: Final = 100
"""Nobody stands in the way of more than so many."""

_LEAST_VALUE: Final = 2**20
"""What a demand of the smallest weight counts, so that parts of it can be told."""


class Starts:
    """Makes answers to start from; see the module.

    Parameters
    ----------
    problem
        What is to be placed.
    options
        As `recreated` takes them.
    around
        Where an answer was changed that was good before: nodes to search first. Then other orders are no use.
    """

    def __init__(
        self,
        problem: Problem,
        options: Options,
        around: Collection[NodeIndex] = (),
    ) -> None:
        self._problem = problem
        self._options = options
        self._around = around
        self._top_down: TopDown | None = None

    def __call__(
        self,
        present: Sequence[Placement],
        appraisal: AskAppraisal,
        seconds: Callable[[], float],
        jobs: int = 1,
    ) -> Iterator[Sequence[Placement]]:
        """Give out answers, the later ones better and better.

        Who asks again, with a better answer that was found elsewhere, is given further ones: what was tried before is
        not tried again, but for small changes of all.

        Parameters
        ----------
        present
            An answer that is known.
        appraisal
            Tells what demands and nodes are worth; None as long as that is not known.
        seconds
            Tells how many seconds are left.
        jobs
            How many searches of small changes are done at a time.
        """
        best = present
        options = replace(self._options, jobs=jobs)
        # Steps, where they are counted, are for changes of all demands.
        has_top_down = not self._around and options.steps is None
        is_asked_again = self._top_down is not None
        if self._top_down is None:
            self._top_down = TopDown(self._problem, seconds())
        if not (self._around or is_asked_again):
            for placements in self._in_orders(appraisal(), seconds):
                yield placements
                best = max(best, placements, key=self._promise)
        if has_top_down:
            for placements in self._top_down.improved(best, options, seconds):
                yield placements
                best = max(best, placements, key=self._promise)
        yield from recreated(
            self._problem,
            best,
            options,
            seconds,
            appraisal,
            self._around,
        )

    def _in_orders(
        self, appraisal: Appraisal | None, seconds: Callable[[], float]
    ) -> Iterator[Sequence[Placement]]:
        """Give out first fit's answers in other orders, for a small part of the time."""
        later = (1 - _ORDERS) * seconds()
        for placements in placed_in_orders(self._problem, appraisal, seconds):
            # First fit knows nothing of caps.
            yield tuple(within_caps(self._problem, placements))
            if seconds() < later:
                break

    def _promise(self, placements: Sequence[Placement]) -> int:
        """Return how good an answer is to start from."""
        demands = self._problem.demands
        return sum(
            self._values[demands[placement.demand].weight]
            for placement in placements
        )

    @cached_property
    def _values(self) -> Mapping[int, int]:
        """By weight, what such a demand counts beside others in an answer to start from.

        As its weight says, but for no more than `_MOST_FOR_ONE` of the next smaller weight. Small changes soon make
        room for the few that are worth more than all below them; hundreds that are missing below take them long.
        """
        weights = {demand.weight for demand in self._problem.demands}
        values = {0: 0}
        before, value = 0, _LEAST_VALUE
        for weight in sorted(weights - {0}):
            if before:
                value = value * min(weight, _MOST_FOR_ONE * before) // before
            values[weight] = value
            before = weight
        return values
