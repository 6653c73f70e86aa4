"""How large things can be at most: sizes and costs as ranges, and what upstream's limits say about a device.

Arithmetic stops at the largest 64 bit number, which stands for "not limited". A size is what ``size()`` would give: the
number of characters, bytes, elements or entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final, TypeAlias

__all__ = [
    "ITEMS",
    "KEYS",
    "MAX_LIST_ATTRIBUTE",
    "ONE",
    "UNKNOWN",
    "VALUES",
    "Path",
    "Size",
    "add",
    "device_size",
    "scale",
]

_LIMIT: Final = 2**64 - 1
_LARGEST_DOUBLE: Final = 2.0**64

MAX_LIST_ATTRIBUTE: Final = 48
"""``ResourceSliceMaxAttributeValuesPerDevice``"""

_MAX_ATTRIBUTE: Final = 64
"""``DeviceAttributeMaxValueLength``: more than a list may have elements."""

_MAX_NAMES: Final = 32
"""``ResourceSliceMaxAttributesAndCapacitiesPerDevice``"""

_MAX_DOMAIN: Final = 63
_MAX_IDENTIFIER: Final = 32
_MAX_DRIVER: Final = 63

Path: TypeAlias = tuple[str, ...]
"""The steps from a variable to what it holds: names of fields, or one of the following."""

ITEMS: Final = "@items"
KEYS: Final = "@keys"
VALUES: Final = "@values"


def add(*costs: int) -> int:
    """The sum of costs."""
    return min(sum(costs), _LIMIT)


def scale(number: int, factor: float) -> int:
    """A number times a factor, rounded up, as doubles have it."""
    product = float(number) * factor
    return _LIMIT if product >= _LARGEST_DOUBLE else ceil(product)


@dataclass(frozen=True, slots=True)
class Size:
    """A size within a range."""

    low: int
    high: int

    def plus(self, other: Size) -> Size:
        """The size of both together."""
        return Size(add(self.low, other.low), add(self.high, other.high))

    def times(self, other: Size) -> Size:
        """The size of so many of the other."""
        return Size(min(self.low * other.low, _LIMIT), min(self.high * other.high, _LIMIT))

    def or_(self, other: Size) -> Size:
        """The range of both."""
        return Size(min(self.low, other.low), max(self.high, other.high))

    def cost(self, each: float) -> int:
        """The highest cost, if every unit costs so much."""
        return scale(self.high, each)


ONE: Final = Size(1, 1)
UNKNOWN: Final = Size(0, _LIMIT)


@dataclass(frozen=True, slots=True)
class _Declared:
    """A part of the declaration of ``device``: its size, and what is inside."""

    size: int
    key: _Declared | None = None
    value: _Declared | None = None
    fields: tuple[tuple[str, _Declared], ...] = ()


def _map(value: _Declared) -> _Declared:
    """A map by domain of maps by identifier."""
    inner = _Declared(_MAX_NAMES, _Declared(_MAX_IDENTIFIER), value)
    return _Declared(_MAX_NAMES, _Declared(_MAX_DOMAIN), inner)


_ATTRIBUTE: Final = _Declared(_MAX_ATTRIBUTE)
_DEVICE: Final = _Declared(
    0,
    fields=(
        ("driver", _Declared(_MAX_DRIVER)),
        ("allowMultipleAllocations", _Declared(1)),
        ("attributes", _map(_ATTRIBUTE)),
        ("capacity", _map(_Declared(0))),
    ),
)


def device_size(path: Path) -> Size | None:
    """The size of a part of ``device``, or None if the path leads elsewhere or to what has no limit."""
    if not path or path[0] != "device":
        return None
    found: _Declared | None = _DEVICE
    for step in path[1:]:
        found = _step(found, step) if found is not None else None
    return Size(0, found.size) if found is not None else None


def _step(within: _Declared, step: str) -> _Declared | None:
    if step in {ITEMS, VALUES}:
        return within.value
    if step == KEYS:
        return within.key
    # The values of attributes are known by any name; upstream knows nothing of capacities by name.
    return _ATTRIBUTE if within.value is _ATTRIBUTE else dict(within.fields).get(step)
