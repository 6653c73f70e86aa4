"""A mix of demands with numbers: what is wished for, or all that is pending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from dralloc.choices import Choices
from dralloc.cluster import Cluster
from dralloc.compiler import compile_cluster
from dralloc.errors import DrallocError
from dralloc.problem import Claim, Demand, Problem
from dralloc.whatif.wishes import Source, Wish, stage

__all__ = ["Demanded", "demanded"]

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Demanded:
    """Kinds of demands in an empty cluster, with the number that is to be had of each.

    Parameters
    ----------
    problem
        The cluster as if nothing were allocated.
    demands
        One of each kind.
    titles
        What each is called.
    numbers
        How many there are of each.
    left_out
        What is pending and does not count, with the reason.
    """

    problem: Problem
    demands: tuple[Demand, ...]
    titles: tuple[str, ...]
    numbers: tuple[int, ...]
    left_out: tuple[str, ...] = ()

    def without(self, place: int, reason: str) -> Demanded:
        """The same without one of the kinds."""

        def others(every: Sequence[_Item]) -> tuple[_Item, ...]:
            return (*every[:place], *every[place + 1 :])

        return replace(
            self,
            demands=others(self.demands),
            titles=others(self.titles),
            numbers=others(self.numbers),
            left_out=(*self.left_out, f"{self.titles[place]}: {reason}"),
        )


def demanded(cluster: Cluster, wishes: Sequence[Wish], choices: Choices) -> Demanded:
    """Compile what is wished for, once each if no number is given; without wishes, all that is pending.

    Raises
    ------
    DrallocError
        There is no such claim, template or pod, or nothing is pending.
    """
    asked, left_out = (wishes, ()) if wishes else _pending(cluster, choices)
    if not asked:
        raise DrallocError("nothing is pending: say what is wanted with --claim, --template or --pod")
    staged = stage(cluster, asked, choices, empty=True)
    kinds: dict[Hashable, list[int]] = {}
    for place, demand in enumerate(staged.demands):
        kinds.setdefault(_kind(staged.compiled.problem, demand), []).append(place)
    groups = list(kinds.values())
    return Demanded(
        staged.compiled.problem,
        tuple(staged.demands[group[0]] for group in groups),
        tuple(_title([asked[place] for place in group]) for group in groups),
        tuple(sum(asked[place].number or 1 for place in group) for group in groups),
        tuple(left_out),
    )


def _pending(cluster: Cluster, choices: Choices) -> tuple[list[Wish], list[str]]:
    """A wish for every pending pod and lone claim, and what cannot be counted."""
    compiled = compile_cluster(cluster, choices)
    users = Counter(claim.key for demand in compiled.problem.demands for claim in demand.claims)
    wishes, left_out = [], []
    for demand in compiled.problem.demands:
        wish = Wish(demand.key, Source.CLAIM if compiled.is_claim(demand) else Source.POD, 1)
        shared = any(users[claim.key] > 1 for claim in demand.claims)
        defect = next((claim.defect for claim in demand.claims if claim.defect), "")
        if shared or defect:
            why = "shares a claim with other pods" if shared else defect.removeprefix(f"{wish.title}: ")
            left_out.append(f"{wish.title}: {why}")
        else:
            wishes.append(wish)
    return wishes, left_out


def _kind(problem: Problem, demand: Demand) -> Hashable:
    """Everything about a demand but who it is."""
    return demand.nodes, tuple(_content(problem, claim) for claim in demand.claims)


def _content(problem: Problem, claim: Claim) -> Hashable:
    kind = problem.eligibility.request_key
    requests = tuple(
        tuple((kind(one.index), one.name, one.count, one.admin, one.defect) for one in request.alternatives)
        for request in claim.requests
    )
    return requests, claim.constraints, claim.defect


def _title(wishes: Sequence[Wish]) -> str:
    more = len(wishes) - 1
    return wishes[0].title + (f" and {more} like it" if more else "")
