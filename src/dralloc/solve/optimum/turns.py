"""Turns of two searches: small changes of all demands, which are made elsewhere, and neighbourhoods.

Small changes are done by the thousand, but what takes several moves that only help together they seldom find, and some
demands they do not move at all (see `dralloc.solve.recreate.units`). There neighbourhoods are what helps. Nobody knows
beforehand which of the two does. So both have turns: neighbourhoods when small changes gain nothing in the first tier
that could be much better, and for no more time than small changes had.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from time import perf_counter
from typing import Final, NamedTuple

from dralloc.objects.choices import Options
from dralloc.solve.optimum.improve import SearchedComponent
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Turns"]

_TURN: Final = 0.07
"""The part of the time that a turn of neighbourhoods takes."""

_FIRST_TURNS: Final = 2
"""Before the first one, small changes have so many times its seconds."""

_IN_VAIN: Final = 8
"""After a turn of neighbourhoods in vain, small changes have the seconds of so many turns before the next one."""

_MANY: Final = 100
"""Neighbourhoods have turns while more than one in so many demands of a priority could be placed besides."""


class Turns:
    """The turns, which begin with one of small changes.

    Parameters
    ----------
    components
        Whose neighbourhoods are searched; without any, small changes have all turns.
    stop
        When there is time for no more turns.
    """

    def __init__(
        self, components: Sequence[SearchedComponent], stop: Stop
    ) -> None:
        self._components = components
        self._stop = stop
        self._turn_seconds = _TURN * stop.seconds()
        # How many seconds small changes have to have before neighbourhoods have a turn.
        self._reserved = _FIRST_TURNS * self._turn_seconds
        self._demand_counts = self._count_demands()
        self._begin()

    def end_of_small_changes(self) -> bool:
        """End a turn of small changes, and return whether neighbourhoods are next."""
        turn = self._end()
        self._reserved -= turn.seconds
        return self._reserved <= 0 and turn.is_in_vain

    def search_neighbourhoods(self, options: Options) -> None:
        """Search neighbourhoods, turn after turn, until small changes are next or little is left to gain."""
        while (
            self._reserved <= 0
            and self._first_open() is not None
            and not self._stop.reached()
        ):
            until = self._stop.within(self._turn_seconds)
            for component in self._components:
                component.search_neighbourhoods(options, until)
            turn = self._end()
            if turn.is_in_vain:
                # Also where nothing was left to try and the turn took no time.
                self._reserved = _IN_VAIN * self._turn_seconds
            else:
                self._reserved += turn.seconds

    def _begin(self) -> None:
        self._begun = perf_counter()
        self._costs = self._costs_now()

    def _end(self) -> _Turn:
        """End a turn, and begin the next one."""
        seconds = perf_counter() - self._begun
        before = self._costs
        open_level = self._first_open()
        self._begin()
        if open_level is None:
            return _Turn(seconds, is_in_vain=False)
        # Less in a tier before the open one is a gain as well: lists are compared from the left.
        upper = slice(open_level + 1)
        return _Turn(seconds, self._costs[upper] >= before[upper])

    def _costs_now(self) -> list[int]:
        """Return what the answers of all components cost together, by tier of the weight."""
        return list(map(self._cost, range(len(self._demand_counts))))

    def _cost(self, level: int) -> int:
        return sum(component.cost(level) for component in self._components)

    def _bound(self, level: int) -> int:
        return sum(component.bounds[level] for component in self._components)

    def _first_open(self) -> int | None:
        """Return the first tier in which many more demands of a priority could be placed; None if there is none.

        Costs are those at the beginning of the turn.
        """
        for level, cost in enumerate(self._costs):
            if self._could_place_many(level, cost - self._bound(level)):
                return level
        return None

    def _could_place_many(self, level: int, gap: int) -> bool:
        """Whether a gap is many demands of a priority: it is read like a number, with a digit for each weight."""
        for weight, demand_count in self._demand_counts[level]:
            missing, gap = divmod(gap, weight)
            if missing * _MANY > demand_count:
                return True
        return False

    def _count_demands(self) -> list[list[tuple[int, int]]]:
        """By tier of the weight, return its weights, the largest first, each with the number of its demands."""
        demand_counts: list[list[tuple[int, int]]] = []
        for tier in self._components[0].tiers if self._components else ():
            if tier.weights is None:
                break
            units = [
                tier.weights.of(component.subset.problem.demands[demand].weight)
                for component in self._components
                for demand in component.subset.demands
            ]
            tally = Tally(unit for unit in units if unit)
            demand_counts.append(sorted(tally.items(), reverse=True))
        return demand_counts


class _Turn(NamedTuple):
    """How long a turn took, and whether it gained nothing though there was much to gain."""

    seconds: float
    is_in_vain: bool
