"""How much of a gang fits, where each of its members would fit alone (KEP-4671: as many as it needs, or none)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dralloc.ask.explain.change import Suggestion
from dralloc.ask.explain.raised_cap import least_raises
from dralloc.ask.explain.snapshot import DemandSnapshot
from dralloc.check import check
from dralloc.objects.budget import Budget, BudgetKey
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line
from dralloc.problem import Problem, quorum_of
from dralloc.problem.solution import Solution
from dralloc.solve.optimum import Options, solve

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
        return Line(
            f"It would fit alone. Of the {len(self.members)} members of its gang {limits}."
        )


def mates(problem: Problem, number: int) -> list[int]:
    """The members of a demand's gang, by index; the demand alone if it has none."""
    gang = problem.demands[number].gang
    return [
        index
        for index, one in enumerate(problem.demands)
        if index == number or (gang and one.gang == gang)
    ]


def gather(
    snapshot: DemandSnapshot, options: Options
) -> tuple[Gathering, tuple[Suggestion, ...]] | None:
    """Find out how many members fit, and to which amounts raised caps would let in all of them.

    None if a member uses a claim that somebody else has been granted.
    """
    problem = snapshot.problem
    members = mates(problem, snapshot.number)
    claims = {
        claim.key for member in members for claim in problem.demands[member].claims
    }
    if claims & snapshot.placed.keys():
        return None
    model = _GangModel(snapshot, members, options)
    found = model.fill(snapshot.caps.budgets)
    number, bound = len(found.placements), found.tiers[0].bound
    keys = tuple(problem.demands[member].key for member in members)
    suggestions = model.raises() if number < model.needed else ()
    return Gathering(keys, number, bound), tuple(suggestions)


class _GangModel:
    """The members, and everything that is left for them when one of them is explained."""

    def __init__(
        self, snapshot: DemandSnapshot, members: Sequence[int], options: Options
    ) -> None:
        self.caps = snapshot.caps
        self.options = options
        problem = snapshot.problem
        demands = [problem.demands[member].by_itself(weight=1) for member in members]
        self.namespaces = {demand.key.namespace for demand in demands}
        self.needed = quorum_of([problem.demands[member] for member in members])
        self.who = f"{'all' if self.needed == len(members) else 'the needed'} {self.needed} members"
        self.part = snapshot.context.part(problem.all_nodes, demands).problem

    def fill(self, caps: Sequence[Budget]) -> Solution:
        """Place as many members as possible under these caps."""
        part = replace(self.part, budgets=tuple(caps))
        solution = solve(part, self.options)
        check(part, solution)
        return solution

    def raises(self) -> Iterator[Suggestion]:
        """A cap that it is enough to raise; if there is none, all caps of these namespaces together."""
        return least_raises(
            self.caps,
            [key for key in self.caps.most if key.namespace in self.namespaces],
            self._admit,
        )

    def _admit(
        self, levels: Mapping[BudgetKey, int | None]
    ) -> tuple[Mapping[BudgetKey, int], str] | None:
        changed = [
            replace(one, most=levels.get(one.key, one.most))
            for one in self.caps.budgets
        ]
        solution = self.fill([one for one in changed if one.most is not None])
        if len(solution.placements) < self.needed:
            return None
        return self.caps.used(
            self.part, solution.placements
        ), f"{self.who} of the gang fit"
