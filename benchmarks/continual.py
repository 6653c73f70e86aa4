"""Going on from an answer after a small change, beside searching from nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import asdict, dataclass
from random import Random
from time import perf_counter, process_time
from typing import Any

from benchmarks.registry import Workload
from dralloc.ask.allocate import allocate
from dralloc.ask.scenario import Scenario
from dralloc.objects.api import Pod
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.load import load_documents
from dralloc.problem.indices import grouped
from dralloc.show.plan import Plan

__all__ = ["Continued", "Searched", "measure_continual"]


@dataclass(frozen=True)
class Searched:
    """One search for the optimum.

    Parameters
    ----------
    seconds, processor
        What it took of the clock, with compiling and checking, and of a processor in this process.
    placed
        How many pods have a place.
    tiers
        By tier of which more is better, its value and its bound.
    """

    seconds: float
    processor: float
    placed: int
    tiers: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Continued:
    """Two answers to one question.

    Parameters
    ----------
    waiting, came, went
        How many pods wait, and of these how many did not when the answer was found that is gone on from; and how many
        waited then that are gone.
    from_nothing, from_answer
        The searches.
    """

    workload: str
    size: int
    waiting: int
    came: int
    went: int
    from_nothing: Searched
    from_answer: Searched

    @property
    def times_faster(self) -> float:
        """How many times as fast going on is, by the clock."""
        return self.from_nothing.seconds / self.from_answer.seconds

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {**asdict(self), "times_faster": self.times_faster}


def measure_continual(
    workload: Workload,
    size: int,
    changed: float,
    choices: Choices,
) -> Continued:
    """Find an answer, exchange a part of the pods that wait, and ask again: from that answer, and from nothing.

    Parameters
    ----------
    changed
        The part of those that wait who go, and about as many come. Gangs come and go as a whole.
    choices
        The seed of the workload and of each search, its time limit, and its jobs.
    """
    cluster = load_documents(workload.objects(size, choices.seed))
    going, coming = _exchanged(cluster, changed, Random(choices.seed))
    before, now = _without(cluster, coming), _without(cluster, going)
    _, from_nothing = _searched(now, choices)
    waiting = sum(not pod.spec.node_name for pod in now.pods)
    earlier_plan, _ = _searched(before, choices)
    _, from_answer = _searched(now, choices, earlier_plan)
    return Continued(
        workload.name,
        size,
        waiting,
        len(coming),
        len(going),
        from_nothing,
        from_answer,
    )


def _exchanged(
    cluster: Cluster, changed: float, random: Random
) -> tuple[list[Pod], list[Pod]]:
    """Draw who goes and who comes: two parts of those that wait which have nobody in common."""
    groups = list(grouped(_waiting(cluster)).values())
    count = max(1, round(changed * len(groups)))
    drawn = random.sample(groups, 2 * count)
    return (
        [pod for group in drawn[:count] for pod in group],
        [pod for group in drawn[count:] for pod in group],
    )


def _waiting(cluster: Cluster) -> Iterator[tuple[Hashable, Pod]]:
    """Give out each pod that waits, by its gang, or by itself."""
    for pod in cluster.pods:
        if not pod.spec.node_name:
            yield pod.pod_group or pod.key, pod


def _without(cluster: Cluster, pods: list[Pod]) -> Cluster:
    return Scenario(cluster).without_pods({pod.key for pod in pods}).cluster


def _searched(
    cluster: Cluster, choices: Choices, start: Plan | None = None
) -> tuple[Plan, Searched]:
    started, at_work = perf_counter(), process_time()
    plan = allocate(
        cluster,
        start=start,
        seed=choices.seed,
        time_limit=choices.time_limit,
        jobs=choices.jobs,
    )
    searched = Searched(
        perf_counter() - started,
        process_time() - at_work,
        len(tuple(plan.placed)),
        {
            tier.name: (tier.value, tier.bound)
            for tier in plan.tiers
            if tier.sense > 0
        },
    )
    return plan, searched
