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
    groups: dict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def summed(amounts: Iterable[tuple[K, int]]) -> dict[K, int]:
    """The sum of the amounts of each key, keys as they appear."""
    sums: dict[K, int] = {}
    for key, amount in amounts:
        sums[key] = sums.get(key, 0) + amount
    return sums
