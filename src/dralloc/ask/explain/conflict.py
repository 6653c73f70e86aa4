"""A minimal conflict: rules that cannot hold together, though they could if any one of them did not hold.

Deletion filter: rules are left out, whole kinds first, as long as what is left is infeasible. Rules are not quite
monotone (``All`` asks for more devices when a selector is left out), so in the end every member is left out once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import or_

from dralloc.ask.explain.changes import Change
from dralloc.ask.explain.conflict_members import Member
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.objects.report import Line, Part, Table

__all__ = ["Conflict", "find_conflict"]


@dataclass(frozen=True)
class Conflict:
    """A minimal conflict.

    Parameters
    ----------
    members
        The rules; with none the demand cannot be placed whatever it asks for.
    """

    members: tuple[Member, ...]
    nodes: int
    """How many nodes were looked at."""

    def parts(self) -> list[Part]:
        """The conflict as tables and lines."""
        if not self.members:
            return [Line("No node could take it, whatever it asked for.")]
        rows = [
            (
                member.kind.value,
                f"{member.title}\n  {member.detail}"
                if member.detail
                else member.title,
            )
            for member in self.members
        ]
        title = "Minimal conflict: impossible together, possible without any one of them"
        return [Table(title, ("kind", "rule"), rows)]


def find_conflict(
    oracle: FeasibilityOracle, members: Sequence[Member]
) -> Conflict | None:
    """Find a minimal conflict among the members; None if the demand can be placed with all of them in force."""
    if oracle.admit(Change()) is not None:
        return None
    return _Filter(oracle, members).run()


class _Filter:
    def __init__(
        self, oracle: FeasibilityOracle, members: Sequence[Member]
    ) -> None:
        self.oracle = oracle
        self.members = members
        self.in_force = list(members)

    def run(self) -> Conflict:
        # Kinds are tried in their order: what is left out first is not blamed. Rules about
        # others go before what the demand itself asks for.
        for _, chunk in groupby(self.members, key=lambda member: member.kind):
            self._prune(list(chunk))
        # Once more one by one, until nothing can go: only then is it minimal.
        while True:
            spare = self._spare()
            if spare is None:
                break
            self.in_force.remove(spare)
        change = self._relaxed(self.in_force)
        # The model is asked about every node with all members in force.
        if self.oracle.admit(change, all_nodes=True) is not None:
            raise AssertionError("a conflict turned out to be feasible")
        return Conflict(
            tuple(reversed(self.in_force)), len(self.oracle.allowed(change))
        )

    def _spare(self) -> Member | None:
        """A member without which the others still cannot hold together."""
        for member in self.in_force:
            if not self._feasible_without([member]):
                return member
        return None

    def _prune(self, chunk: list[Member]) -> None:
        """Leave out as much of the chunk as possible."""
        if not self._feasible_without(chunk):
            self.in_force = [
                member for member in self.in_force if member not in chunk
            ]
        # One of its members is needed: each half by itself, the second beside what is left
        # of the first.
        elif len(chunk) > 1:
            half = len(chunk) // 2
            self._prune(chunk[:half])
            self._prune(chunk[half:])

    def _feasible_without(self, left_out: Sequence[Member]) -> bool:
        remaining = [
            member for member in self.in_force if member not in left_out
        ]
        return self.oracle.admit(self._relaxed(remaining)) is not None

    def _relaxed(self, in_force: Sequence[Member]) -> Change:
        return reduce(
            or_,
            (
                member.without
                for member in self.members
                if member not in in_force
            ),
            Change(),
        )
