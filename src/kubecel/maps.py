"""Maps: Python's dicts, with keys that tell apart what CEL tells apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kubecel.data import (
    EMPTY_MAP,
    INT_MAX,
    INT_MIN,
    MISSING,
    TEXT_KEYED,
    UINT_MAX,
    DomainMap,
    Duration,
    TimestampValue,
    TypeValue,
    Uint,
    Value,
)
from kubecel.errors import CelRuntimeError
from kubecel.network import Cidr, Ip
from kubecel.runtime_types import NamedFormat, go_name
from kubecel.semver import Semver

__all__ = [
    "equal_numbers",
    "find",
    "lookup",
    "map_items",
    "map_key",
    "map_keys",
    "unhashable",
]

_BY_VALUE: Final = frozenset(
    {bool, Uint, float, Duration, TimestampValue, TypeValue, Ip, Cidr}
)
_UNHASHABLE: Final = frozenset({bytes, Semver, NamedFormat})


class _IdentityKey:
    """A key that equals only itself: of a type that upstream handles by reference, or NaN, which equals nothing."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _IdentityKey)
            and self.value is other.value
            and type(self.value) is not float
        )

    def __hash__(self) -> int:
        return id(self.value)


def unhashable(value: Value) -> CelRuntimeError | None:
    """The error of looking up a value that upstream's hash tables crash on, or None."""
    if type(value) not in _UNHASHABLE:
        return None
    return CelRuntimeError(
        f"internal error: runtime error: hash of unhashable type {go_name(value)}"
    )


def map_key(key: Value) -> Value:
    """The Python key under which a map keeps a CEL key.

    Raises
    ------
    CelRuntimeError
        No map can have such a key.
    """
    kind = type(key)
    if kind is str or kind is int or key is None:
        return key
    if kind in _BY_VALUE and key == key:  # noqa: PLR0124 - NaN
        return kind, key
    if error := unhashable(key):
        raise error
    return _IdentityKey(key)


def map_keys(values: dict[Any, Any]) -> Iterator[Value]:
    """The CEL keys of a map."""
    for key in values:
        if type(key) is tuple:
            yield key[1]
        elif type(key) is _IdentityKey:
            yield key.value
        else:
            yield key


def map_items(values: dict[Any, Any]) -> Iterator[tuple[Value, Value]]:
    """The entries of a map, by their CEL keys."""
    return zip(map_keys(values), values.values(), strict=True)


def find(values: dict[Any, Any], key: Value) -> Value:
    """The value under a CEL key, or `MISSING`; a domain map has every key."""
    found = lookup(values, key)
    if found is MISSING and type(values) is DomainMap:
        return EMPTY_MAP
    return found


def lookup(values: dict[Any, Any], key: Value) -> Value:
    """The value that a map keeps under a CEL key or under an int or uint that equals it, or `MISSING`."""
    if type(key) is str:
        return values.get(key, MISSING)
    if not values or type(values) in TEXT_KEYED:
        return MISSING
    found = values.get(map_key(key), MISSING)
    if found is MISSING:
        for other in equal_numbers(key):
            if type(other) is not float and found is MISSING:
                found = values.get(map_key(other), MISSING)
    return found


def equal_numbers(number: Value) -> Iterator[Value]:
    """The numbers of other types that equal a number; as doubles, large ints lose their last digits."""
    kind = type(number)
    if kind is float and number.is_integer():
        if INT_MIN < number < INT_MAX:
            yield int(number)
        if 0 <= number < UINT_MAX:
            yield Uint(int(number))
    elif kind is int:
        if number >= 0:
            yield Uint(number)
        yield float(number)
    elif kind is Uint:
        if number <= INT_MAX:
            yield int(number)
        yield float(number)
