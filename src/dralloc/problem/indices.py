"""Indices of a problem's tuples: each sort has a type of its own, so that `mypy` finds a node taken for a device.

At run time an index is an integer and a `Numbered` a tuple: neither costs anything. Below them: values by key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NewType, Protocol, TypeVar, cast

__all__ = [
    "AlternativeIndex",
    "CounterIndex",
    "DemandIndex",
    "DeviceIndex",
    "IndexT",
    "NodeIndex",
    "Numbered",
    "SlotIndex",
    "grouped",
    "indices",
    "numbered",
    "summed",
]

DeviceIndex = NewType("DeviceIndex", int)
"""A device of `dralloc.problem.Problem.devices`."""

NodeIndex = NewType("NodeIndex", int)
"""A node of `dralloc.problem.Problem.nodes`."""

AlternativeIndex = NewType("AlternativeIndex", int)
"""An alternative of any request, as `dralloc.problem.Eligibility` is asked about it (`Alternative.index`)."""

CounterIndex = NewType("CounterIndex", int)
"""A counter of `dralloc.problem.Problem.counters`."""

DemandIndex = NewType("DemandIndex", int)
"""A demand of `dralloc.problem.Problem.demands`."""

SlotIndex = NewType("SlotIndex", int)
"""A physical device: the versions of one device in two generations of a pool share it (`Device.slot`)."""

I_contra = TypeVar("I_contra", bound=int, contravariant=True)
T_co = TypeVar("T_co", covariant=True)
IndexT = TypeVar("IndexT", bound=int)
T = TypeVar("T")


class Numbered(Protocol[I_contra, T_co]):
    """A tuple whose entries are asked for by one sort of index."""

    def __getitem__(self, index: I_contra, /) -> T_co:
        """Return the entry of that index."""

    def __iter__(self) -> Iterator[T_co]:
        """All entries in order."""

    def __contains__(self, entry: object, /) -> bool:
        """Whether it is one of them."""

    def __len__(self) -> int:
        """The number of entries."""


def indices(entries: Numbered[IndexT, T]) -> Sequence[IndexT]:
    """The indices of all entries, in order."""
    return cast("Sequence[IndexT]", range(len(entries)))


def numbered(entries: Numbered[IndexT, T]) -> Iterable[tuple[IndexT, T]]:
    """All entries, each with its index, in order."""
    return cast("Iterable[tuple[IndexT, T]]", enumerate(entries))


# ----------------------------------------------------------------------------
# Values by key.

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
N = TypeVar("N", int, float)


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key in order, keys as they appear; a key that is looked up and has none gets an empty list."""
    groups: dict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def summed(amounts: Iterable[tuple[K, N]]) -> dict[K, N]:
    """The sum of the amounts of each key, keys as they appear."""
    sums: dict[K, N] = {}
    for key, amount in amounts:
        sums[key] = sums.get(key, 0) + amount
    return sums
