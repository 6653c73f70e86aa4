"""The best sum of vectors, where so many are taken of each of several sets.

Of set *g* with vectors *p*, ``times[g]`` are taken, each as often as one likes::

    maximise sum_i worth[i] * v[i]    with    v = sum_g sum_p vector[g, p] * taken[g, p],
                                              sum_p taken[g, p] = times[g],  v[i] >= least[i]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.options import Options
from dralloc.solvers.cpsat.rows import Term
from dralloc.solvers.cpsat.search import minimise
from dralloc.solvers.cpsat.stopping import Stop

__all__ = ["Summands", "best_sum"]

Vector = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Summands:
    """A set of vectors, of which so many are taken in all."""

    times: int
    vectors: tuple[Vector, ...]


def best_sum(
    sets: Sequence[Summands], least: Vector, worth: Sequence[int], options: Options
) -> tuple[Vector | None, bool]:
    """Find the sum of the most worth that is at least so large in every place.

    Parameters
    ----------
    worth
        What one more in each place is worth: more than 0.

    Returns
    -------
    The sum, None if there is none; and whether that is proven.

    Raises
    ------
    ModelError
        What all is worth is beyond what the solver can tell apart.
    """
    model = cp_model.CpModel()
    taken = [
        [model.new_int_var(0, each.times, f"taken[{place},{vector}]") for vector in range(len(each.vectors))]
        for place, each in enumerate(sets)
    ]
    for row, each in zip(taken, sets, strict=True):
        model.add(cp_model.LinearExpr.sum(row) == each.times)
    vectors = [vector for each in sets for vector in each.vectors]
    variables = [variable for row in taken for variable in row]
    short = model.new_bool_var("short")
    for place, low in enumerate(least):
        found = cp_model.LinearExpr.weighted_sum(variables, [vector[place] for vector in vectors])
        model.add(found >= low).only_enforce_if(~short)
    lost = _lost(sets, worth, taken)
    most = sum(max((cost for _, cost in terms), default=0) * each.times for terms, each in zip(lost, sets, strict=True))
    cost = [(short, most + 1), *(term for terms in lost for term in terms)]
    outcome = minimise(model, cost, options, Stop.after(options.time_limit))
    if outcome.values is None:
        return None, False
    values = outcome.values
    if values[short.index]:
        return None, outcome.bound > most
    numbers = [values[variable.index] for variable in variables]
    total = (0,) * len(least)
    for vector, times in zip(vectors, numbers, strict=True):
        total = tuple(before + times * each for before, each in zip(total, vector, strict=True))
    return total, outcome.bound == sum(factor * values[variable.index] for variable, factor in cost)


def _lost(
    sets: Sequence[Summands], worth: Sequence[int], taken: Sequence[Sequence[cp_model.IntVar]]
) -> list[list[Term]]:
    """By set, how much less each vector is worth than the best one."""
    found = []
    for each, row in zip(sets, taken, strict=True):
        values = [sum(number * value for number, value in zip(vector, worth, strict=True)) for vector in each.vectors]
        found.append([(variable, max(values) - value) for variable, value in zip(row, values, strict=True)])
    return found
