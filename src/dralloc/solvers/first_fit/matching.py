"""Whether things of limited number can be handed out so that everybody gets enough: a bipartite matching."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

__all__ = ["can_serve"]

T = TypeVar("T", bound=Hashable)


def can_serve(needs: Sequence[int], offers: Sequence[Sequence[T]], multiplicity: Mapping[T, int]) -> bool:
    """Whether every party gets as many different things of its offer as it needs.

    Parameters
    ----------
    needs
        How many things each party needs.
    offers
        The things that each party can use.
    multiplicity
        How many parties can have a thing together; one if it is not listed.
    """
    users: dict[T, set[int]] = {}

    def find(party: int, seen: set[T]) -> bool:
        """Give the party one more thing, if need be by having others change theirs."""
        for thing in offers[party]:
            mine = users.setdefault(thing, set())
            if party not in mine and len(mine) < multiplicity.get(thing, 1):
                mine.add(party)
                return True
        for thing in offers[party]:
            mine = users[thing]
            if thing in seen or party in mine:
                continue
            seen.add(thing)
            for other in tuple(mine):
                if find(other, seen):
                    mine.discard(other)
                    mine.add(party)
                    return True
        return False

    return all(find(party, set()) for party, need in enumerate(needs) for _ in range(need))
