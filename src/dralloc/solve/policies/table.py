"""The policies by name, and in which order they take demands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dralloc.objects.choices import Mode
from dralloc.objects.errors import ChoiceError
from dralloc.objects.value_kinds import FUNCTION
from dralloc.problem import DemandIndex, Problem, indices
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit.batch import place_all
from dralloc.solve.first_fit.quick_run import QuickRun
from dralloc.solve.policies.protocol import (
    AskingRun,
    Policy,
    order_of,
    policy_name,
)
from dralloc.solve.policies.scored_run import ScoredRun
from dralloc.solve.policies.scores import (
    Scoring,
    least_fragmentation,
    least_left,
)
from dralloc.solve.policies.sizes import PARTS, Sizes
from dralloc.solve.work import phase

__all__ = ["POLICIES", "as_given", "place", "way_of"]

Order = Callable[[Problem], Sequence[DemandIndex]]
"""Puts the demands of a problem, by index, in order."""


def as_given(problem: Problem) -> Sequence[DemandIndex]:
    """Return the demands in the scheduler's order: by priority, then by age."""
    return indices(problem.demands)


def _largest_first(problem: Problem) -> Sequence[DemandIndex]:
    """By priority; of equal priority the largest first, of equal size those that may go to fewer nodes."""
    sizes = Sizes(problem)

    def key(demand_index: DemandIndex) -> tuple[int, int, int]:
        demand = problem.demands[demand_index]
        return (
            -demand.priority,
            -sizes.of(demand),
            len(problem.candidate_nodes(demand)),
        )

    return sorted(as_given(problem), key=key)


def _densest_first(problem: Problem) -> Sequence[DemandIndex]:
    """The most weight per size first: the greedy order for the knapsack problem (Dantzig 1957)."""
    sizes = Sizes(problem)

    def density(demand_index: DemandIndex) -> Fraction:
        demand = problem.demands[demand_index]
        return Fraction(demand.weight * PARTS, sizes.of(demand))

    return sorted(as_given(problem), key=density, reverse=True)


@dataclass(frozen=True, slots=True)
class KnownPolicy:
    """A way to place one demand after the other that dralloc knows by name.

    Parameters
    ----------
    name
        How users call it.
    summary
        What it does, in a line.
    order
        In which order demands are taken.
    scoring
        Which node gets a demand; None for the first that can hold it. With a score the components of the node with the
        least left are searched first.
    """

    name: str
    summary: str
    order: Order = as_given
    scoring: Scoring | None = None


POLICIES: Final[Mapping[str, KnownPolicy]] = {
    policy.name: policy
    for policy in (
        KnownPolicy(
            "first-fit",
            "as upstream: by priority and age, each on the first node that can hold it",
        ),
        KnownPolicy(
            "priority-ordered",
            "first fit, but the largest first inside a priority",
            order=_largest_first,
        ),
        KnownPolicy(
            "best-fit",
            "each on the node, and the device, with the least left",
            scoring=least_left,
        ),
        KnownPolicy(
            "fgd",
            "each on the node where it adds the least expected fragmentation",
            scoring=least_fragmentation,
        ),
        KnownPolicy(
            "density",
            "the most weight per size first, each by best fit",
            order=_densest_first,
            scoring=least_left,
        ),
    )
}


def way_of(choice: str | Policy) -> Mode | str | Policy:
    """Return the mode, or else the policy that a word names, or that the user gave.

    Raises
    ------
    ChoiceError
        The word stands for neither.
    """
    if not isinstance(choice, str):
        FUNCTION.require("mode", choice)
        return choice
    if choice in tuple(Mode):
        return Mode(choice)
    if choice not in POLICIES:
        raise ChoiceError("mode", choice, dict.fromkeys((*Mode, *POLICIES)))
    return choice


def place(problem: Problem, policy: str | Policy) -> Solution:
    """Place the demands of a problem by a policy: one of those known by name, or one of the user.

    A gang stands where the first of its members does, and has its quorum or nothing, as by first fit. With a score, a
    selector that fails on a device rules out the device alone, and a node that ends with an error is passed over; the
    last such error is kept for a demand that fits nowhere.

    Raises
    ------
    ChoiceError
        There is no such policy.
    DrallocError
        The policy of the user answers with something that it was not asked about.
    """
    timings: dict[str, float] = {}
    if not isinstance(policy, str):
        with phase(timings, policy_name(policy)):
            asking = AskingRun(problem, policy)
            order = order_of(problem, policy)
            return place_all(asking, problem, order, timings)
    chosen = POLICIES.get(policy)
    if chosen is None:
        raise ChoiceError("policy", policy, POLICIES)
    with phase(timings, policy):
        run = QuickRun(problem)
        if chosen.scoring is not None:
            run = ScoredRun(problem, chosen.scoring)
        return place_all(run, problem, chosen.order(problem), timings)
