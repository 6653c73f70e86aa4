"""The operators ``&&``, ``||``, ``?:``, ``==`` and ``!=``, as code that runs.

Each is compiled to a closure over a frame, which pays its cost as it runs (see `kubecel.code`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubecel.code import COST, Compiled, is_true, spend
from kubecel.cost import CONTAINERS, comparison, equality, inequality, tenths
from kubecel.values import EvalError, Frame, Run, Value, equal, no_overload

__all__ = ["all_of", "any_of", "conditional", "equals"]

_ONE_UNIT: Final = 10
"""Strings up to this length cost 1 to compare, unless they are empty."""


def all_of(terms: Sequence[Compiled]) -> Compiled:
    """``a && b && ...``: false wins over errors, errors win over true."""
    return _chain(terms, decisive=False)


def any_of(terms: Sequence[Compiled]) -> Compiled:
    """``a || b || ...``: true wins over errors, errors win over false."""
    return _chain(terms, decisive=True)


def _chain(terms: Sequence[Compiled], *, decisive: bool) -> Compiled:
    # The first term always runs: its cost is the chain's. The later ones pay for
    # themselves, as a decisive value ends the chain before them.
    first = terms[0].run
    later_terms = tuple((term.run, term.cost) for term in terms[1:])

    def run(frame: Frame) -> Value:
        error: EvalError | None = None
        try:
            value = first(frame)
            if value is decisive:
                return decisive
            if value is not True and value is not False:
                error = no_overload()
        except EvalError as failure:
            error = failure
        # An error waits, as a later term may still decide; if none does, the first error counts.
        for term, cost in later_terms:
            frame[COST] += cost
            try:
                value = term(frame)
            except EvalError as failure:
                error = error or failure
                continue
            if value is decisive:
                return decisive
            if value is not True and value is not False:
                error = error or no_overload()
        if error is not None:
            raise error
        return not decisive

    return Compiled(run, terms[0].cost)


def conditional(condition: Compiled, yes: Compiled, no: Compiled) -> Compiled:
    """``condition ? yes : no``, which costs nothing by itself."""
    test, yes_run, no_run = condition.run, yes.run, no.run
    yes_cost = yes.cost - yes.base
    no_cost = no.cost - no.base

    def run(frame: Frame) -> Value:
        if is_true(test(frame)):
            frame[COST] += yes_cost
            return yes_run(frame)
        frame[COST] += no_cost
        return no_run(frame)

    return Compiled(run, condition.cost, attribute=True)


def equals(left: Compiled, right: Compiled, *, negated: bool) -> Compiled:
    """``left == right``, or ``!=``, which takes values that cannot be compared for different."""
    cost = left.cost + right.cost
    left_run, right_run = left.run, right.run
    if type(right.value) is str:
        return Compiled(_equals_text(left_run, right.value, negated), cost)
    if type(right.value) is int and not negated:
        return Compiled(_equals_int(left_run, right.value), cost)
    settle = _differ if negated else _equal

    def run(frame: Frame) -> bool:
        return settle(frame, left_run(frame), right_run(frame))

    return Compiled(run, cost)


def _equal(frame: Frame, left: Value, right: Value) -> bool:
    frame[COST] += equality(left, right)
    if type(left) in CONTAINERS:
        spend(frame, comparison((left, right)))
    result = equal(left, right)
    if result is None:
        raise no_overload()
    return result


def _differ(frame: Frame, left: Value, right: Value) -> bool:
    frame[COST] += inequality(left, right)
    if type(left) in CONTAINERS:
        spend(frame, comparison((left, right)))
    return equal(left, right) is not True


def _equals_text(operand: Run, text: str, negated: bool) -> Run:
    """Compare with a constant text, most often of a string."""
    short = 0 < len(text) <= _ONE_UNIT
    settle = _differ if negated else _equal

    def run(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is not str:
            return settle(frame, value, text)
        if not short:
            frame[COST] += tenths(min(len(value), len(text)))
        elif value:
            frame[COST] += 1
        return (value == text) is not negated

    return run


def _equals_int(operand: Run, constant: int) -> Run:
    """Compare with a constant int, most often of an int."""

    def run(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is int:
            frame[COST] += 1
            return bool(value == constant)
        return _equal(frame, value, constant)

    return run
