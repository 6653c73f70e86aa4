"""Operators of the standard library, and the functions of lists, sets and optional values."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any, Final

from kubecel import cost
from kubecel.cost import joining
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
    NONE,
    UINT_MAX,
    Duration,
    Empty,
    EvalError,
    Optional,
    TimestampValue,
    TypeValue,
    Uint,
    Value,
    compare,
    equal,
    lookup,
    no_overload,
    type_name,
)

__all__ = ["INCLUDES", "LISTS", "OPERATORS", "OPTIONALS"]

# ----------------------------------------------------------------------------
# Operators: arithmetic, order, membership, size.


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


def _contains(value: Value, container: Value) -> bool:
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
        _contains,
        cost.membership,
        cost.containment_effort,
        by_name=False,
        checks=True,
    ),
    function("@in", "A, map(A, B) -> bool", _contains, checks=True),
    *_operator("size", _size, *(f"{kind} -> int" for kind in _SIZED)),
    *(method("size", f"{kind} -> int", _size, checks=True) for kind in _SIZED),
    function("type", "A -> type(A)", lambda value: TypeValue(type_name(value))),
)
"""The operators. ``==``, ``!=``, ``&&``, ``||`` and ``?:`` are not among them: the compiler knows those."""


# ----------------------------------------------------------------------------
# Functions of lists: upstream's extension library, Kubernetes' own, and sets.

_MAX_INCLUDES: Final = 48
_MAX_FLATTEN: Final = 200
# Go's ``slices.Sort`` sorts up to this many by insertion.
_FEW: Final = 12
_SORTABLE: Final = frozenset(
    {bool, int, Uint, float, str, bytes, Duration, TimestampValue}
)


def _slice(values: Sequence[Value], start: int, end: int) -> Sequence[Value]:
    call = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvalError(f"{call}, negative indexes not supported")
    if start > end:
        raise EvalError(
            f"{call}, start index must be less than or equal to end index"
        )
    if end > len(values):
        raise EvalError(f"{call}, list is length {len(values)}")
    return values[start:end]


def _flatten(values: Value, depth: Value = 1) -> Value:
    if type(values) is not tuple or type(depth) is not int:
        raise no_overload("flatten")
    if depth < 0:
        raise EvalError("level must be non-negative")
    flat = tuple(values)
    for _ in range(min(depth, _MAX_FLATTEN)):
        if not any(type(value) is tuple for value in flat):
            break
        if sum(len(value) for value in flat if type(value) is tuple) > MAX_LIST:
            raise EvalError("the result of flatten() is too long")
        values_below: list[Value] = []
        for value in flat:
            if type(value) is tuple:
                values_below += value
            else:
                values_below.append(value)
        flat = tuple(values_below)
    return flat


def _sort_by(values: Sequence[Value], keys: Sequence[Value]) -> Sequence[Value]:
    if len(values) != len(keys):
        message = "expected a list of the same size as the associated keys list"
        raise EvalError(f"@sortByAssociatedKeys() {message}")
    if not keys:
        return values
    if any(type(key) is not type(keys[0]) for key in keys):
        raise EvalError("list elements must have the same type")
    if type(keys[0]) not in _SORTABLE:
        raise EvalError("list elements must be comparable")
    pairs = list(zip(keys, values, strict=True))
    if len(pairs) <= _FEW:
        _insertion_sort(pairs)
    else:
        pairs.sort(key=cmp_to_key(_order_pairs))
    return tuple(value for _, value in pairs)


def _check_sortable(values: Sequence[Value], name: str) -> None:
    if not all(type(value) in _SORTABLE for value in values):
        raise no_overload(name)


def _order_of(left: Value, right: Value) -> int:
    """Compare as `compare` does, except that NaN equals any other number."""
    if left != left or right != right:  # noqa: PLR0124 - NaN
        return 0
    return compare(left, right)


def _order_pairs(left: tuple[Value, Value], right: tuple[Value, Value]) -> int:
    return _order_of(left[0], right[0])


def _insertion_sort(pairs: list[tuple[Value, Value]]) -> None:
    """Sort as Go sorts few elements, which shows where some of them have no order."""
    for start in range(1, len(pairs)):
        at = start
        while at > 0 and _order_pairs(pairs[at], pairs[at - 1]) < 0:
            pairs[at - 1], pairs[at] = pairs[at], pairs[at - 1]
            at -= 1


def _sort(values: Sequence[Value]) -> Sequence[Value]:
    return _sort_by(values, values)


def _distinct(values: Sequence[Value]) -> Sequence[Value]:
    unique: list[Value] = []
    for value in values:
        if not any(equal(value, earlier) for earlier in unique):
            unique.append(value)
    return tuple(unique)


def _range(count: int) -> Sequence[Value]:
    if count > MAX_LIST:
        raise EvalError("the range of lists.range() is too large")
    return tuple(range(count))


def _is_sorted(values: Sequence[Value]) -> bool:
    """Neighbours that have no order count as sorted."""
    for position, value in enumerate(values):
        # One by one: what is behind a wrong pair is never looked at.
        _check_sortable(values[position : position + 1], "isSorted")
        try:
            if position and compare(values[position - 1], value) > 0:
                return False
        except EvalError:
            continue
    return True


def _sum(zero: Value) -> Impl:
    def total(values: Sequence[Value]) -> Value:
        result = zero
        for value in values:
            result = add(result, value)
        return result

    return total


def _extreme(name: str, sign: int) -> Impl:
    """The first of the least or greatest elements."""

    def extreme(values: Sequence[Value]) -> Value:
        if not values:
            raise EvalError(f"{name} called on empty list")
        _check_sortable(values, name)
        best = values[0]
        for value in values[1:]:
            try:
                if compare(value, best) * sign > 0:
                    best = value
            except EvalError:
                continue
        return best

    return extreme


def _index_of(values: Sequence[Value], value: Value) -> int:
    for index, item in enumerate(values):
        if equal(item, value):
            return index
    return -1


def _last_index_of(values: Sequence[Value], value: Value) -> int:
    for index in reversed(range(len(values))):
        if equal(values[index], value):
            return index
    return -1


def _includes(target: Value, value: Value) -> bool:
    if type(target) is not tuple:
        return bool(equal(target, value))
    if any(equal(item, value) for item in target[:_MAX_INCLUDES]):
        return True
    # A longer list is only an error where its first values do not decide.
    if len(target) > _MAX_INCLUDES:
        raise EvalError(
            f"'includes' function cannot be applied to lists longer than {_MAX_INCLUDES} values"
        )
    return False


def _contains_all(values: Sequence[Value], required: Sequence[Value]) -> bool:
    return all(_contains(value, values) for value in required)


def _equivalent(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return _contains_all(left, right) and _contains_all(right, left)


def _intersects(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return any(_contains(value, right) for value in left)


_COMPARABLE: Final = (
    "int",
    "uint",
    "double",
    "bool",
    "duration",
    "timestamp",
    "string",
    "bytes",
)


def _of_each(
    name: str, signature: str, *rules: Any, **options: Any
) -> tuple[Overload, ...]:
    """An overload for the lists of each type that can be ordered."""
    return tuple(
        method(name, signature.format(kind), *rules, **options)
        for kind in _COMPARABLE
    )


_SORT_COST: Final = cost.self_comparison(0)
_SORT_BY_COST: Final = cost.self_comparison(1)
_ZEROES: Final = {
    "int": 0,
    "uint": Uint(0),
    "double": 0.0,
    "duration": Duration(0),
}

LISTS: Final = (
    method("slice", "list(T), int, int -> list(T)", _slice, cost.slicing),
    *(
        method(
            "flatten",
            signature,
            _flatten,
            cost.flattening,
            cost.traversal_effort,
            checks=True,
        )
        for signature in (
            "list(list(T)) -> list(T)",
            "list(dyn), int -> list(dyn)",
        )
    ),
    *_of_each(
        "sort", "list({0}) -> list({0})", _sort, _SORT_COST, by_name=False
    ),
    *_of_each(
        "@sortByAssociatedKeys",
        "list(T), list({0}) -> list(T)",
        _sort_by,
        _SORT_BY_COST,
        by_name=False,
    ),
    function("lists.range", "int -> list(int)", _range, cost.counting),
    method(
        "reverse",
        "list(T) -> list(T)",
        lambda values: values[::-1],
        cost.reversal,
    ),
    method("distinct", "list(T) -> list(T)", _distinct, _SORT_COST, cost.pairs),
    *_of_each(
        "isSorted",
        "list({0}) -> bool",
        _is_sorted,
        cost.traversal,
        cost.traversal_effort,
    ),
    *(
        method(
            "sum",
            f"list({kind}) -> {kind}",
            _sum(zero),
            cost.traversal,
            cost.traversal_effort,
        )
        for kind, zero in _ZEROES.items()
    ),
    *_of_each(
        "min",
        "list({0}) -> {0}",
        _extreme("min", -1),
        cost.traversal,
        cost.traversal_effort,
    ),
    *_of_each(
        "max",
        "list({0}) -> {0}",
        _extreme("max", 1),
        cost.traversal,
        cost.traversal_effort,
    ),
    method(
        "indexOf",
        "list(A), A -> int",
        _index_of,
        cost.traversal,
        cost.traversal_effort,
    ),
    method(
        "lastIndexOf",
        "list(A), A -> int",
        _last_index_of,
        cost.traversal,
        cost.traversal_effort,
    ),
    function(
        "sets.contains",
        "list(T), list(T) -> bool",
        _contains_all,
        cost.sets(1),
        cost.pairs,
    ),
    function(
        "sets.equivalent",
        "list(T), list(T) -> bool",
        _equivalent,
        cost.sets(2),
        cost.pairs,
    ),
    function(
        "sets.intersects",
        "list(T), list(T) -> bool",
        _intersects,
        cost.sets(1),
        cost.pairs,
    ),
)

INCLUDES: Final = (
    method(
        "includes", "dyn, dyn -> bool", _includes, effort=cost.traversal_effort
    ),
)
"""Kubernetes' ``includes`` for attributes that may be lists; newer than the rest and behind a feature gate."""


# ----------------------------------------------------------------------------
# Functions of optional values.

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
