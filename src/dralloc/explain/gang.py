"""How much of a gang fits, where each of its members would fit alone (KEP-4671: all or none)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dralloc.budget import Budget
from dralloc.check import check
from dralloc.explain.caps import charged
from dralloc.explain.change import Cap, Change
from dralloc.explain.raised import least_raise, raise_text
from dralloc.explain.suggestions import Cost, Suggestion
from dralloc.explain.turn import Turn
from dralloc.names import ClaimKey
from dralloc.problem import Problem
from dralloc.report import Line
from dralloc.solution import Solution
from dralloc.solvers.cpsat import Options, solve

__all__ = ["Gathering", "gather", "mates"]


@dataclass(frozen=True, slots=True)
class Gathering:
    """How many members of a gang fit at once beside everything that is placed.

    Parameters
    ----------
    members
        All of them.
    number
        So many have been placed by trying, and the checker has accepted it.
    bound
        Not more than so many can be placed.
    """

    members: tuple[ClaimKey, ...]
    number: int
    bound: int

    def line(self) -> Line:
        """The numbers in words."""
        least = "" if self.number == self.bound else f"{self.number} or more, "
        limits = f"{least}at most {self.bound} fit at once beside what is placed"
        return Line(f"It would fit alone. Of the {len(self.members)} members of its gang {limits}.")


def mates(problem: Problem, number: int) -> list[int]:
    """The members of a demand's gang, by index; the demand alone if it has none."""
    gang = problem.demands[number].gang
    return [index for index, one in enumerate(problem.demands) if index == number or (gang and one.gang == gang)]


def gather(turn: Turn, problem: Problem, options: Options) -> tuple[Gathering, tuple[Suggestion, ...]] | None:
    """Find out how many members fit, and to which amounts raised caps would let in all of them.

    None if a member uses a claim that somebody else has been granted.
    """
    members = mates(problem, turn.number)
    claims = {claim.key for member in members for claim in problem.demands[member].claims}
    if claims & turn.placed.keys():
        return None
    hall = _Hall(turn, problem, members, options)
    found = hall.fill(turn.caps.budgets)
    number, bound = len(found.placements), found.tiers[0].bound
    keys = tuple(problem.demands[member].key for member in members)
    suggestions = hall.raises() if number < len(members) else ()
    return Gathering(keys, number, bound), tuple(suggestions)


class _Hall:
    """Everything that is left for the members at the turn of one of them."""

    def __init__(self, turn: Turn, problem: Problem, members: Sequence[int], options: Options) -> None:
        self.caps = turn.caps.budgets
        self.options = options
        demands = [replace(problem.demands[member], gang="", weight=1) for member in members]
        self.namespaces = {demand.key.namespace for demand in demands}
        self.count = len(demands)
        self.room = turn.context.part(problem.all_nodes, demands).problem

    def fill(self, caps: Sequence[Budget]) -> Solution:
        """Place as many members as possible under these caps."""
        room = replace(self.room, budgets=tuple(caps))
        solution = solve(room, self.options)
        check(room, solution)
        return solution

    def raises(self) -> Iterator[Suggestion]:
        """A cap that it is enough to raise; if there is none, all caps of these namespaces together."""
        before = {Cap(one.namespace, one.resource): one.most or 0 for one in self.caps}
        caps = [cap for cap in before if cap.namespace in self.namespaces]
        alone = [one for cap in caps if (one := least_raise([cap], before, self._admit))]
        together = least_raise(caps, before, self._admit) if not alone and len(caps) > 1 else None
        for raised, _ in alone or filter(None, [together]):
            text = raise_text(before, raised)
            outcome = f"all {self.count} members of the gang fit"
            yield Suggestion(text, outcome, Cost.CAP, len(raised), Change(raised=raised))

    def _admit(self, levels: Mapping[Cap, int | None]) -> tuple[Mapping[Cap, int], None] | None:
        limits = {Cap(one.namespace, one.resource): one for one in self.caps}
        changed = {cap: replace(one, most=levels.get(cap, one.most)) for cap, one in limits.items()}
        solution = self.fill([one for one in changed.values() if one.most is not None])
        if len(solution.placements) < self.count:
            return None
        used = charged(self.caps, self.room, solution.placements)
        return {Cap(one.namespace, one.resource): one.used for one in used}, None
