"""Integer models that choose how often to take each of some things.

Which fixed layout each unit gets, which columns cover needs at the least cost, and the best sum of vectors. They are
built with OR-Tools; none of its types comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import mul
from typing import Final

from dralloc.objects.choices import Options
from dralloc.objects.errors import ModelError
from dralloc.solve.optimum.rows import Term
from dralloc.solve.optimum.search import minimise, solve_linear
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "Choice",
    "Cover",
    "CoverColumn",
    "FractionalCover",
    "UnitLayouts",
    "Vector",
    "best_sum",
    "choose_layouts",
    "cover",
    "fractional_cover",
]

# ----------------------------------------------------------------------------
# Which fixed layout each unit gets, so that the most demands are served.
#
# For classes *c* of equal units with layouts *l*, each with ``offers[c, l][t]`` parts of type *t*, and demands *w* that
# parts of some types serve::
#
#     sum_l times[c, l] = size[c]
#     sum_w served[w, t] <= sum_{c, l} offers[c, l][t] * times[c, l]
#     sum_t served[w, t] + missed[w] = need[w]
#     minimise sum_w missed[w]
#
# With a limit on how many layouts there may be in a class, ``times[c, l] <= size[c] *
# used[c, l]`` and ``sum_l used[c, l] <= limit``.


@dataclass(frozen=True, slots=True)
class UnitLayouts:
    """So many equal units, and the layouts that each can have: the number of parts by type."""

    size: int
    layouts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The best layouts.

    Parameters
    ----------
    times
        By class and layout, how many units get it.
    served
        By demand and type, how many parts serve it.
    bound
        No layouts serve more.
    """

    times: tuple[tuple[int, ...], ...]
    served: tuple[tuple[int, ...], ...]
    bound: int


def choose_layouts(
    units: Sequence[UnitLayouts],
    types: Sequence[frozenset[int]],
    needs: Sequence[int],
    limit: int | None = None,
    options: Options | None = None,
) -> Choice | None:
    """Choose layouts for all units.

    Parameters
    ----------
    types
        For each type of part, which demands it serves.
    needs
        How many there are of each demand.
    limit
        How many different layouts the units of a class may have; None for any number.

    Returns
    -------
    None if the time limit leaves no answer.
    """
    model = cp_model.CpModel()
    times: list[list[cp_model.IntVar]] = []
    for class_index, unit in enumerate(units):
        counts = [
            model.new_int_var(0, unit.size, f"times[{class_index},{layout}]")
            for layout in range(len(unit.layouts))
        ]
        times.append(counts)
    for unit, counts in zip(units, times, strict=True):
        model.add(cp_model.LinearExpr.sum(counts) == unit.size)
        if limit is not None and limit < len(counts):
            _limit(model, counts, unit.size, limit)
    served: list[list[cp_model.IntVar]] = []
    for demand, need in enumerate(needs):
        gets = [
            model.new_int_var(
                0, need if demand in serves else 0, f"served[{demand},{type_}]"
            )
            for type_, serves in enumerate(types)
        ]
        served.append(gets)
    missed = [
        model.new_int_var(0, need, f"missed[{demand}]")
        for demand, need in enumerate(needs)
    ]
    for need, gets, misses in zip(needs, served, missed, strict=True):
        model.add(cp_model.LinearExpr.sum([*gets, misses]) == need)
    # Parts of one type are worth the same, whatever unit they are of: only their sum over all classes is limited.
    variables = list(chain.from_iterable(times))
    layouts = list(chain.from_iterable(unit.layouts for unit in units))
    for type_ in range(len(types)):
        offered = [layout[type_] for layout in layouts]
        serving = [gets[type_] for gets in served]
        model.add(
            cp_model.LinearExpr.weighted_sum(variables, offered)
            >= cp_model.LinearExpr.sum(serving)
        )
    chosen = options or Options()
    outcome = minimise(
        model,
        [(misses, 1) for misses in missed],
        chosen,
        Stop.after(chosen.time_limit),
    )
    if outcome.values is None:
        return None
    values = outcome.values

    def numbers_of(row: Sequence[cp_model.IntVar]) -> tuple[int, ...]:
        return tuple(values[variable.index] for variable in row)

    # The bound is one of what is missed: no layouts serve more than the rest.
    return Choice(
        tuple(map(numbers_of, times)),
        tuple(map(numbers_of, served)),
        sum(needs) - outcome.bound,
    )


def _limit(
    model: cp_model.CpModel,
    counts: Sequence[cp_model.IntVar],
    size: int,
    limit: int,
) -> None:
    used = [model.new_bool_var(f"used[{count}]") for count in counts]
    for count, is_used in zip(counts, used, strict=True):
        model.add(count <= size * is_used)
    model.add(cp_model.LinearExpr.sum(used) <= limit)


# ----------------------------------------------------------------------------
# The cheapest way to cover needs: how often to take each of some columns.
#
# For columns *p* that cost ``cost[p]`` and bring ``brings[p][i]`` of each need *i*::
#
#     minimise sum_p cost[p] * times[p]    with    sum_p brings[p][i] * times[p] >= need[i]
#
# `cover` solves that in integers, and `fractional_cover` its linear relaxation for the dual
# values, from which a bound follows even where not all columns are known (Farley,
# Operations Research 38, 1990).

_SCALE: Final = 1_000_000
"""Dual values are integers in units of one of so many parts of a cost of 1."""


@dataclass(frozen=True, slots=True)
class CoverColumn:
    """A column of the cover that can be chosen any number of times: its positive cost, and its amount of each need."""

    cost: int
    brings: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cover:
    """How often each column is taken, what that costs, and what no answer with these columns can be cheaper than."""

    times: tuple[int, ...]
    cost: int
    bound: int


def cover(
    columns: Sequence[CoverColumn],
    needs: Sequence[int],
    options: Options | None = None,
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
    for need_index, need in enumerate(needs):
        if need and not any(column.brings[need_index] for column in columns):
            return None
    model, terms = _model(columns, needs)
    chosen = options or Options()
    outcome = minimise(model, terms, chosen, Stop.after(chosen.time_limit))
    if outcome.values is None:
        return None
    times = tuple(outcome.values[variable.index] for variable, _ in terms)
    cost = sum(
        column.cost * count
        for column, count in zip(columns, times, strict=True)
    )
    return Cover(times, cost, outcome.bound)


@dataclass(frozen=True, slots=True)
class FractionalCover:
    """The relaxation of a cover: how often each column is taken, in fractions, and what one more of each need costs.

    The prices are in units of ``1 / _SCALE`` of a cost of 1, rounded down: a guess, not a bound.
    """

    times: Sequence[float]
    prices: tuple[int, ...]


def fractional_cover(
    columns: Sequence[CoverColumn], needs: Sequence[int]
) -> FractionalCover:
    """Solve the relaxation.

    Raises
    ------
    ModelError
        Some need is brought by no column.
    """
    relaxed = solve_linear(*_model(columns, needs), Stop())
    if relaxed is None:
        raise ModelError("cover: no choice of columns brings what is needed")
    prices = (max(0, int(price * _SCALE)) for price in relaxed.duals)
    return FractionalCover(relaxed.values, tuple(prices))


def _model(
    columns: Sequence[CoverColumn], needs: Sequence[int]
) -> tuple[cp_model.CpModel, list[Term]]:
    """The rows, one for each need, and the cost."""
    model = cp_model.CpModel()
    times = [
        model.new_int_var(
            0, _most(cover_column, needs), f"times[{column_index}]"
        )
        for column_index, cover_column in enumerate(columns)
    ]
    for need_index, need in enumerate(needs):
        brought = [column.brings[need_index] for column in columns]
        model.add(cp_model.LinearExpr.weighted_sum(times, brought) >= need)
    return model, [
        (variable, column.cost)
        for variable, column in zip(times, columns, strict=True)
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


# ----------------------------------------------------------------------------
# The best sum of vectors, where so many are taken of each of several sets.
#
# Of set *g* with vectors *p*, ``times[g]`` are taken, each as often as one likes::
#
#     maximise sum_i worth[i] * v[i]    with    v = sum_g sum_p vector[g, p] * taken[g, p],
#                                               sum_p taken[g, p] = times[g],  v[i] >= least[i]

Vector = tuple[int, ...]


def best_sum(
    sets: Mapping[tuple[Vector, ...], int],
    least: Vector,
    worth: Sequence[int],
    options: Options,
) -> tuple[Vector | None, bool]:
    """Find the sum of the most worth that is at least so large on every axis.

    Parameters
    ----------
    sets
        How many vectors are taken in all of each set.
    worth
        What one more on each axis is worth: more than 0.

    Returns
    -------
    The sum, None if there is none; and whether that is proven.

    Raises
    ------
    ModelError
        What all is worth is beyond what the solver can tell apart.
    """
    model = cp_model.CpModel()
    lost: list[Term] = []
    max_loss = 0
    for set_index, (vectors_of_set, times) in enumerate(sets.items()):
        numbers_taken = [
            model.new_int_var(0, times, f"taken[{set_index},{vector_index}]")
            for vector_index in range(len(vectors_of_set))
        ]
        model.add(cp_model.LinearExpr.sum(numbers_taken) == times)
        worths = [sum(map(mul, vector, worth)) for vector in vectors_of_set]
        lost += [
            (variable, max(worths) - vector_worth)
            for variable, vector_worth in zip(
                numbers_taken, worths, strict=True
            )
        ]
        max_loss += times * (max(worths) - min(worths))
    vectors = list(chain.from_iterable(sets))
    variables = [variable for variable, _ in lost]
    # Falling short costs more than anything that can be lost: it is only chosen where no sum is so large.
    short = model.new_bool_var("short")
    for axis, low in enumerate(least):
        total_there = cp_model.LinearExpr.weighted_sum(
            variables, [vector[axis] for vector in vectors]
        )
        model.add(total_there >= low).only_enforce_if(~short)
    cost = [(short, max_loss + 1), *lost]
    outcome = minimise(model, cost, options, Stop.after(options.time_limit))
    if outcome.values is None:
        return None, False
    values = outcome.values
    if values[short.index]:
        return None, outcome.bound > max_loss
    counts = [values[variable.index] for variable in variables]
    total = tuple(
        sum(map(mul, counts, column)) for column in zip(*vectors, strict=True)
    ) or (0,) * len(least)
    return total, outcome.bound == sum(
        factor * values[variable.index] for variable, factor in cost
    )
