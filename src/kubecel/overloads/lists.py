"""Functions of lists: upstream's extension library, Kubernetes' own, and sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any, Final

from kubecel import cost
from kubecel.overloads.operators import add, contains
from kubecel.types import Impl, Overload, function, method
from kubecel.values import (
    MAX_LIST,
    Duration,
    EvalError,
    TimestampValue,
    Uint,
    Value,
    compare,
    equal,
    no_overload,
)

__all__ = ["INCLUDES", "LISTS"]

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
    return all(contains(value, values) for value in required)


def _equivalent(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return _contains_all(left, right) and _contains_all(right, left)


def _intersects(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return any(contains(value, right) for value in left)


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
