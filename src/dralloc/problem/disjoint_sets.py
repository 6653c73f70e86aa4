"""What belongs together, directly or by way of others, in sets that have nothing in common.

Networkx has such sets as well, but importing it takes longer than most commands need for all that they ask of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

__all__ = ["DisjointSets"]

M = TypeVar("M", bound=Hashable)


class DisjointSets(Generic[M]):
    """Disjoint sets, which only grow together.

    A set is named by one of its members, and keeps its name until it is united with another. Whoever is asked for
    without having been united with anybody is a set of its own.
    """

    def __init__(self, members: Iterable[M] = ()) -> None:
        # By member the next one on the way to the name of its set, whose next one is itself.
        self._next_of: dict[M, M] = {member: member for member in members}
        self._sizes: dict[M, int] = {}

    def __getitem__(self, member: M) -> M:
        """Return the name of the member's set."""
        next_of = self._next_of
        name = next_of.setdefault(member, member)
        while name != next_of[name]:
            name = next_of[name]
        # The next who asks on this way is there at once.
        while next_of[member] != name:
            next_of[member], member = name, next_of[member]
        return name

    def __iter__(self) -> Iterator[M]:
        """Every member of a set, in the order in which they came."""
        return iter(self._next_of)

    def unite(self, *members: M) -> None:
        """Make one set of all in which there is one of the members."""
        names = {self[member] for member in members}
        if len(names) < 2:
            return
        # Ways stay short where the others get the name of the largest.
        name = max(names, key=self._size)
        self._sizes[name] = sum(map(self._size, names))
        for other in names:
            self._next_of[other] = name

    def _size(self, name: M) -> int:
        return self._sizes.get(name, 1)
