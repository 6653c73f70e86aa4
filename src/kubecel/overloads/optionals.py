"""Functions of optional values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubecel.cost import joining
from kubecel.types import function, method
from kubecel.values import (
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

__all__ = ["OPTIONALS"]

_ZERO_TIME: Final = -62135596800 * 10**9


def _value(optional: Optional) -> Value:
    if optional.value is MISSING:
        raise EvalError("optional.none() dereference")
    return optional.held()


def _of_non_zero(value: Value) -> Optional:
    if value is None or type(value) is Empty:
        return NONE
    if (
        isinstance(value, bool | int | float | str | bytes | tuple | dict)
        and not value
    ):
        return NONE
    if isinstance(value, Duration) and not value.nanos:
        return NONE
    # Go's zero time is the first moment of the year 1, and not of 1970.
    if isinstance(value, TimestampValue) and value.nanos == _ZERO_TIME:
        return NONE
    return Optional(value)


def _unwrap(values: Sequence[Value]) -> tuple[Value, ...]:
    if any(type(value) is not Optional for value in values):
        raise no_overload("optional.unwrap")
    return tuple(value.held() for value in values if value.value is not MISSING)


def _at(index: int) -> Callable[[Sequence[Value]], Optional]:
    def at_index(values: Sequence[Value]) -> Optional:
        if not values:
            return NONE
        return Optional(values[index])

    return at_index


OPTIONALS: Final = (
    function("optional.of", "V -> optional(V)", Optional),
    function("optional.ofNonZeroValue", "V -> optional(V)", _of_non_zero),
    function("optional.none", "-> optional(V)", lambda: NONE),
    function(
        "optional.unwrap",
        "list(optional(V)) -> list(V)",
        _unwrap,
        effort=joining,
    ),
    method(
        "unwrapOpt", "list(optional(V)) -> list(V)", _unwrap, effort=joining
    ),
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
