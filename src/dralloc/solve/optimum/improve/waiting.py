"""Who waits for room, in an order in which those come first that most is to be gained by."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import exp
from typing import Final

import numpy as np

from dralloc.problem.indices import DemandIndex
from dralloc.problem.solution import APPRAISAL_UNIT, Appraisal
from dralloc.solve.optimum.improve.incumbent import Bonds, Incumbent

__all__ = ["WaitingBlocks", "weighted_order"]

_TOLERANCE: Final = 0.1
"""Who would pay so much more than it is worth, as a part of what a demand is worth, is drawn much less often."""

_LITTLE_WEIGHT: Final = 0.05
"""Nobody is drawn with less than this part of the average weight."""


def weighted_order(
    random: np.random.Generator, weights: Sequence[float]
) -> list[int]:
    """Return the places of weights in an order at random, in which larger weights tend to come first.

    As if one after the other was drawn, each in proportion to its weight (Efraimidis and Spirakis 2006). All have a
    little weight.
    """
    shares = np.array(weights, dtype=np.float64)
    shares += max(_LITTLE_WEIGHT * shares.mean(), 1.0) if len(shares) else 0
    arrivals = random.exponential(size=len(shares)) / shares
    return [int(index) for index in np.argsort(arrivals, kind="stable")]


class WaitingBlocks:
    """The blocks of which somebody waits, whom it is worth something to place.

    Parameters
    ----------
    blocks
        Those that may be freed.
    appraisal
        What demands are worth; None if that is not known.
    counts_weight_alone
        If not, demands without weight wait, too: they count in fairness, and as alternatives.
    """

    def __init__(  # noqa: PLR0913 - the answer, who may wait, and what counts
        self,
        incumbent: Incumbent,
        bonds: Bonds,
        blocks: Sequence[int],
        appraisal: Appraisal | None,
        random: np.random.Generator,
        *,
        counts_weight_alone: bool = True,
    ) -> None:
        self._incumbent = incumbent
        self._bonds = bonds
        self._counts_weight_alone = counts_weight_alone
        self._random = random
        self._promises = {
            block: self._promise(bonds.blocks[block], appraisal)
            for block in blocks
        }
        self._waiting = [block for block in blocks if self._waits(block)]

    def look(self, blocks: Collection[int]) -> None:
        """Look who of these blocks, which may have been exchanged, waits now."""
        looked_at = set(blocks)
        staying = [block for block in self._waiting if block not in looked_at]
        # Others leave their nodes beside them, too, of whom some can never come: nobody waits of those.
        known = (block for block in blocks if block in self._promises)
        self._waiting = [*staying, *filter(self._waits, known)]

    def _waits(self, block: int) -> bool:
        placed = self._incumbent.placements
        demands = self._incumbent.problem.demands
        return any(
            demand not in placed
            and (demands[demand].weight > 0 or not self._counts_weight_alone)
            for demand in self._bonds.blocks[block]
        )

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def at_random(self) -> list[int]:
        """Return all that wait, in any order."""
        order = self._random.permutation(len(self._waiting))
        return [self._waiting[index] for index in order.tolist()]

    def by_promise(self) -> list[int]:
        """Return all that wait, in an order in which those tend to come first that most is to be gained by."""
        promises = [self._promises[block] for block in self._waiting]
        order = weighted_order(self._random, promises)
        return [self._waiting[index] for index in order]

    def _promise(
        self, members: Sequence[DemandIndex], appraisal: Appraisal | None
    ) -> float:
        """Return how much is gained by placing a block: at the prices of the relaxation, or by weight."""
        if appraisal is None:
            demands = self._incumbent.problem.demands
            return float(max(demands[demand].weight for demand in members))
        profit = sum(appraisal.profits.get(demand, 0) for demand in members)
        # Whoever would pay a little more than it is worth may still fit exactly where others do not.
        tolerance = _TOLERANCE * APPRAISAL_UNIT
        return max(0, profit) + tolerance * exp(min(0, profit) / tolerance)
