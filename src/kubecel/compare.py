"""Equality and order at run time, with upstream's quirks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubecel.data import (
    INT_MAX,
    INT_MIN,
    MAPS,
    MISSING,
    UINT_MAX,
    Duration,
    Empty,
    EvalError,
    Optional,
    TimestampValue,
    TypeValue,
    Uint,
    Value,
    no_overload,
)
from kubecel.maps import find, map_keys
from kubecel.quantity import Quantity
from kubecel.runtime_types import EXTENSION_TYPES

__all__ = ["compare", "equal", "order"]


def order(left: Any, right: Any) -> int:
    """-1, 0 or 1, by Python's own order."""
    return int(left > right) - int(left < right)


def equal(left: Value, right: Value) -> bool | None:
    """Whether two values are equal, or None if the left one cannot be compared with the right one."""
    if left is None or right is None:
        return left is right
    return _EQUAL[type(left)](left, right)


def _same_type(left: Value, right: Value) -> bool:
    return type(left) is type(right) and bool(left == right)


def _strict(left: Value, right: Value) -> bool | None:
    """The extension types refuse to be compared with anything else."""
    return bool(left == right) if type(left) is type(right) else None


def _quantity(left: Value, right: Value) -> bool | None:
    """Upstream's sums and differences are of another type of Go, which is not expected on the right."""
    return None if type(right) is Quantity and right.computed else _strict(left, right)


def _number(left: Value, right: Value) -> bool:
    if type(right) not in _NUMBERS or left != left or right != right:  # noqa: PLR0124 - NaN
        return False
    return _order_numbers(left, right) == 0


def _list(left: Value, right: Value) -> bool:
    """Elements that cannot be compared count as equal."""
    if type(right) is not tuple or len(left) != len(right):
        return False
    return all(
        equal(one, other) is not False for one, other in zip(left, right, strict=True)
    )


def _map(left: Value, right: Value) -> bool:
    if not isinstance(right, dict) or len(left) != len(right):
        return False
    for key in map_keys(left):
        other = find(right, key)
        if other is MISSING or equal(find(left, key), other) is False:
            return False
    return True


def _optional(left: Value, right: Value) -> bool | None:
    if type(right) is not Optional:
        return False
    one, other = left.held(), right.held()
    if one is MISSING or other is MISSING:
        return one is other
    return equal(one, other)


_EQUAL: Final[dict[type, Callable[[Any, Any], bool | None]]] = {
    **dict.fromkeys((bool, str, bytes, Duration, Empty, TypeValue), _same_type),
    **dict.fromkeys((int, Uint, float), _number),
    **dict.fromkeys(EXTENSION_TYPES, _strict),
    Quantity: _quantity,
    **dict.fromkeys(MAPS, _map),
    tuple: _list,
    Optional: _optional,
    TimestampValue: lambda left, right: (
        type(right) is TimestampValue and left.nanos == right.nanos
    ),
}


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1: the order of two values of one type, or of two numbers.

    Raises
    ------
    EvalError
        The values have no order.
    """
    kind = type(left)
    if kind in _NUMBERS and type(right) in _NUMBERS:
        return _order_numbers(left, right)
    if kind is not type(right):
        raise no_overload()
    if kind is str or kind is bool or kind is bytes:
        return order(left, right)
    if kind is Duration or kind is TimestampValue:
        return order(left.nanos, right.nanos)
    raise no_overload()


_NUMBERS: Final = frozenset({int, Uint, float})
_LOWEST: Final = {int: float(INT_MIN), Uint: 0.0}
_HIGHEST: Final = {int: float(INT_MAX), Uint: float(UINT_MAX)}


def _order_numbers(left: Value, right: Value) -> int:
    """Ints and doubles compare as doubles, so large ints lose their last digits."""
    if left != left or right != right:  # noqa: PLR0124 - NaN
        raise EvalError("NaN values cannot be ordered")
    if type(left) is float:
        return _order_double(left, right)
    if type(right) is float:
        return -_order_double(right, left)
    return order(left, right)


def _order_double(left: float, right: Value) -> int:
    if type(right) is not float:
        if left < _LOWEST[type(right)]:
            return -1
        if left > _HIGHEST[type(right)]:
            return 1
    return order(left, float(right))
