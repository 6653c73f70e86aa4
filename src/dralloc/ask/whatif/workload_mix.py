"""A mix of demands with numbers: what is named, or all that is pending."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from dralloc.ask.whatif.mix_entries import MixEntry, Source, compile_mix
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.problem import Demand, Problem
from dralloc.problem.equivalence import claim_key

__all__ = ["WorkloadMix", "workload_mix"]


@dataclass(frozen=True)
class WorkloadMix:
    """Classes of equal demands in an empty cluster, with the number that is to be had of each.

    Parameters
    ----------
    problem
        The cluster as if nothing were allocated.
    demands
        One of each class, as they are without rules for other pods: nobody knows where nodes will be.
    titles
        What each is called.
    numbers
        How many there are of each.
    named
        Whether somebody has named them, so that all must count.
    left_out
        What is pending and does not count, with the reason.
    compiled
        The cluster with one of each entry.
    """

    problem: Problem
    demands: tuple[Demand, ...]
    titles: tuple[str, ...]
    numbers: tuple[int, ...]
    named: bool
    left_out: tuple[str, ...]
    compiled: CompiledCluster

    @property
    def wanted(self) -> tuple[tuple[str, int], ...]:
        """What is to be had, and how many of each."""
        return tuple(zip(self.titles, self.numbers, strict=True))

    def without(self, place: int, reason: str) -> WorkloadMix:
        """The same without one of the classes.

        Raises
        ------
        DrallocError
            Somebody has named it.
        """
        text = f"{self.titles[place]}: {reason}"
        if self.named:
            raise DrallocError(text)
        left = [
            [*each[:place], *each[place + 1 :]]
            for each in (self.demands, self.titles, self.numbers)
        ]
        demands, titles, numbers = map(tuple, left)
        return replace(
            self,
            demands=demands,
            titles=titles,
            numbers=numbers,
            left_out=(*self.left_out, text),
        )


def workload_mix(
    cluster: Cluster,
    entries: Sequence[MixEntry | str],
    choices: Choices,
    *,
    devices_alone: bool = False,
) -> WorkloadMix:
    """Compile the mix, once each if no number is given; without entries, all that is pending.

    Parameters
    ----------
    devices_alone
        Whether to leave out what pods take of nodes beside devices.

    Raises
    ------
    DrallocError
        There is no such claim, template or pod, or nothing is pending.
    """
    asked, left_out = (
        (list(map(MixEntry.of, entries)), []) if entries else _pending(cluster, choices)
    )
    if not asked:
        raise DrallocError(
            "nothing is pending: say what is wanted with --claim, --template or --pod"
        )
    mix = compile_mix(cluster, asked, choices, empty=True)
    problem, wanted = (
        (mix.compiled.problem, mix.of_devices)
        if devices_alone
        else (mix.problem, mix.demands)
    )
    # Rules between pods leave a demand fewer nodes, too: those that it may have are the ones without these rules.
    demands = [
        replace(demand, nodes=of_devices.nodes, roles=())
        for demand, of_devices in zip(wanted, mix.of_devices, strict=True)
    ]
    offers = problem.eligibility
    classes: dict[Hashable, list[int]] = defaultdict(list)
    for place, demand in enumerate(demands):
        key = (
            demand.nodes,
            demand.is_defective,
            tuple(claim_key(offers, claim) for claim in demand.claims),
        )
        classes[key].append(place)
    groups = classes.values()
    return WorkloadMix(
        problem,
        tuple(demands[first] for first, *_ in groups),
        tuple(
            asked[first].title + (f" and {len(rest)} like it" if rest else "")
            for first, *rest in groups
        ),
        tuple(sum(asked[place].number or 1 for place in group) for group in groups),
        bool(entries),
        tuple(left_out),
        mix.compiled,
    )


def _pending(cluster: Cluster, choices: Choices) -> tuple[list[MixEntry], list[str]]:
    """An entry for every pending pod and lone claim, and what cannot be counted."""
    compiled = compile_cluster(cluster, choices)
    users = Counter(
        claim.key for demand in compiled.problem.demands for claim in demand.claims
    )
    entries, left_out = [], []
    for demand in compiled.problem.demands:
        entry = MixEntry(
            demand.key, Source.CLAIM if compiled.is_claim(demand) else Source.POD, 1
        )
        shared = any(users[claim.key] > 1 for claim in demand.claims)
        defect = next((claim.defect for claim in demand.claims if claim.defect), "")
        if shared or defect:
            why = (
                "shares a claim with other pods"
                if shared
                else defect.removeprefix(f"{entry.title}: ")
            )
            left_out.append(f"{entry.title}: {why}")
        else:
            entries.append(entry)
    return entries, left_out
