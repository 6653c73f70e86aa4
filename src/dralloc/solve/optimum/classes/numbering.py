"""Numbers for things, a new one for each; and disjoint sets of numbers, for inventories of a million devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable
from typing import Generic, TypeVar

from dralloc.problem.indices import IndexT

__all__ = ["DisjointSets", "Listed"]


class DisjointSets(Generic[IndexT]):
    """The indices from 0 on, given in order: each in a set of its own until sets are united."""

    def __init__(self, members: Iterable[IndexT]) -> None:
        self._parents = list(members)

    def find(self, member: IndexT) -> IndexT:
        """The smallest member of its set."""
        parents = self._parents
        root = member
        while parents[root] != root:
            root = parents[root]
        # Compress the path, so that the next look-up is short.
        while parents[member] != root:
            parents[member], member = root, parents[member]
        return root

    def unite(self, first: IndexT, second: IndexT) -> IndexT:
        """Join two sets; returns the smallest member."""
        first, second = self.find(first), self.find(second)
        if first > second:
            first, second = second, first
        self._parents[second] = first
        return first

    def unite_all(self, members: Iterable[IndexT]) -> None:
        """Join the sets of all of them."""
        root: IndexT | None = None
        for member in members:
            root = member if root is None else self.unite(root, member)

    def groups(self, members: Iterable[IndexT]) -> Collection[list[IndexT]]:
        """The members by their sets, in order."""
        sets: dict[IndexT, list[IndexT]] = defaultdict(list)
        for member in members:
            sets[self.find(member)].append(member)
        return sets.values()

    def copy(self) -> DisjointSets[IndexT]:
        """An independent copy."""
        return DisjointSets(self._parents)


T = TypeVar("T")


class Listed(list[T]):
    """Entries that have numbers: their places, found by a key that equal ones share (the entry itself by default)."""

    def __init__(self, entries: Iterable[T] = ()) -> None:
        super().__init__(entries)
        self._numbers: dict[Hashable, int] = {}

    def number(self, entry: T, key: Hashable = None) -> int:
        """The number of an entry, which comes last if it is new."""
        entry_index = self._numbers.setdefault(
            entry if key is None else key, len(self)
        )
        if entry_index == len(self):
            self.append(entry)
        return entry_index
