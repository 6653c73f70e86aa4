"""Earlier answers, completed by first fit: who has a place there keeps it, if it is still to be had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby

from dralloc.objects.limits import without_garbage_collection
from dralloc.problem import DemandIndex, Problem, indices, quorum_of
from dralloc.problem.solution import Placement, Solution
from dralloc.solve.first_fit.batch import place_all, placed_together
from dralloc.solve.first_fit.quick_run import QuickRun
from dralloc.solve.work import phase

__all__ = ["completed", "completed_by_weight"]


@without_garbage_collection()
def completed(problem: Problem, placements: Iterable[Placement]) -> Solution:
    """Place, by first fit, the demands that an earlier answer does not place, beside those that it places.

    Who has a place there keeps it if all of it is still to be had; a gang if all of its places are, and they are
    enough. All others come after them; but whoever finds no room comes before all who weigh less, and some of these
    lose their places, if that is worth more.

    Parameters
    ----------
    placements
        The earlier answer, in the numbers of the problem, of which some may be impossible by now.
    """
    timings: dict[str, float] = {}
    with phase(timings, "first fit"):
        units = placed_together(problem, indices(problem.demands))
        earlier = {placement.demand: placement for placement in placements}
        answer = _beside(problem, units, earlier, timings)
        placed = {placement.demand for placement in answer.placements}
        in_vain = [unit for unit in units if placed.isdisjoint(unit)]
        heaviest_of = partial(_heaviest, problem)
        lightest = min(map(heaviest_of, units), default=0)
        if all(heaviest_of(unit) == lightest for unit in in_vain):
            return answer
        others = _by_weight(problem, answer.placements, timings)
        return max(answer, others, key=partial(_worth, problem))


def completed_by_weight(
    problem: Problem, placements: Iterable[Placement]
) -> Solution:
    """Place all demands in turn, the heaviest first: where an earlier answer has them, if that is still to be had.

    So nobody stands in the way of who weighs more.

    Parameters
    ----------
    placements
        The earlier answer, in the numbers of the problem.
    """
    timings: dict[str, float] = {}
    with phase(timings, "first fit"):
        return _by_weight(problem, placements, timings)


def _by_weight(
    problem: Problem,
    placements: Iterable[Placement],
    timings: dict[str, float],
) -> Solution:
    heaviest_first = sorted(
        placed_together(problem, indices(problem.demands)),
        key=partial(_heaviest, problem),
        reverse=True,
    )
    earlier = {placement.demand: placement for placement in placements}
    return _beside(problem, heaviest_first, earlier, timings, in_turn=True)


def _beside(
    problem: Problem,
    units: Sequence[Sequence[DemandIndex]],
    earlier: Mapping[DemandIndex, Placement],
    timings: dict[str, float],
    *,
    in_turn: bool = False,
) -> Solution:
    """Place those without a place beside those who have one: after all of these, or when all as heavy have theirs."""
    run = QuickRun(problem)
    turns = [list(units)]
    if in_turn:
        by_weight = groupby(units, partial(_heaviest, problem))
        turns = [list(equal) for _, equal in by_weight]
    for turn in turns:
        coming: list[DemandIndex] = []
        for members in turn:
            present = [
                earlier[member] for member in members if member in earlier
            ]
            if not (
                _is_whole(problem, members, present) and run.restore(present)
            ):
                coming += members
        place_all(run, problem, coming, timings)
    return place_all(run, problem, (), timings)


def _heaviest(problem: Problem, members: Iterable[DemandIndex]) -> int:
    """Return what the heaviest of those who are placed together weighs."""
    return max(problem.demands[member].weight for member in members)


def _worth(problem: Problem, answer: Solution) -> int:
    return sum(
        problem.demands[placement.demand].weight
        for placement in answer.placements
    )


def _is_whole(
    problem: Problem,
    members: Sequence[DemandIndex],
    present: Sequence[Placement],
) -> bool:
    """Return whether so many of those that are placed together are placed that the others need not be."""
    demands = [problem.demands[member] for member in members]
    if any(demand.parent for demand in demands):
        return len(present) == len(members)
    return bool(present) and len(present) >= quorum_of(demands)
