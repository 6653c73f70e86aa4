"""First fit for many demands: in order, each on the first node that can hold all of its claims."""

from __future__ import annotations

from collections.abc import Iterable

from dralloc.objects.garbage import without_garbage_collection
from dralloc.problem import Problem
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit.plain import PlainRun
from dralloc.solve.first_fit.pruned import DEAD_ENDS
from dralloc.solve.first_fit.quick import QuickRun
from dralloc.solve.timing import phase

__all__ = ["first_fit", "place_all"]


@without_garbage_collection()
def first_fit(
    problem: Problem, *, pruning: bool = True, dead_ends: int = DEAD_ENDS
) -> Solution:
    """Place the demands one after the other; what one gets is in use for the next.

    A fatal error ends the attempt for that demand. After an error of one node the next node is tried, and the last such
    error is kept if no node fits (upstream's scheduler plugin). A gang is placed where its first member stands, one
    member after the other; if fewer of them fit than it needs, none of them is placed.

    Parameters
    ----------
    pruning
        Whether to leave out what cannot change the answer: nodes that failed for an equal demand, and the hopeless
        parts of a search. Without, ``steps`` of the solution counts as upstream does.
    dead_ends
        After so many of them an attempt asks whether it can come to anything at all.
    """
    timings: dict[str, float] = {}
    with phase(timings, "first fit"):
        run = QuickRun(problem, dead_ends) if pruning else PlainRun(problem)
        return place_all(run, problem, range(len(problem.demands)), timings)


def place_all(
    run: PlainRun, problem: Problem, order: Iterable[int], timings: dict[str, float]
) -> Solution:
    """Place the demands in this order; gangs, and trees of gangs, stand where the first of their members does."""
    together: dict[object, list[int]] = {}
    for number in order:
        together.setdefault(problem.demands[number].placed_with or number, []).append(
            number
        )
    for members in together.values():
        run.place_together(members)
    placements = tuple(sorted(run.placements, key=lambda placement: placement.demand))
    return Solution(placements, errors=run.errors, timings=timings, steps=run.steps)
