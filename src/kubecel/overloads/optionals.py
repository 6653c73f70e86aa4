"""The functions of optional values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubecel.data import (
    MISSING,
    NONE,
    Duration,
    Empty,
    EvalError,
    Optional,
    TimestampValue,
    Value,
    no_overload,
)
from kubecel.effort import joining
from kubecel.overloads.registry import function, method

__all__ = ["OPTIONALS"]


def _value(optional: Optional) -> Value:
    if optional.value is MISSING:
        raise EvalError("optional.none() dereference")
    return optional.held()


def _of_non_zero(value: Value) -> Optional:
    if (
        value is None
        or type(value) is Empty
        or (
            isinstance(value, bool | int | float | str | bytes | tuple | dict)
            and not value
        )
    ):
        return NONE
    if isinstance(value, Duration) and not value.nanos:
        return NONE
    zero_time = TimestampValue(-62135596800 * 10**9)
    if isinstance(value, TimestampValue) and value.nanos == zero_time.nanos:
        return NONE
    return Optional(value)


def _unwrap(values: Sequence[Value]) -> tuple[Value, ...]:
    if any(type(value) is not Optional for value in values):
        raise no_overload("optional.unwrap")
    return tuple(value.held() for value in values if value.value is not MISSING)


def _at(index: int) -> Callable[[Sequence[Value]], Optional]:
    return lambda values: Optional(values[index]) if values else NONE


OPTIONALS: Final = (
    function("optional.of", "V -> optional(V)", Optional),
    function("optional.ofNonZeroValue", "V -> optional(V)", _of_non_zero),
    function("optional.none", "-> optional(V)", lambda: NONE),
    function(
        "optional.unwrap", "list(optional(V)) -> list(V)", _unwrap, effort=joining
    ),
    method("unwrapOpt", "list(optional(V)) -> list(V)", _unwrap, effort=joining),
    method(
        "hasValue",
        "optional(V) -> bool",
        lambda optional: optional.value is not MISSING,
    ),
    method("value", "optional(V) -> V", _value),
    method("first", "list(V) -> optional(V)", _at(0)),
    method("last", "list(V) -> optional(V)", _at(-1)),
)
"""Functions of optional values. The compiler knows ``or`` and ``orValue``, which do not evaluate their argument."""
