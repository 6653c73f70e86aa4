"""What the optimum would have to give up to place a demand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dralloc.ask.explain.gang import mates
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table
from dralloc.problem import Problem
from dralloc.problem.solution import Solution, Status
from dralloc.solve.optimum import Options, solve

__all__ = ["Competition", "compete"]


@dataclass(frozen=True, slots=True)
class Competition:
    """The best answer that places the demand, beside the optimum.

    Parameters
    ----------
    possible
        Whether any answer places the demand beside what is allocated already.
    displaced, gained
        Demands that only the optimum places, and those that only the other answer places, without the demand itself.
    weight, best
        The weight that the answer with the demand places, and that of the optimum.
    proven
        Whether no answer with the demand places more.
    gang
        Whether the demand needs others of its gang beside it.
    """

    possible: bool
    displaced: tuple[ClaimKey, ...]
    gained: tuple[ClaimKey, ...]
    weight: int
    best: int
    proven: bool
    gang: bool = False

    def parts(self) -> list[Part]:
        """The competition as tables and lines."""
        if not self.possible:
            who = "its gang alone would" if self.gang else "alone would it"
            return [Line(f"Not even {who} fit beside what is allocated already.")]
        verdict = "proven" if self.proven else "not proven"
        cost = f"With it, at most weight {self.weight} can be placed ({verdict}); the optimum places {self.best}."
        rows = [(str(key), "is left out") for key in self.displaced]
        rows += [(str(key), "is placed, too") for key in self.gained]
        return [
            Line(cost),
            Table("What it competes with", ("pod or claim", "if it were placed"), rows),
        ]


def compete(
    problem: Problem, number: int, optimum: Solution, options: Options
) -> Competition:
    """Solve the problem again with a demand that is worth more than all others together."""
    total = sum(demand.weight for demand in problem.demands)
    members = set(mates(problem, number))
    demands = tuple(
        replace(demand, weight=demand.weight * (total + 1))
        if index in members
        else demand
        for index, demand in enumerate(problem.demands)
    )
    forced = solve(replace(problem, demands=demands), options, hint=optimum)
    before = {placement.demand for placement in optimum.placements}
    after = {placement.demand for placement in forced.placements}

    def weight(placed: set[int]) -> int:
        return sum(problem.demands[index].weight for index in placed)

    def keys(indices: set[int]) -> tuple[ClaimKey, ...]:
        return tuple(problem.demands[index].key for index in sorted(indices))

    return Competition(
        possible=number in after,
        displaced=keys(before - after),
        gained=keys(after - before - members),
        weight=weight(after),
        best=weight(before),
        proven=forced.status is Status.OPTIMAL,
        gang=len(members) > 1,
    )
