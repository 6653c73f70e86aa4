"""Runs of the solvers: CP-SAT, watched and stopped; and linear relaxations.

What CP-SAT proves is proven. A linear relaxation gives values and shadow prices in floats, as a guide and never as a
proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, gcd, inf, isfinite
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, NamedTuple

from dralloc.objects.choices import Options
from dralloc.objects.errors import ModelError
from dralloc.solve.optimum.rows import Term
from dralloc.solve.optimum.solvers import cp_model, model_builder
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "LinearSolution",
    "Watch",
    "as_few",
    "as_one",
    "minimise",
    "most_of",
    "row_of_better",
    "solve_linear",
]

# ----------------------------------------------------------------------------
# One run of CP-SAT that can be watched and stopped.

_EXACT_FLOAT: Final = 2**53
"""CP-SAT reports objective values as floats, which are exact up to here."""

_TURNS: Final = 2
"""Workers that take turns with different strategies."""

_LISTEN_SECONDS: Final = 0.1
"""Seconds until it is asked again whether to stop."""

Watch = Callable[[int, int], None]
"""Called with the best cost so far and its lower bound."""


@dataclass(frozen=True, slots=True)
class SolverOutcome:
    """The outcome of a run: the values of all variables in the best answer, if any, and a lower bound of the cost.

    ``proven``: whether no answer costs less; without values, that there is none.
    """

    values: Sequence[int] | None
    bound: int
    proven: bool = False

    @property
    def is_impossible(self) -> bool:
        """Whether it is proven that there is no answer."""
        return self.proven and self.values is None


def minimise(  # noqa: PLR0913 - what to solve, how, and for how long
    cp: cp_model.CpModel,
    terms: Sequence[Term],
    options: Options,
    stop: Stop,
    watch: Watch | None = None,
    *,
    presolve: bool = True,
    hint_is_answer: bool = True,
) -> SolverOutcome:
    """Minimise the cost, starting from the model's hint. The objective stays in the model.

    Parameters
    ----------
    presolve
        Whether the solver simplifies the model first, which pays for large ones.
    hint_is_answer
        Whether the hint keeps all rules of the model; if not, there may be no answer.
    stop
        When to stop, with what there is by then; nothing if it is reached already.

    Raises
    ------
    ModelError
        The cost or the model does not fit the solver's int64, or there is no answer although the hint is one.
    """
    unit = gcd(*(coefficient for _, coefficient in terms)) or 1
    if most_of(terms) // unit > _EXACT_FLOAT:
        raise ModelError(
            "weights of the demands: their sum after removing common factors is beyond 2**53"
        )
    literals = [literal for literal, _ in terms]
    cp.minimize(
        cp_model.LinearExpr.weighted_sum(
            literals, [coefficient // unit for _, coefficient in terms]
        )
    )
    outcome = _run(cp, options, stop, unit, watch, presolve=presolve)
    if not outcome.proven and stop.effort == inf and not stop.reached():
        # Several strategies in turn come to an end where a single one gives up.
        in_turn = replace(options, workers=max(_TURNS, options.workers))
        second = _run(cp, in_turn, stop, unit, watch)
        outcome = _better(terms, outcome, second)
    if hint_is_answer and outcome.is_impossible:
        raise ModelError(
            "no answer is as good as the one to start from: the hint breaks a rule"
        )
    return outcome


def _better(
    terms: Sequence[Term], first: SolverOutcome, second: SolverOutcome
) -> SolverOutcome:
    """Return what two runs have come to together; the first has proven nothing. The second may end early."""
    if second.proven:
        return second
    values = second.values
    if first.values is not None and (
        values is None or _cost(terms, first.values) < _cost(terms, values)
    ):
        values = first.values
    return SolverOutcome(values, max(first.bound, second.bound))


def _cost(terms: Sequence[Term], values: Sequence[int]) -> int:
    return sum(
        coefficient * values[variable.index] for variable, coefficient in terms
    )


def _run(  # noqa: PLR0913 - as `minimise`
    cp: cp_model.CpModel,
    options: Options,
    stop: Stop,
    unit: int,
    watch: Watch | None,
    *,
    presolve: bool = True,
) -> SolverOutcome:
    solver = _solver(options, stop)
    solver.parameters.cp_model_presolve = presolve
    if stop.reached():
        return SolverOutcome(None, 0)
    run = _SolverRun(cp, solver, unit)
    run.wait(stop, watch)
    return run.outcome()


def as_one(tiers: Sequence[Sequence[Term]]) -> Sequence[Term]:
    """Tiers as one cost: nothing in the later ones is worth an earlier one. Only as many as numbers allow."""
    return as_few(tiers)[0]


def as_few(tiers: Sequence[Sequence[Term]]) -> list[Sequence[Term]]:
    """Tiers as few costs, one after the other: in each as many tiers as numbers allow, as `as_one`."""
    first, *later_tiers = tiers
    costs = [first]
    for tier in later_tiers:
        small, _ = _in_units(tier)
        combined = _combined(costs[-1], small)
        if most_of(combined) > _EXACT_FLOAT:
            costs.append(small)
        else:
            costs[-1] = combined
    return costs


def row_of_better(
    tiers: Sequence[Sequence[Term]], costs: Sequence[int]
) -> tuple[Sequence[Term], int]:
    """A row ``sum(coefficient * variable) <= limit`` for answers that cost less in the first tier that differs.

    Where numbers do not allow all tiers in one row, the row also lets those in that cost as much in those that are.

    Parameters
    ----------
    tiers
        Most important first.
    costs
        Of the answer that others have to be better than, by tier.

    Returns
    -------
    The row, and its limit; below 0 if there is nothing better.
    """
    row: Sequence[Term] = ()
    limit = 0
    for tier, cost in zip(tiers, costs, strict=True):
        small, unit = _in_units(tier)
        longer = _combined(row, small)
        if most_of(longer) > _EXACT_FLOAT:
            return row, limit
        row, limit = longer, limit * (1 + most_of(small)) + cost // unit
    return row, limit - 1


def _in_units(tier: Sequence[Term]) -> tuple[list[Term], int]:
    """A tier in the unit that all coefficients have in common, and the unit: amounts in nanos become small."""
    unit = gcd(*(cost for _, cost in tier)) or 1
    return [(variable, cost // unit) for variable, cost in tier], unit


def _combined(upper: Sequence[Term], lower: Sequence[Term]) -> list[Term]:
    """Two tiers as one: one unit of the upper tier outweighs all of the lower."""
    factor = 1 + most_of(lower)
    scaled = [(variable, cost * factor) for variable, cost in upper]
    return [*scaled, *lower]


def most_of(terms: Sequence[Term]) -> int:
    """The most that a cost can be."""
    return sum(
        coefficient * variable.domain.max() for variable, coefficient in terms
    )


def _solver(options: Options, stop: Stop) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.random_seed = options.seed
    parameters.num_workers = options.workers
    parameters.interleave_search = options.workers > 1
    parameters.linearization_level = 2
    parameters.catch_sigint_signal = False
    if (seconds := stop.seconds()) < inf:
        parameters.max_time_in_seconds = seconds
    if stop.effort < inf:
        parameters.max_deterministic_time = stop.effort
    return solver


@cache
def _listener_class() -> Callable[
    [Callable[[float, float], None]], cp_model.CpSolverSolutionCallback
]:
    class Listener(cp_model.CpSolverSolutionCallback):
        """Hears of each answer that is found, with its cost and the bound at that time."""

        def __init__(self, tell: Callable[[float, float], None]) -> None:
            super().__init__()
            self._tell = tell

        def on_solution_callback(self) -> None:
            self._tell(self.objective_value, self.best_objective_bound)

    return Listener


class _SolverRun:
    """A run in a thread of its own, so that the caller's thread can be interrupted and can hear of progress."""

    def __init__(
        self, cp: cp_model.CpModel, solver: cp_model.CpSolver, unit: int
    ) -> None:
        self.cp = cp
        self.solver = solver
        self.unit = unit
        self.failure: BaseException | None = None
        self.events: SimpleQueue[tuple[int, int] | None] = SimpleQueue()
        self.thread = Thread(target=self._solve, name="cp-sat", daemon=True)

    def _tell(self, best: float, bound: float) -> None:
        self.events.put(
            (round(best) * self.unit, _lower_bound(bound) * self.unit)
        )

    def _solve(self) -> None:
        try:
            self.solver.solve(self.cp, _listener_class()(self._tell))
        except BaseException as failure:
            self.failure = failure
        finally:
            self.events.put(None)

    def wait(self, stop: Stop, watch: Watch | None) -> None:
        """Run to the end, or until it is time to stop."""
        self.thread.start()
        try:
            for event in self._news(stop):
                if watch:
                    watch(*event)
        except KeyboardInterrupt:
            if stop.cancelled:
                raise
            stop.cancelled.cancel()
        finally:
            while self.thread.is_alive():
                self.solver.stop_search()
                self.thread.join(0.05)
            if self.failure:
                raise self.failure

    def _news(self, stop: Stop) -> Iterator[tuple[int, int]]:
        """Yield better answers and bounds, until the end or until it is time to stop."""
        while not stop.reached():
            with suppress(Empty):
                event = self.events.get(timeout=_LISTEN_SECONDS)
                if event is None:
                    return
                yield event

    def outcome(self) -> SolverOutcome:
        """Return the outcome of the search."""
        response = self.solver.response_proto
        if response.status == cp_model.MODEL_INVALID:
            raise ModelError(
                f"the solver rejects the model: {self.cp.validate()}"
            )
        if response.status == cp_model.INFEASIBLE:
            return SolverOutcome(None, 0, proven=True)
        bound = _lower_bound(response.best_objective_bound)
        if response.status == cp_model.UNKNOWN:
            return SolverOutcome(None, bound * self.unit)
        proven = response.status == cp_model.OPTIMAL
        best = round(response.objective_value)
        if not proven:
            best = min(bound, best)
        return SolverOutcome(list(response.solution), best * self.unit, proven)


def _lower_bound(value: float) -> int:
    """The integer below which no cost can be, from a bound that is a float."""
    if not isfinite(value) or value <= 0:
        return 0
    return max(0, ceil(value - 1e-6 - value * 2**-50))


# ----------------------------------------------------------------------------
# The linear relaxation of a model: values and shadow prices, in floats, as a guide and
# never as a proof.

_LINEAR_LISTEN_SECONDS: Final = 0.05
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
        model.new_num_var(*_range(variable.domain), "")
        for variable in cp.proto.variables
    ]
    rows = []
    for constraint in stop.each(cp.proto.constraints):
        linear = constraint.linear
        terms = model_builder.LinearExpr.weighted_sum(
            [variables[index] for index in linear.vars], list(linear.coeffs)
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
        target=lambda: statuses.append(solver.solve(model)),
        name="glop",
        daemon=True,
    )
    thread.start()
    while thread.is_alive():
        thread.join(_LINEAR_LISTEN_SECONDS)
        if stop.reached():
            solver.stop_search()  # type: ignore[no-untyped-call]
    return statuses == [model_builder.SolveStatus.OPTIMAL]


def _range(domain: Iterable[int]) -> tuple[float, float]:
    """Its least and greatest value; infinite at the ends of int64."""
    low, *_, high = domain
    return (low if low > -_ENDLESS else -inf), (
        high if high < _ENDLESS else inf
    )
