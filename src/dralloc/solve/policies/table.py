"""The policies by name, and in which order they take demands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dralloc.objects.choices import Mode
from dralloc.objects.errors import ChoiceError
from dralloc.problem import Problem
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit.batch import place_all
from dralloc.solve.first_fit.quick import QuickRun
from dralloc.solve.policies.asking_run import AskingRun, order_of
from dralloc.solve.policies.protocol import Policy, policy_name
from dralloc.solve.policies.run import ScoredRun
from dralloc.solve.policies.scores import Scoring, least_fragmentation, least_left
from dralloc.solve.policies.sizes import PARTS, Sizes
from dralloc.solve.timing import phase

__all__ = ["POLICIES", "KnownPolicy", "as_given", "place", "way_of"]


Order = Callable[[Problem], Sequence[int]]
"""Puts the demands of a problem, by index, in order."""


def as_given(problem: Problem) -> Sequence[int]:
    """As the scheduler takes pods: by priority, then by age."""
    return range(len(problem.demands))


def largest_first(problem: Problem) -> Sequence[int]:
    """By priority; of equal priority the largest first, of equal size those that may go to fewer nodes.

    Sizes: `dralloc.solve.policies.sizes`.
    """
    sizes = Sizes(problem)

    def key(number: int) -> tuple[int, int, int]:
        demand = problem.demands[number]
        return -demand.priority, -sizes.of(demand), len(problem.candidate_nodes(demand))

    return sorted(as_given(problem), key=key)


def densest_first(problem: Problem) -> Sequence[int]:
    """The most weight per size first: the greedy order for the knapsack problem (Dantzig 1957)."""
    sizes = Sizes(problem)

    def density(number: int) -> Fraction:
        demand = problem.demands[number]
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
            order=largest_first,
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
            order=densest_first,
            scoring=least_left,
        ),
    )
}


def way_of(given: str | Policy) -> Mode | str | Policy:
    """Return what answers: the mode or, if it is none of these, the policy that a word stands for, or that of the user.

    Raises
    ------
    ChoiceError
        The word stands for neither.
    """
    if not isinstance(given, str):
        return given
    if given in tuple(Mode):
        return Mode(given)
    if given not in POLICIES:
        raise ChoiceError("mode", given, dict.fromkeys((*Mode, *POLICIES)))
    return given


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
            return place_all(
                AskingRun(problem, policy), problem, order_of(problem, policy), timings
            )
    chosen = POLICIES.get(policy)
    if chosen is None:
        raise ChoiceError("policy", policy, POLICIES)
    with phase(timings, policy):
        run = (
            QuickRun(problem)
            if chosen.scoring is None
            else ScoredRun(problem, chosen.scoring)
        )
        return place_all(run, problem, chosen.order(problem), timings)
