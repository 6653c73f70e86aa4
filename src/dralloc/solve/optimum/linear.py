"""The linear relaxation of a model: values and shadow prices, in floats, as a guide and never as a proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from threading import Thread
from typing import Final, NamedTuple

from ortools.linear_solver.python import model_builder
from ortools.sat.python import cp_model

from dralloc.solve.optimum.rows import Term
from dralloc.solve.optimum.stopping import Stop

__all__ = ["LinearSolution", "solve_linear"]

_LISTEN: Final = 0.05
"""Seconds until it is asked again whether to stop."""

_ENDLESS: Final = 2**62
"""Rows without an end have the ends of int64, or close to them."""


class LinearSolution(NamedTuple):
    """The value of each variable, and the shadow price of each row."""

    values: Sequence[float]
    duals: Sequence[float]


def solve_linear(
    cp: cp_model.CpModel, cost: Sequence[Term], stop: Stop
) -> LinearSolution | None:
    """Minimise a cost over a model of linear rows, with fractions allowed. None if it has to stop before the end.

    Raises
    ------
    Stopped
        It is time to stop before the solver has begun.
    """
    model = model_builder.Model()  # type: ignore[no-untyped-call]
    variables = [
        model.new_num_var(*_range(each.domain), "") for each in cp.proto.variables
    ]
    rows = []
    for each in stop.each(cp.proto.constraints):
        linear = each.linear
        terms = model_builder.LinearExpr.weighted_sum(
            [variables[place] for place in linear.vars], list(linear.coeffs)
        )
        rows.append(model.add_linear_constraint(terms, *_range(linear.domain)))
    model.minimize(
        model_builder.LinearExpr.weighted_sum(
            [variables[variable.index] for variable, _ in cost],
            [float(factor) for _, factor in cost],
        )
    )
    solver = model_builder.Solver("GLOP")
    if not _is_solved(solver, model, stop):
        return None
    return LinearSolution(
        [solver.value(variable) for variable in variables],
        [solver.dual_value(row) for row in rows],
    )


def _is_solved(
    solver: model_builder.Solver, model: model_builder.Model, stop: Stop
) -> bool:
    """Solve in a thread of its own, so that a Ctrl-C is heard here."""
    statuses: list[model_builder.SolveStatus] = []
    thread = Thread(
        target=lambda: statuses.append(solver.solve(model)), name="glop", daemon=True
    )
    thread.start()
    while thread.is_alive():
        thread.join(_LISTEN)
        if stop.reached():
            solver.stop_search()  # type: ignore[no-untyped-call]
    return statuses == [model_builder.SolveStatus.OPTIMAL]


def _range(domain: Iterable[int]) -> tuple[float, float]:
    """Its least and greatest value; infinite at the ends of int64."""
    low, *_, high = domain
    return (low if low > -_ENDLESS else -inf), (high if high < _ENDLESS else inf)
