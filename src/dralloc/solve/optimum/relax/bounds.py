"""What relaxations have proven of the levels of the weight, and what follows of the optimum, given some answer.

An inequality holds for every answer. How much of a level it leaves to the optimum depends on how much the optimum has
of other levels, of which an answer in hand says something: the optimum is no worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dralloc.problem.solution import LevelPrices
from dralloc.solve.optimum.relax.levels import LexicographicLevel

__all__ = ["Bound", "Inequality", "LevelRange"]


class LevelRange(NamedTuple):
    """How much of a level the optimum places at least and at most, in units."""

    least: int
    most: int


class Inequality(NamedTuple):
    """``sum(factor * units) <= bound`` for what any answer places of the first levels, one for each factor."""

    factors: Sequence[int]
    bound: int

    def limit(self, before: Sequence[int]) -> int:
        """Return what is placed of the last of these levels at most, with at least so much of those before it."""
        used = sum(
            factor * units
            for factor, units in zip(self.factors, before, strict=False)
        )
        return max(0, (self.bound - used) // self.factors[-1])

    def limit_together(self, ranges: Sequence[LevelRange]) -> int:
        """Return what is placed of all levels together at most, given what is placed of each.

        What counts least comes first. Where a level does not get all that it may have, less than what a unit counts is
        left, and no other level has a unit for that: so no other sum is larger by one.
        """
        placed = sum(level.least for level in ranges)
        room = self.bound - sum(
            factor * level.least
            for factor, level in zip(self.factors, ranges, strict=True)
        )
        for factor, level in sorted(zip(self.factors, ranges, strict=True)):
            more = level.most - level.least
            if factor:
                more = min(more, max(0, room) // factor)
            placed += more
            room -= factor * more
        return placed


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of what any answer costs, by tier.

    Parameters
    ----------
    costs
        As `Objective.cost` counts them. They hold one after the other: no answer costs less in the first tier, none
        that costs as much there costs less in the second, and so on.
    why
        What was left out to prove it.
    levels
        The levels of the weight.
    proven
        What was proven of each level.
    prices
        The guesses that proved it. Which of those for a level is the best depends on what is placed of those above.
    together
        What was proven of all levels together.
    """

    costs: tuple[int, ...]
    why: str
    levels: Sequence[LexicographicLevel] = ()
    proven: Sequence[Sequence[Inequality]] = ()
    prices: Sequence[LevelPrices] = ()
    together: Sequence[Inequality] = ()

    def ranges(
        self, reached: Sequence[int], best: Sequence[int] = ()
    ) -> list[LevelRange]:
        """Return how much the optimum places of each level, in units, given what some answer does.

        The optimum places no less of the first level than any answer; and no less of the next, if the answer has as
        much of the first as there can be. Of those behind the first level where more may be possible it may place
        anything. The more is placed of levels above, the less room there is for a level.

        Parameters
        ----------
        reached
            What the answer places.
        best
            What the optimum has of each level at most if it has as much as the answer of all those before, where that
            is known otherwise.
        """
        ranges: list[LevelRange] = []
        surely: list[int] = []
        is_best_so_far = True
        for level_index, (level, inequalities, units) in enumerate(
            zip(self.levels, self.proven, reached, strict=True)
        ):
            proven_limits = [
                inequality.limit(surely) for inequality in inequalities
            ]
            most = min([level.total, *proven_limits])
            if best and is_best_so_far:
                most = min(most, best[level_index])
            surely.append(min(units, most) if is_best_so_far else 0)
            ranges.append(LevelRange(surely[-1], most))
            is_best_so_far = is_best_so_far and units >= most
        return ranges

    def most_of_optimum(
        self, reached: Sequence[int], best: Sequence[int] = ()
    ) -> list[int]:
        """Return what the optimum places of each level at most, with what is known as in `ranges`."""
        return [level.most for level in self.ranges(reached, best)]

    def most_together(
        self, reached: Sequence[int], best: Sequence[int] = ()
    ) -> int:
        """Return what the optimum places of all levels together at most, with what is known as in `ranges`.

        It may be far less than the sum over levels: what makes room for more of one is missing in another.
        """
        ranges = self.ranges(reached, best)
        limits = [
            inequality.limit_together(ranges) for inequality in self.together
        ]
        return min([sum(level.most for level in ranges), *limits])
