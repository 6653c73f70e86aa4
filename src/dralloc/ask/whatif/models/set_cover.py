"""The cheapest way to cover needs: how often to take each of some columns.

For columns *p* that cost ``cost[p]`` and bring ``brings[p][i]`` of each need *i*::

    minimise sum_p cost[p] * times[p]    with    sum_p brings[p][i] * times[p] >= need[i]

`cover` solves that in integers, and `prices` its linear relaxation for the dual values, from which a bound follows even
where not all columns are known (Farley, Operations Research 38, 1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ortools.sat.python import cp_model

from dralloc.objects.choices import Options
from dralloc.objects.errors import ModelError
from dralloc.solve.optimum.linear import solve_linear
from dralloc.solve.optimum.rows import Term
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Cover", "CoverColumn", "cover", "prices"]

_SCALE: Final = 1_000_000
"""Dual values are integers in units of one of so many parts of a cost of 1."""


@dataclass(frozen=True, slots=True)
class CoverColumn:
    """What can be taken any number of times: a positive cost, and how much it brings of each need."""

    cost: int
    brings: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cover:
    """How often each column is taken, what that costs, and what no answer with these columns can be cheaper than."""

    times: tuple[int, ...]
    cost: int
    bound: int


def cover(
    columns: Sequence[CoverColumn], needs: Sequence[int], options: Options | None = None
) -> Cover | None:
    """Find the cheapest cover.

    Returns
    -------
    None if some need is brought by no column, or if the time limit leaves no answer.

    Raises
    ------
    ModelError
        The costs are beyond what the solver can tell apart.
    """
    if not all(
        any(column.brings[place] for column in columns)
        for place, need in enumerate(needs)
        if need
    ):
        return None
    model, terms = _model(columns, needs)
    chosen = options or Options()
    outcome = minimise(model, terms, chosen, Stop.after(chosen.time_limit))
    if outcome.values is None:
        return None
    found = tuple(outcome.values[variable.index] for variable, _ in terms)
    cost = sum(
        column.cost * number for column, number in zip(columns, found, strict=True)
    )
    return Cover(found, cost, outcome.bound)


def prices(columns: Sequence[CoverColumn], needs: Sequence[int]) -> tuple[int, ...]:
    """What one more of each need costs in the relaxation, rounded down to integers: a guess, whatever it is used for.

    Raises
    ------
    ModelError
        Some need is brought by no column.
    """
    found = solve_linear(*_model(columns, needs), Stop())
    if found is None:
        raise ModelError("cover: no choice of columns brings what is needed")
    return tuple(max(0, int(price * _SCALE)) for price in found.duals)


def _model(
    columns: Sequence[CoverColumn], needs: Sequence[int]
) -> tuple[cp_model.CpModel, list[Term]]:
    """The rows, one for each need, and the cost."""
    model = cp_model.CpModel()
    times = [
        model.new_int_var(0, _most(each, needs), f"times[{place}]")
        for place, each in enumerate(columns)
    ]
    for place, need in enumerate(needs):
        brought = [column.brings[place] for column in columns]
        model.add(cp_model.LinearExpr.weighted_sum(times, brought) >= need)
    return model, [
        (variable, column.cost) for variable, column in zip(times, columns, strict=True)
    ]


def _most(column: CoverColumn, needs: Sequence[int]) -> int:
    """No cheapest cover takes the column more often: the first so many bring all of what it brings."""
    return max(
        (
            -(-need // brought)
            for need, brought in zip(needs, column.brings, strict=True)
            if brought
        ),
        default=0,
    )
