"""The policies by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dralloc.errors import ChoiceError
from dralloc.problem import Problem
from dralloc.solution import Solution
from dralloc.solvers.first_fit.batch import place_all
from dralloc.solvers.first_fit.quick import QuickRun
from dralloc.solvers.policies.orders import Order, as_given, densest_first, largest_first
from dralloc.solvers.policies.run import ScoredRun
from dralloc.solvers.policies.scores import LeastFragmentation, LeastLeft, Scoring
from dralloc.timing import phase

__all__ = ["POLICIES", "Policy", "place"]


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to place one demand after the other.

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


POLICIES: Final[Mapping[str, Policy]] = {
    policy.name: policy
    for policy in (
        Policy("first-fit", "as upstream: by priority and age, each on the first node that can hold it"),
        Policy("priority-ordered", "first fit, but the largest first inside a priority", order=largest_first),
        Policy("best-fit", "each on the node, and the device, with the least left", scoring=LeastLeft),
        Policy("fgd", "each on the node where it adds the least expected fragmentation", scoring=LeastFragmentation),
        Policy("density", "the most weight per size first, each by best fit", order=densest_first, scoring=LeastLeft),
    )
}


def place(problem: Problem, policy: str) -> Solution:
    """Place the demands of a problem by a policy.

    A gang stands where the first of its members does, and has its quorum or nothing, as by first fit. With a score, a
    selector that fails on a device rules out the device alone, and a node that ends with an error is passed over; the
    last such error is kept for a demand that fits nowhere.

    Raises
    ------
    ChoiceError
        There is no such policy.
    """
    chosen = POLICIES.get(policy)
    if chosen is None:
        raise ChoiceError("policy", policy, POLICIES)
    timings: dict[str, float] = {}
    with phase(timings, policy):
        run = QuickRun(problem) if chosen.scoring is None else ScoredRun(problem, chosen.scoring)
        return place_all(run, problem, chosen.order(problem), timings)
