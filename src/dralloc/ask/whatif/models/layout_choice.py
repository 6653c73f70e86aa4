"""Which fixed layout each unit gets, so that the most demands are served.

For classes *c* of equal units with layouts *l*, each with ``offers[c, l][t]`` parts of type *t*, and demands *w* that
parts of some types serve::

    sum_l times[c, l] = size[c]
    sum_w served[w, t] <= sum_{c, l} offers[c, l][t] * times[c, l]
    sum_t served[w, t] + missed[w] = need[w]
    minimise sum_w missed[w]

With a limit on how many layouts there may be in a class, ``times[c, l] <= size[c] * used[c, l]`` and
``sum_l used[c, l] <= limit``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from dralloc.objects.choices import Options
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Choice", "UnitLayouts", "choose_layouts"]


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
    times = [
        [
            model.new_int_var(0, each.size, f"times[{place},{layout}]")
            for layout in range(len(each.layouts))
        ]
        for place, each in enumerate(units)
    ]
    for each, numbers in zip(units, times, strict=True):
        model.add(cp_model.LinearExpr.sum(numbers) == each.size)
        if limit is not None and limit < len(numbers):
            _limit(model, numbers, each.size, limit)
    served = [
        [
            model.new_int_var(
                0, need if demand in serves else 0, f"served[{demand},{place}]"
            )
            for place, serves in enumerate(types)
        ]
        for demand, need in enumerate(needs)
    ]
    missed = [
        model.new_int_var(0, need, f"missed[{demand}]")
        for demand, need in enumerate(needs)
    ]
    for need, gets, misses in zip(needs, served, missed, strict=True):
        model.add(cp_model.LinearExpr.sum([*gets, misses]) == need)
    flat = [
        (variable, offers)
        for each, row in zip(units, times, strict=True)
        for variable, offers in zip(row, each.layouts, strict=True)
    ]
    for place in range(len(types)):
        offered = [offers[place] for _, offers in flat]
        taken = [gets[place] for gets in served]
        model.add(
            cp_model.LinearExpr.weighted_sum(
                [variable for variable, _ in flat], offered
            )
            >= cp_model.LinearExpr.sum(taken)
        )
    chosen = options or Options()
    outcome = minimise(
        model, [(misses, 1) for misses in missed], chosen, Stop.after(chosen.time_limit)
    )
    if outcome.values is None:
        return None
    values = outcome.values
    return Choice(
        tuple(tuple(values[one.index] for one in row) for row in times),
        tuple(tuple(values[one.index] for one in row) for row in served),
        sum(needs) - outcome.bound,
    )


def _limit(
    model: cp_model.CpModel, numbers: Sequence[cp_model.IntVar], size: int, limit: int
) -> None:
    used = [model.new_bool_var(f"used[{number}]") for number in numbers]
    for number, one in zip(numbers, used, strict=True):
        model.add(number <= size * one)
    model.add(cp_model.LinearExpr.sum(used) <= limit)
