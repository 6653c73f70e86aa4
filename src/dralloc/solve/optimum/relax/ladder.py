"""A ladder of relaxations: each rung proves more, and takes longer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import log2
from operator import mul
from typing import Final, NamedTuple, TypeVar

import numpy as np

from dralloc.problem import Problem
from dralloc.solve.optimum.objective import Objective
from dralloc.solve.optimum.relax.demand_kinds import demand_kinds_of
from dralloc.solve.optimum.relax.guide import Guide, KnownLimit
from dralloc.solve.optimum.relax.levels import LexicographicLevel, costs_of, levels_of
from dralloc.solve.optimum.relax.offers import node_offers_of
from dralloc.solve.optimum.relax.prices import Market
from dralloc.solve.optimum.relax.regions import regions_of
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = ["Bound", "relaxed_bounds"]

N = TypeVar("N", int, float)

_RATIO: Final = 100
"""What a demand counts beside one of the next level: nobody stands in the way of so many."""

_HIGHEST: Final = _RATIO**3
_LARGEST: Final = 2**52
"""Weights are multiplied by a power of two up to this size, so that prices can be whole numbers."""


class _Rung(NamedTuple):
    """So many regions at most, and so many lots of demands of a kind."""

    regions: int
    lots: int
    why: str


_MOST_LOTS: Final = 8
"""More lots of demands of a kind change next to nothing."""

_PUT_TOGETHER: Final = "with nodes put together that are alike"
_IN_FRACTIONS: Final = "with fractions of demands"
_LADDER: Final = (
    _Rung(0, 0, "of each demand alone"),
    _Rung(12, 1, _PUT_TOGETHER),
    _Rung(60, 3, _PUT_TOGETHER),
    _Rung(150, 4, _PUT_TOGETHER),
    _Rung(400, 6, _PUT_TOGETHER),
)


def relaxed_bounds(
    problem: Problem, tiers: Sequence[Objective], stop: Stop
) -> Iterator[Bound]:
    """Prove what answers cost at least, each time it is more than before.

    Ends when there is no better relaxation, or when it is time to stop.
    """
    with suppress(Stopped):
        ladder = _Ladder(problem, stop)
        known: tuple[int, ...] | None = None
        for rung in _rungs(len(problem.nodes)):
            for most in ladder.climb(rung):
                costs = tuple(costs_of(problem, tiers, ladder.levels, most))
                if known is None or costs > known:
                    known = costs
                    yield ladder.bound(costs, rung.why)


def _rungs(nodes: int) -> Iterator[_Rung]:
    """Up to the first one that tells all nodes apart: this one with all lots."""
    for rung in _LADDER:
        if rung.regions and rung.regions >= nodes:
            if nodes:
                yield _Rung(nodes, _MOST_LOTS, _IN_FRACTIONS)
            return
        yield rung


class _Proven(NamedTuple):
    """``sum(factor * units) <= bound`` for what is placed of a level and of those before it."""

    factors: Sequence[int]
    bound: int

    def most(self, before: Sequence[int]) -> int:
        """What is placed of the level at most, with so much of those before it."""
        rest = self.bound - sum(
            factor * units for factor, units in zip(self.factors, before, strict=False)
        )
        return max(0, rest // self.factors[-1])


@dataclass(frozen=True, slots=True)
class Bound:
    """What any answer costs, by tier.

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
    """

    costs: tuple[int, ...]
    why: str
    levels: Sequence[LexicographicLevel] = ()
    proven: Sequence[Sequence[_Proven]] = ()

    def most_of_optimum(self, reached: Sequence[int]) -> list[int]:
        """Return what the optimum places of each level at most, in units, given what some answer does.

        The optimum places no less of the first level than any answer; and no less of the next, if the answer has as
        much of the first as there can be. Of those behind the first level where more may be possible it may place
        anything. The more is placed of levels above, the less room there is for a level.
        """
        limits: list[int] = []
        surely: list[int] = []
        is_best_so_far = True
        for level, inequalities, units in zip(
            self.levels, self.proven, reached, strict=True
        ):
            limit = min([level.total, *[each.most(surely) for each in inequalities]])
            limits.append(limit)
            surely.append(min(units, limit) if is_best_so_far else 0)
            is_best_so_far = is_best_so_far and units >= limit
        return limits


class _Ladder:
    def __init__(self, problem: Problem, stop: Stop) -> None:
        self.stop = stop
        wanted = demand_kinds_of(problem, stop)
        self.market = Market(
            problem, wanted, node_offers_of(problem, wanted, stop), stop
        )
        self.levels = levels_of(demand.weight for demand in problem.demands)
        self.most = [level.total for level in self.levels]
        self.proven: list[list[_Proven]] = [[] for _ in self.levels]

    def bound(self, costs: tuple[int, ...], why: str) -> Bound:
        """Return what is proven by now."""
        return Bound(costs, why, self.levels, [tuple(each) for each in self.proven])

    def climb(self, rung: _Rung) -> Iterator[Sequence[int]]:
        """What is placed of each level at most, in units, level by level."""
        guide = (
            Guide(self.market, regions_of(self.market, rung.regions), rung.lots)
            if rung.regions
            else None
        )
        for number, proven in enumerate(self.proven):
            found = self._prove(number, guide)
            if found is not None:
                proven.append(found)
            # What is less in one level may leave room for more below.
            for place, level in enumerate(self.levels):
                before = self.most[:place]
                self.most[place] = min(
                    [level.total, *[each.most(before) for each in self.proven[place]]]
                )
            yield self.most

    def _prove(self, number: int, guide: Guide | None) -> _Proven | None:
        """A bound on a level and those before it; None if there is no time.

        Each level counts as much as makes the bound sharp, given that of those before it all that is possible is
        placed. It holds for whatever else is placed, too.
        """
        weights = [kind.weight for kind in self.market.wanted.kinds]
        counts = [list(map(level.of, weights)) for level in self.levels[: number + 1]]
        factors = [
            float(min(_RATIO ** (number - place), _HIGHEST))
            for place in range(number + 1)
        ]
        rows = np.zeros(len(self.market.offers.rows))
        if guide:
            caps = [
                KnownLimit(each, most)
                for each, most in zip(counts, self.most[:number], strict=False)
            ]
            found = guide.solve(_weighted(factors, counts), caps, self.stop)
            if found is None:
                return None
            rows = found.rows
            factors = [
                *np.maximum(0.0, np.array(factors[:number]) - found.caps).tolist(),
                1.0,
            ]
        # What a level counts in floats is a guess; as whole numbers, the bound holds for exactly these.
        largest = sum(
            factor * max(each, default=0)
            for factor, each in zip(factors, counts, strict=True)
        )
        scale = 2.0 ** int(log2(_LARGEST / max(1.0, largest)))
        whole = [round(factor * scale) for factor in factors]
        bound = self.market.bound(
            self.market.affordable(rows * scale), _weighted(whole, counts)
        )
        return _Proven(whole, bound)


def _weighted(factors: Sequence[N], counts: Sequence[Sequence[int]]) -> list[N]:
    """By kind, what it counts in all levels together."""
    return [sum(map(mul, factors, each)) for each in zip(*counts, strict=True)]
