"""Disjoint sets of small integers, for inventories of a million devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

__all__ = ["DisjointSets"]


class DisjointSets:
    """The integers below a number, each in a set of its own until sets are united."""

    def __init__(self, size: int) -> None:
        self._parents = list(range(size))

    def find(self, member: int) -> int:
        """The smallest member of its set."""
        parents = self._parents
        root = member
        while parents[root] != root:
            root = parents[root]
        while parents[member] != root:
            parents[member], member = root, parents[member]
        return root

    def unite(self, first: int, second: int) -> int:
        """Join two sets; returns the smallest member."""
        first, second = self.find(first), self.find(second)
        if first > second:
            first, second = second, first
        self._parents[second] = first
        return first

    def unite_all(self, members: Iterable[int]) -> None:
        """Join the sets of all of them."""
        members = iter(members)
        first = next(members, None)
        for other in members if first is not None else ():
            self.unite(first, other)  # type: ignore[arg-type]

    def groups(self, members: Iterable[int]) -> Collection[list[int]]:
        """The members by their sets, in order."""
        found: dict[int, list[int]] = defaultdict(list)
        for member in members:
            found[self.find(member)].append(member)
        return found.values()

    def copy(self) -> DisjointSets:
        """An independent copy."""
        other = DisjointSets(0)
        other._parents = self._parents.copy()
        return other
