"""First fit for many demands: in order, each on the first node that can hold all of its claims.

`first_fit` chooses between the quick run (`dralloc.solve.first_fit.quick_run`), which does not try again what is known
to fail, and the plain one, with the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf

from dralloc.objects.limits import without_garbage_collection
from dralloc.problem import DemandIndex, Problem, indices
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit.plain import PlainRun
from dralloc.solve.first_fit.pruned import DEAD_ENDS
from dralloc.solve.first_fit.quick_run import QuickRun
from dralloc.solve.work import phase

__all__ = ["first_fit", "place_all", "placed_together"]


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
        return place_all(run, problem, indices(problem.demands), timings)


def placed_together(
    problem: Problem, order: Iterable[DemandIndex]
) -> list[list[DemandIndex]]:
    """Return the demands that are placed together, by the first of them."""
    members_of: dict[object, list[DemandIndex]] = {}
    for demand in order:
        gang = problem.demands[demand].placed_with or demand
        members_of.setdefault(gang, []).append(demand)
    return list(members_of.values())


def place_all(
    run: PlainRun,
    problem: Problem,
    order: Iterable[DemandIndex],
    timings: dict[str, float],
    seconds: Callable[[], float] = lambda: inf,
) -> Solution:
    """Place the demands in this order; gangs, and trees of gangs, stand where the first of their members does.

    Parameters
    ----------
    seconds
        Tells how many seconds are left; without any, the demands that are still to come are not placed.
    """
    for members in placed_together(problem, order):
        if seconds() <= 0:
            break
        run.place_together(members)
    placements = tuple(
        sorted(run.placements, key=lambda placement: placement.demand)
    )
    return Solution(
        placements, errors=run.errors, timings=timings, steps=run.steps
    )
