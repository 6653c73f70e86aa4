"""Values by key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import TypeVar

__all__ = ["grouped", "summed"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key in order, keys as they appear; a key that is looked up and has none gets an empty list."""
    found: dict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found


def summed(amounts: Iterable[tuple[K, int]]) -> dict[K, int]:
    """The sum of the amounts of each key, keys as they appear."""
    found: dict[K, int] = {}
    for key, amount in amounts:
        found[key] = found.get(key, 0) + amount
    return found
