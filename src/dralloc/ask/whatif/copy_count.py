"""How many more of one demand fit: exactly, by first fit, and device by device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dralloc.ask.whatif.copies import (
    MOST_COPIES,
    PerDeviceBound,
    is_for_nothing,
    replicated,
    takes_nothing,
)
from dralloc.ask.whatif.node_types import NotRepresentativeError
from dralloc.check import check
from dralloc.objects.choices import Options
from dralloc.objects.errors import FatalError
from dralloc.problem import Demand, Problem
from dralloc.problem.equivalence import NodeClasses, equivalent_nodes
from dralloc.problem.solution import Solution
from dralloc.problem.subproblem import cut
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve

__all__ = ["CopyCount", "count_copies"]


_TRIES = (32, 512, 10_000)
"""Where nothing tells how many there could be, so many are tried: more as long as all of them fit."""

_ONCE: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True)
class CopyCount:
    """How many of a demand fit. None stands for no end.

    Parameters
    ----------
    number
        So many can be placed: the checker has accepted it.
    bound
        Not more than so many can be placed.
    first_fit
        How many first fit places before it fails.
    per_device
        How many there would be if each device were looked at alone.
    reason
        The error that ends first fit's attempt.
    warnings
        Devices left out because a selector failed on them.
    homes
        Where the copies are placed, by name; of nodes that count several times, once.
    """

    number: int | None
    bound: int | None
    first_fit: int | None
    per_device: int | None
    reason: str = ""
    warnings: tuple[str, ...] = ()
    homes: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def exact(self) -> bool:
        """Whether the number is proven."""
        return self.number == self.bound


def count_copies(
    problem: Problem,
    demand: Demand,
    options: Options | None = None,
    times: Mapping[int, int] = _ONCE,
) -> CopyCount:
    """Find out how many more of a demand fit into a problem, of which only the inventory is looked at.

    Of equal nodes one is solved for all. The independent checker has accepted both answers.

    Parameters
    ----------
    times
        How often nodes count, if not once (see `dralloc.ask.whatif.node_types`).

    Raises
    ------
    NotRepresentativeError
        An error ends first fit, so that the order of nodes matters, and some count more than once.
    """
    classes = equivalent_nodes(problem, [demand])
    part = (
        (problem, demand, times)
        if classes is None
        else _one_of_each(problem, demand, classes, times)
    )
    found = _Counting(*part).run(options or Options())
    if not found.reason or found.first_fit is None:
        return found
    if any(number > 1 for number in times.values()):
        raise NotRepresentativeError
    # An error on one node ends the attempt, and leaves nothing for the nodes behind it.
    whole = _Counting(problem, demand, {}).first_fit(found.per_device)
    return replace(found, first_fit=len(whole.placements), reason=_first_error(whole))


def _one_of_each(
    problem: Problem, demand: Demand, classes: NodeClasses, times: Mapping[int, int]
) -> tuple[Problem, Demand, dict[int, int]]:
    """The problem with one node of each class, the demand there, and how often each of these nodes counts."""
    counts = {
        place: sum(times.get(node, 1) for node in group)
        for place, group in enumerate(classes.groups)
    }
    return (
        cut(problem, [group[0] for group in classes.groups]).problem,
        replace(demand, nodes=None),
        counts,
    )


@dataclass(frozen=True)
class _Counting:
    """Copies of a demand on nodes that count several times."""

    problem: Problem
    demand: Demand
    times: Mapping[int, int]

    def run(self, options: Options) -> CopyCount:
        """Place as many as possible."""
        estimate = PerDeviceBound(self.problem, self.demand)
        per_device, most = estimate.total(self.times), estimate.total()
        if per_device is None and takes_nothing(self.problem, self.demand):
            greedy = self.first_fit(1)
            return CopyCount(
                None, None, None if greedy.placements else 0, None, _first_error(greedy)
            )
        for tried in self._tries() if most is None else (most,):
            problem = self._replicated(tried)
            greedy = first_fit(problem)
            best = solve(problem, options, hint=greedy)
            if best.tiers[0].value < tried or self._is_endless(problem, best):
                break
        check(problem, greedy)
        check(problem, best)
        if self._is_endless(problem, best):
            ends = not self._is_endless(problem, greedy)
            number = self._count(greedy) if ends else None
            return CopyCount(
                None, None, number, None, _first_error(greedy), best.warnings
            )
        number, tier = self._count(best), best.tiers[0]
        # What is open could be open on nodes of the most frequent class; if no copy is left, there could be more.
        open_ended = tier.value == len(problem.demands) != most
        bound = number + (tier.bound - tier.value) * max(self.times.values(), default=1)
        return CopyCount(
            number=number,
            bound=per_device if open_ended else bound,
            first_fit=self._count(greedy),
            per_device=per_device,
            reason=_first_error(greedy),
            warnings=best.warnings,
            homes=tuple(problem.nodes[one.node].name for one in best.placements),
        )

    def _tries(self) -> Sequence[int]:
        """Models of many copies that take all there is grow with the square of their number."""
        for_all = any(each.count is None for each in self.demand.alternatives())
        return _TRIES[:-1] if for_all else _TRIES

    def _is_endless(self, problem: Problem, solution: Solution) -> bool:
        """Whether all copies are placed, one of them for nothing, so that there is always room for another one."""
        placed = solution.placements
        return len(placed) == len(problem.demands) and any(
            is_for_nothing(problem, one) for one in placed
        )

    def first_fit(self, most: int | None) -> Solution:
        """What first fit makes of so many copies."""
        return first_fit(self._replicated(most))

    def _replicated(self, most: int | None) -> Problem:
        number = min(_TRIES[-1] if most is None else most, MOST_COPIES)
        return replicated(self.problem, [self.demand], [max(number, 1)])

    def _count(self, solution: Solution) -> int:
        return sum(
            self.times.get(placement.node, 1) for placement in solution.placements
        )


def _first_error(solution: Solution) -> str:
    """Why the first copy that is not placed ended with an error; empty if it just did not fit."""
    fatal = (
        str(error)
        for error in solution.errors.values()
        if isinstance(error, FatalError)
    )
    return next(fatal, "")
