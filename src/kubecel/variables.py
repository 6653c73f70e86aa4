"""Variables: those of loops, and those that are computed when they are first read."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kubecel.access import handed_on
from kubecel.code import COST, Compiled
from kubecel.data import (
    MISSING,
    NONE,
    EvalError,
    Frame,
    Optional,
    Run,
    Value,
    no_overload,
)

__all__ = ["bind", "lazy_variable", "opt_map", "opt_variable", "read", "variable"]

_UNREAD: Final = object()


def variable(slot: int) -> Compiled:
    """A loop's variable."""
    return _variable(lambda frame: frame[slot])


def _variable(run: Run) -> Compiled:
    return Compiled(run, 1, attribute=True, base=1)


def read(code: Compiled) -> Compiled:
    """What may be an optional, as upstream hands it on."""
    inner = code.run

    def run(frame: Frame) -> Value:
        value = inner(frame)
        return handed_on(value) if type(value) is Optional else value

    return replace(code, run=run, value=MISSING)


def lazy_variable(slot: int, value: Compiled) -> Compiled:
    """A variable of `bind`: computed at the first reading, an error as well."""
    compute, cost = value.run, value.cost

    def run(frame: Frame) -> Value:
        found = frame[slot]
        if found is _UNREAD:
            frame[COST] += cost
            try:
                found = frame[slot] = compute(frame)
            except EvalError as error:
                frame[slot] = error
                raise
        elif type(found) is EvalError:
            raise found
        return found

    return _variable(run)


def bind(slot: int, body: Compiled) -> Compiled:
    """A scope in which a variable has not been read yet."""
    inner, cost = body.run, body.cost

    def run(frame: Frame) -> Value:
        frame[slot] = _UNREAD
        return inner(frame)

    return Compiled(run, cost)


def opt_map(
    target: Compiled, slots: tuple[int, int], body: Compiled, *, flat: bool
) -> Compiled:
    """``optMap`` and ``optFlatMap``.

    Upstream evaluates the target once more where the variable is first read, which is only noticed in the cost: the
    second slot keeps what that would be.
    """
    source, inner, cost = target.run, body.run, body.cost - (body.base if flat else 0)
    value_slot, cost_slot = slots

    def run(frame: Frame) -> Value:
        before = frame[COST]
        found = source(frame)
        if type(found) is not Optional:
            raise no_overload("hasValue")
        if found.value is MISSING:
            frame[COST] += 1
            return NONE
        frame[cost_slot] = (found, frame[COST] - before + target.cost + 1)
        frame[value_slot] = _UNREAD
        frame[COST] += cost if flat else cost + 1
        result = inner(frame)
        return result if flat else Optional(result)

    return Compiled(run, target.cost + 1)


def opt_variable(slots: tuple[int, int]) -> Compiled:
    """The variable of `opt_map`."""
    value_slot, cost_slot = slots

    def run(frame: Frame) -> Value:
        optional, cost = frame[cost_slot]
        if frame[value_slot] is _UNREAD:
            frame[COST] += cost
            frame[value_slot] = None
        return optional.held()

    return _variable(run)
