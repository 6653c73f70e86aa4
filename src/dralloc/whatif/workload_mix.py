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
from dralloc.whatif.mix_entries import MixEntry, Source, compile_mix

__all__ = ["WorkloadMix", "workload_mix"]

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class WorkloadMix:
    """Classes of equal demands in an empty cluster, with the number that is to be had of each.

    Parameters
    ----------
    problem
        The cluster as if nothing were allocated.
    demands
        One of each class.
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

    def without(self, place: int, reason: str) -> WorkloadMix:
        """The same without one of the classes."""

        def others(every: Sequence[_Item]) -> tuple[_Item, ...]:
            return (*every[:place], *every[place + 1 :])

        return replace(
            self,
            demands=others(self.demands),
            titles=others(self.titles),
            numbers=others(self.numbers),
            left_out=(*self.left_out, f"{self.titles[place]}: {reason}"),
        )


def workload_mix(cluster: Cluster, entries: Sequence[MixEntry], choices: Choices) -> WorkloadMix:
    """Compile the mix, once each if no number is given; without entries, all that is pending.

    Raises
    ------
    DrallocError
        There is no such claim, template or pod, or nothing is pending.
    """
    asked, left_out = (entries, ()) if entries else _pending(cluster, choices)
    if not asked:
        raise DrallocError("nothing is pending: say what is wanted with --claim, --template or --pod")
    mix = compile_mix(cluster, asked, choices, empty=True)
    classes: dict[Hashable, list[int]] = {}
    for place, demand in enumerate(mix.demands):
        classes.setdefault(_request_key(mix.compiled.problem, demand), []).append(place)
    groups = list(classes.values())
    return WorkloadMix(
        mix.compiled.problem,
        tuple(mix.demands[group[0]] for group in groups),
        tuple(_title([asked[place] for place in group]) for group in groups),
        tuple(sum(asked[place].number or 1 for place in group) for group in groups),
        tuple(left_out),
    )


def _pending(cluster: Cluster, choices: Choices) -> tuple[list[MixEntry], list[str]]:
    """An entry for every pending pod and lone claim, and what cannot be counted."""
    compiled = compile_cluster(cluster, choices)
    users = Counter(claim.key for demand in compiled.problem.demands for claim in demand.claims)
    entries, left_out = [], []
    for demand in compiled.problem.demands:
        entry = MixEntry(demand.key, Source.CLAIM if compiled.is_claim(demand) else Source.POD, 1)
        shared = any(users[claim.key] > 1 for claim in demand.claims)
        defect = next((claim.defect for claim in demand.claims if claim.defect), "")
        if shared or defect:
            why = "shares a claim with other pods" if shared else defect.removeprefix(f"{entry.title}: ")
            left_out.append(f"{entry.title}: {why}")
        else:
            entries.append(entry)
    return entries, left_out


def _request_key(problem: Problem, demand: Demand) -> Hashable:
    """Everything about a demand but who it is."""
    return demand.nodes, tuple(_content(problem, claim) for claim in demand.claims)


def _content(problem: Problem, claim: Claim) -> Hashable:
    key = problem.eligibility.request_key
    requests = tuple(
        tuple((key(one.index), one.name, one.count, one.admin, one.defect) for one in request.alternatives)
        for request in claim.requests
    )
    return requests, claim.constraints, claim.defect


def _title(entries: Sequence[MixEntry]) -> str:
    more = len(entries) - 1
    return entries[0].title + (f" and {more} like it" if more else "")
