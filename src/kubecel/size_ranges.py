"""Sizes and costs as ranges, and what upstream's limits say about a device.

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
    "added",
    "device_size",
    "scaled",
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


def added(*costs: int) -> int:
    """The sum of costs."""
    return min(sum(costs), _LIMIT)


def scaled(number: int, factor: float) -> int:
    """A number times a factor, rounded up, as doubles have it."""
    product = float(number) * factor
    if product >= _LARGEST_DOUBLE:
        return _LIMIT
    return ceil(product)


@dataclass(frozen=True, slots=True)
class Size:
    """A size within a range."""

    low: int
    high: int

    def plus(self, other: Size) -> Size:
        """The size of both together."""
        return Size(added(self.low, other.low), added(self.high, other.high))

    def times(self, other: Size) -> Size:
        """The size of so many of the other."""
        return Size(
            min(self.low * other.low, _LIMIT),
            min(self.high * other.high, _LIMIT),
        )

    def or_(self, other: Size) -> Size:
        """The range of both."""
        return Size(min(self.low, other.low), max(self.high, other.high))

    def cost(self, unit_cost: float) -> int:
        """The highest cost, if every unit costs so much."""
        return scaled(self.high, unit_cost)


ONE: Final = Size(1, 1)
UNKNOWN: Final = Size(0, _LIMIT)


def _domains(field: str, value_size: int) -> dict[Path, int]:
    """A map by domain of maps by identifier."""
    return {
        (field,): _MAX_NAMES,
        (field, KEYS): _MAX_DOMAIN,
        (field, VALUES): _MAX_NAMES,
        (field, VALUES, KEYS): _MAX_IDENTIFIER,
        (field, VALUES, VALUES): value_size,
    }


_ATTRIBUTE: Final = ("attributes", VALUES, VALUES)
_DEVICE: Final[dict[Path, int]] = {
    (): 0,
    ("driver",): _MAX_DRIVER,
    ("allowMultipleAllocations",): 1,
    **_domains("attributes", _MAX_ATTRIBUTE),
    **_domains("capacity", 0),
}
"""What upstream has declared about the parts of ``device``."""


def device_size(path: Path) -> Size | None:
    """The size of a part of ``device``, or None if the path leads elsewhere or to what has no limit."""
    if not path or path[0] != "device":
        return None
    steps = tuple(VALUES if step == ITEMS else step for step in path[1:])
    if steps[:2] == _ATTRIBUTE[:2] and len(steps) == 3 and steps[2] != KEYS:
        # Attributes are known by any name; upstream knows nothing of capacities by name.
        steps = _ATTRIBUTE
    if steps in _DEVICE:
        return Size(0, _DEVICE[steps])
    return None
