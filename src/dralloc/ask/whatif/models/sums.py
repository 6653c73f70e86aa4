"""The best sum of vectors, where so many are taken of each of several sets.

Of set *g* with vectors *p*, ``times[g]`` are taken, each as often as one likes::

    maximise sum_i worth[i] * v[i]    with    v = sum_g sum_p vector[g, p] * taken[g, p],
                                              sum_p taken[g, p] = times[g],  v[i] >= least[i]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import mul

from ortools.sat.python import cp_model

from dralloc.objects.choices import Options
from dralloc.solve.optimum.rows import Term
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Vector", "best_sum"]

Vector = tuple[int, ...]


def best_sum(
    sets: Mapping[tuple[Vector, ...], int],
    least: Vector,
    worth: Sequence[int],
    options: Options,
) -> tuple[Vector | None, bool]:
    """Find the sum of the most worth that is at least so large in every place.

    Parameters
    ----------
    sets
        How many vectors are taken in all of each set.
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
    lost: list[Term] = []
    most = 0
    for place, (own, times) in enumerate(sets.items()):
        taken = [
            model.new_int_var(0, times, f"taken[{place},{number}]")
            for number in range(len(own))
        ]
        model.add(cp_model.LinearExpr.sum(taken) == times)
        worths = [sum(map(mul, vector, worth)) for vector in own]
        lost += [
            (variable, max(worths) - one)
            for variable, one in zip(taken, worths, strict=True)
        ]
        most += times * (max(worths) - min(worths))
    vectors = [vector for own in sets for vector in own]
    variables = [variable for variable, _ in lost]
    short = model.new_bool_var("short")
    for place, low in enumerate(least):
        found = cp_model.LinearExpr.weighted_sum(
            variables, [vector[place] for vector in vectors]
        )
        model.add(found >= low).only_enforce_if(~short)
    cost = [(short, most + 1), *lost]
    outcome = minimise(model, cost, options, Stop.after(options.time_limit))
    if outcome.values is None:
        return None, False
    values = outcome.values
    if values[short.index]:
        return None, outcome.bound > most
    numbers = [values[variable.index] for variable in variables]
    total = tuple(
        sum(map(mul, numbers, column)) for column in zip(*vectors, strict=True)
    ) or (0,) * len(least)
    return total, outcome.bound == sum(
        factor * values[variable.index] for variable, factor in cost
    )
