"""What nodes cost at least that hold everything, of types that can be had any number of times.

Let every row of a node have a price of 0 or more, and let a demand be worth what it pays on the node where it pays the
least. Who is on a node pays for all that it draws there, and that is at most what all rows of the node cost. So as many
nodes as hold everything are worth as much as all demands together; and one of a type is worth what its rows cost. The
cheapest way to be worth that much is by nodes of the type that is worth the most for its cost (Farley, Operations
Research 38, 1990).

The prices are a guess in floats, by the linear program in which nodes and demands can be had in fractions
(`dralloc.solve.optimum.relax.guide`); what they prove is a sum in exact integers, as in
`dralloc.solve.optimum.relax.prices`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Final

import numpy as np

from dralloc.problem import Problem
from dralloc.solve.optimum.relax.guide import Guide
from dralloc.solve.optimum.relax.halves import with_halves
from dralloc.solve.optimum.relax.market import market_of
from dralloc.solve.optimum.relax.prices import Prices
from dralloc.solve.optimum.stopping import Stop

__all__ = ["RelaxedCover", "relaxed_cover"]

_LOTS: Final = 8
"""Into so many lots demands of a kind are divided."""

_SCALE: Final = 2.0**40
"""What a cost of 1 is as a price, at most."""


@dataclass(frozen=True, slots=True)
class RelaxedCover:
    """Node types that hold everything in fractions.

    Parameters
    ----------
    numbers
        By node type, about how many of it are needed.
    worth
        By demand, what it pays where it pays the least: a measure of its size.
    bound
        Nothing cheaper holds everything.
    """

    numbers: tuple[float, ...]
    worth: tuple[int, ...]
    bound: int


def relaxed_cover(
    problem: Problem, costs: Sequence[int], stop: Stop
) -> RelaxedCover | None:
    """Find the cheapest nodes in fractions, and prove a bound; None if there is no time for the linear program.

    Parameters
    ----------
    problem
        One node of each type with nothing in use, and all demands, none of which has rules about others.
    costs
        By node, what one of its type costs.

    Raises
    ------
    Stopped
        It is time to stop before there is a linear program.
    """
    market = market_of(problem, stop, with_halves)
    guide = Guide(market, np.arange(len(problem.nodes)), _LOTS)
    cover = guide.cover(costs, stop)
    if cover is None:
        return None
    node_counts, rows = cover
    prices = Prices(market, rows * (_SCALE / max(costs)))
    worth = [paid or 0 for paid in prices.least_paid()]
    values = prices.node_values()
    richest = max(
        (
            Fraction(value, cost)
            for value, cost in zip(values, costs, strict=True)
        ),
        default=Fraction(0),
    )
    # No type is worth more for its cost than the richest one, and any sum of costs is a multiple of their unit.
    unit = gcd(*costs)
    bound = (
        -(-Fraction(sum(worth)) // (richest * unit)) * unit if richest else 0
    )
    return RelaxedCover(tuple(node_counts.tolist()), tuple(worth), bound)
