"""Operators of the standard library: arithmetic, order, membership, size."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from kubecel import cost
from kubecel.overloads.conversions import (
    add_times,
    checked_duration,
    subtract_times,
)
from kubecel.types import Impl, Overload, function, method
from kubecel.values import (
    INT_MAX,
    INT_MIN,
    MAX_LIST,
    MAX_TEXT,
    MISSING,
    UINT_MAX,
    Duration,
    EvalError,
    TypeValue,
    Uint,
    Value,
    compare,
    equal,
    lookup,
    no_overload,
    type_name,
)

__all__ = ["OPERATORS", "add", "contains"]


def _int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise EvalError("integer overflow")
    return value


def _uint(value: int) -> Uint:
    if not 0 <= value <= UINT_MAX:
        raise EvalError("unsigned integer overflow")
    return Uint(value)


_NUMBER: Final[dict[type, Callable[[Any], Value]]] = {
    int: _int,
    Uint: _uint,
    float: float,
}
"""Checks of results, by the type of both operands."""

_LONGEST: Final[dict[type, int]] = {
    str: MAX_TEXT,
    bytes: MAX_TEXT,
    tuple: MAX_LIST,
}


def _refuse(_: Value, __: Value) -> Value:
    raise no_overload()


def _arithmetic(
    operation: Callable[[Any, Any], Any], of_others: Impl = _refuse
) -> Impl:
    """An operation on two numbers of one type, and on what else has it."""

    def impl(left: Value, right: Value) -> Value:
        kind = type(left)
        if kind is type(right) and kind in _NUMBER:
            return _NUMBER[kind](operation(left, right))
        return of_others(left, right)

    return impl


def _join(left: Value, right: Value) -> Value:
    """``left + right`` of texts, lists or times."""
    kind = type(left)
    if kind is not type(right) or kind not in _LONGEST:
        return add_times(left, right)
    if len(left) + len(right) > _LONGEST[kind]:
        raise EvalError("the result of an addition is too long")
    return left + right


def _quotient(left: Value, right: Value) -> Value:
    """Ints are truncated towards zero."""
    if type(left) is float:
        return _divide_doubles(left, right)
    if right == 0:
        raise EvalError("division by zero")
    quotient = abs(left) // abs(right)
    if (left < 0) == (right < 0):
        return quotient
    return -quotient


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _remainder(left: Value, right: Value) -> Value:
    """With the sign of the left operand."""
    if type(left) is float:
        raise no_overload()  # unlike Python, CEL has no modulus of doubles
    if right == 0:
        raise EvalError("modulus by zero")
    # In Go the remainder is zero here; upstream refuses it as it refuses the division.
    if left == INT_MIN and right == -1:
        raise EvalError("integer overflow")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


add = _arithmetic(operator.add, _join)
"""``left + right`` of any types that have it."""

_subtract = _arithmetic(operator.sub, subtract_times)
_multiply = _arithmetic(operator.mul)
_divide = _arithmetic(_quotient)
_modulo = _arithmetic(_remainder)


def _negate(value: Value) -> Value:
    if type(value) is int:
        return _int(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return checked_duration(-value.nanos)
    raise no_overload()


def _not(value: Value) -> bool:
    if type(value) is not bool:
        raise no_overload()
    return not value


def contains(value: Value, container: Value) -> bool:
    """``value in container``; elements that cannot be compared with the value are passed over."""
    if type(container) is tuple:
        return any(equal(value, item) for item in container)
    if isinstance(container, dict):
        return lookup(container, value) is not MISSING
    raise no_overload()


def _size(value: Value) -> int:
    if isinstance(value, str | bytes | tuple | dict):
        return len(value)
    raise no_overload("size")


def _ordered(plain: Callable[[Value, Value], bool]) -> Impl:
    """A comparison by Python's own operator, which also serves for the sign of `compare`."""

    def impl(left: Value, right: Value) -> bool:
        kind = type(left)
        if kind is type(right) and (kind is int or kind is str):
            return plain(left, right)
        return plain(compare(left, right), 0)

    return impl


# In upstream's order, in which the checker tries them.
_ORDERED: Final = (
    "bool, bool",
    "int, int",
    "int, double",
    "int, uint",
    "uint, uint",
    "uint, double",
    "uint, int",
    "double, double",
    "double, int",
    "double, uint",
    "string, string",
    "bytes, bytes",
    "timestamp, timestamp",
    "duration, duration",
)


def _operator(name: str, impl: Impl, *signatures: str) -> tuple[Overload, ...]:
    return tuple(
        function(name, signature, impl, checks=True) for signature in signatures
    )


def _binary(name: str, impl: Impl, *types: str) -> tuple[Overload, ...]:
    return _operator(
        name, impl, *(f"{kind}, {kind} -> {kind}" for kind in types)
    )


def _order_overloads(
    name: str, plain: Callable[[Value, Value], bool]
) -> tuple[Overload, ...]:
    impl = _ordered(plain)
    overloads = []
    for pair in _ORDERED:
        is_text = pair in {"string, string", "bytes, bytes"}
        rule = cost.smaller_scan if is_text else None
        signature = f"{pair} -> bool"
        overloads.append(
            function(name, signature, impl, rule, by_name=False, checks=True)
        )
    return tuple(overloads)


_SIZED: Final = ("bytes", "list(A)", "map(A, B)", "string")

OPERATORS: Final = (
    function(
        "_+_",
        "bytes, bytes -> bytes",
        add,
        cost.addition,
        by_name=False,
        checks=True,
    ),
    *_binary("_+_", add, "double", "duration"),
    *_operator(
        "_+_",
        add,
        "duration, timestamp -> timestamp",
        "timestamp, duration -> timestamp",
    ),
    *_binary("_+_", add, "int"),
    function(
        "_+_",
        "list(A), list(A) -> list(A)",
        add,
        effort=cost.copying,
        checks=True,
    ),
    function(
        "_+_",
        "string, string -> string",
        add,
        cost.addition,
        by_name=False,
        checks=True,
    ),
    *_binary("_+_", add, "uint"),
    *_binary("_-_", _subtract, "double", "duration", "int"),
    *_operator(
        "_-_",
        _subtract,
        "timestamp, duration -> timestamp",
        "timestamp, timestamp -> duration",
    ),
    *_binary("_-_", _subtract, "uint"),
    *_binary("_*_", _multiply, "double", "int", "uint"),
    *_binary("_/_", _divide, "double", "int", "uint"),
    *_binary("_%_", _modulo, "int", "uint"),
    *_operator("-_", _negate, "double -> double", "int -> int"),
    *_operator("!_", _not, "bool -> bool"),
    *_order_overloads("_<_", operator.lt),
    *_order_overloads("_<=_", operator.le),
    *_order_overloads("_>_", operator.gt),
    *_order_overloads("_>=_", operator.ge),
    function(
        "@in",
        "A, list(A) -> bool",
        contains,
        cost.membership,
        cost.containment_effort,
        by_name=False,
        checks=True,
    ),
    function("@in", "A, map(A, B) -> bool", contains, checks=True),
    *_operator("size", _size, *(f"{kind} -> int" for kind in _SIZED)),
    *(method("size", f"{kind} -> int", _size, checks=True) for kind in _SIZED),
    function("type", "A -> type(A)", lambda value: TypeValue(type_name(value))),
)
"""The operators. ``==``, ``!=``, ``&&``, ``||`` and ``?:`` are not among them: the compiler knows those."""
