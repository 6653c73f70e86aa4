"""What a node of the syntax is compiled to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubecel.data import MISSING, EvalError, Frame, Run, Value
from kubecel.errors import CelRuntimeError

__all__ = [
    "COST",
    "DEVICE_SLOT",
    "FIRST_LOCAL",
    "LIMIT",
    "Compiled",
    "charge",
    "constant",
    "fixed",
    "is_true",
    "over_limit",
    "spend",
]

COST: Final = 0
"""Where a frame counts the cost that could not be known before."""

LIMIT: Final = 1
"""Where a frame keeps the cost limit, less what `spend` took off it."""

DEVICE_SLOT: Final = 2
FIRST_LOCAL: Final = 3


@dataclass(frozen=True, slots=True)
class Compiled:
    """Compiled code and what is known about it.

    Parameters
    ----------
    run
        Computes the value. It adds to the frame's cost only what is not in `cost`.
    cost
        The part of the cost that every evaluation has. Whoever runs the code unconditionally includes it in its own
        cost; whoever runs it sometimes adds it to the frame when it does.
    value
        The value, if it is the same for every device; else `MISSING`.
    literal
        Whether upstream treats it as a constant, too: it then costs nothing and may be folded further.
    attribute
        Whether upstream treats it as an attribute (a variable with selections), and
    base
        what it then charges for that, apart from the selections; a branch of a conditional does not pay it.
    """

    run: Run
    cost: int = 0
    value: Value = MISSING
    literal: bool = False
    attribute: bool = False
    base: int = 0


def constant(value: Value) -> Compiled:
    """Code of a constant."""
    return Compiled(lambda _: value, 0, value, literal=True)


def fixed(compute: Callable[[], Value], cost: int = 1) -> Compiled:
    """Code of a call whose arguments never change: it is computed once, and may fail every time."""
    try:
        value = compute()
    except CelRuntimeError as error:
        # An error that others can absorb stays one, and one that ends the evaluation does so where it is reached.
        failure, message = type(error), str(error)

        def fail(_: Frame) -> Value:
            raise failure(message)

        return Compiled(fail, cost)
    return Compiled(lambda _: value, cost, value)


def charge(frame: Frame, cost: int) -> None:
    """Add a cost, and stop where the limit is passed."""
    frame[COST] += cost
    if frame[COST] > frame[LIMIT]:
        raise over_limit()


def spend(frame: Frame, effort: int) -> None:
    """Take effort that is no cost off what the evaluation may still cost, and stop where nothing is left."""
    frame[LIMIT] -= effort
    if frame[COST] > frame[LIMIT]:
        raise CelRuntimeError("operation cancelled: the evaluation takes too long")


def over_limit() -> CelRuntimeError:
    """The error that ends an evaluation; nothing absorbs it."""
    return CelRuntimeError("operation cancelled: actual cost limit exceeded")


def is_true(value: Value) -> bool:
    """A condition's value, which must be a bool."""
    if value is True or value is False:
        return bool(value)
    raise EvalError("no such overload")
