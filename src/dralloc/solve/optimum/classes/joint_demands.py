"""Joint demands: demands that share claims and are therefore on one node, together with those that share nothing.

A claim that several demands list is granted once, with one of them, and the others go where its devices can be used. A
serving mode of a joint demand places some of its demands on one node, and asks there for the claims that they share and
for all of their own. That covers every answer if

- the demands list the same shared claims, and nobody else lists any of them, so that no other demand is bound;
- whatever serves those claims includes a device that can be used from one node alone (see
  `dralloc.solve.optimum.division`), so that all who are placed are there;
- a gang has all or none of them and needs all of its members, so that an admitted gang has it placed as a whole;
- no rule between pods and no constraint over several claims is about them, and classes can express each alone.

Which of equal demands are placed does not matter: the first ones. A demand that asks for nothing of its own, on any
node where the others may go, comes along whenever one of them is placed, as that is worth more and takes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product

from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, Problem
from dralloc.problem.grouping import grouped
from dralloc.solve.optimum.classes.disjoint_sets import DisjointSets
from dralloc.solve.optimum.stopping import Stop

__all__ = ["JointDemands", "granted_with", "subsets"]


class JointDemands:
    """Finds the joint demands of a problem, and which of them a gang binds together.

    Attributes
    ----------
    users
        Of the claims that several demands list, these demands.
    """

    def __init__(self, problem: Problem, stop: Stop) -> None:
        self.demands = problem.demands
        # A demand with a defect is never placed; in a gang it is for the per-device model to say what follows.
        self._able = [
            index
            for index, each in enumerate(stop.hundreds(self.demands))
            if each.gang or not each.is_defective
        ]
        users = grouped(
            (claim.key, index)
            for index in self._able
            for claim in self.demands[index].claims
            if claim.requests
        )
        self.users = {
            key: tuple(found) for key, found in users.items() if len(found) > 1
        }

    def blocks(self) -> Collection[list[int]]:
        """The demands that gangs and shared claims bind together, in order."""
        sets, gangs = DisjointSets(len(self.demands)), dict[str, int]()
        for users in self.users.values():
            sets.unite_all(users)
        for index in self._able:
            if gang := self.demands[index].gang:
                sets.unite(gangs.setdefault(gang, index), index)
        return sets.groups(self._able)

    def of(self, block: Sequence[int]) -> list[tuple[int, ...]]:
        """The joint demands of a block; none if its demands cannot be told apart like that (see the module)."""
        found: dict[tuple[int, ...], None] = {}
        for index in block:
            sharing = {
                self.users[claim.key]
                for claim in self.demands[index].claims
                if claim.key in self.users
            }
            if len(sharing) > 1:
                return []
            found[sharing.pop() if sharing else (index,)] = None
        first = self.demands[block[0]]
        whole = first.quorum in {None, len(block)} and all(
            self.demands[each].gang == first.gang for each in block
        )
        return list(found) if whole or len(found) == len(block) else []


def granted_with(demands: Iterable[Demand]) -> Iterator[list[bool]]:
    """For each of demands on one node, which of its claims are granted with it: those that none before it lists."""
    known: set[ClaimKey] = set()
    for demand in demands:
        yield [claim.key not in known for claim in demand.claims]
        known.update(claim.key for claim in demand.claims)


def subsets(runs: Sequence[tuple[int, bool]]) -> Iterator[tuple[int, ...]]:
    """Which demands may be placed: of each run of equal ones, given its length, all or the first few but not none.

    Each run is given by its length, and whether its demands always come along.
    """
    starts = [sum(length for length, _ in runs[:number]) for number in range(len(runs))]
    for counts in product(
        *(range(length if always else 0, length + 1) for length, always in runs)
    ):
        if any(counts):
            yield tuple(
                start + each
                for start, count in zip(starts, counts, strict=True)
                for each in range(count)
            )
