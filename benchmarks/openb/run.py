"""Policies and the optimum on the trace, by GPUs allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from time import perf_counter
from typing import Any, Final

from benchmarks.openb.cluster import GPU, HOST, objects
from benchmarks.openb.rules import PUBLISHED_RULES, spots
from benchmarks.openb.trace import WHOLE, TraceNode, TracePod, arrivals
from dralloc.check import check
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.load import load_documents
from dralloc.problem import DemandIndex, DeviceIndex, Problem, numbered
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.solve.optimum import Options, Progress, solve
from dralloc.solve.policies import place
from dralloc.solve.recreate.starts import Starts
from dralloc.solve.scheduler import Release, schedule

__all__ = ["OPTIMAL", "POLICIES", "Outcome", "Scene", "published_outcomes"]

OPTIMAL: Final = "optimal"

SCHEDULER: Final = "scheduler"

POLICIES: Final = (
    "first-fit",
    SCHEDULER,
    *PUBLISHED_RULES,
    "best-fit",
    "fgd",
    OPTIMAL,
)
"""What is measured."""

_ONE_ORDER: Final = "1.35"
"""A release whose scheduler takes pods of one priority by name, and so as they arrive."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one policy reached at one demand.

    Parameters
    ----------
    demand
        What was asked for when it was measured, as a part of all GPUs.
    policy
        Its name.
    source
        ``measured`` here, or ``published``: then only the percentage is known.
    seed
        Of the order of arrivals.
    pods, placed
        How many arrived, and how many of them were placed.
    allocated_percent
        The GPUs that the placed pods got, of all GPUs.
    bound_percent
        What no answer can exceed; None if nothing is proven.
    status
        What is known about the answer.
    seconds
        For the answer, without reading, compiling and checking.
    """

    demand: float
    policy: str
    source: str
    allocated_percent: float
    seed: int | None = None
    pods: int | None = None
    placed: int | None = None
    bound_percent: float | None = None
    status: str | None = None
    seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain data."""
        return asdict(self)


class Scene:
    """The trace at its highest demand, of which every lower one is the beginning.

    Parameters
    ----------
    nodes, pods
        The trace.
    most
        The highest demand.
    seed
        Of the order of arrivals.
    """

    def __init__(
        self,
        nodes: Sequence[TraceNode],
        pods: Sequence[TracePod],
        most: float,
        seed: int,
    ) -> None:
        self.seed = seed
        self.gpus = sum(node.gpus for node in nodes)
        self.arrivals = list(arrivals(pods, self._milli(most), seed))
        self.objects = list(objects(nodes, self.arrivals))
        self._compiled = compile_cluster(load_documents(self.objects))
        self._whole = self._compiled.problem
        self._nodes, self._pods = nodes, pods
        self._answers: dict[str, tuple[Solution, float]] = {}

    def _milli(self, demand: float) -> int:
        return round(demand * self.gpus * WHOLE)

    def problem(self, demand: float) -> Problem:
        """What has arrived when so much has been asked for.

        The weight of a pod is what it asks of GPUs, in a unit that is worth more than one for every pod: so the most
        GPUs are allocated, and among equals the most pods are placed.
        """
        pod_count = sum(
            1 for _ in arrivals(self._pods, self._milli(demand), self.seed)
        )
        weights = [
            pod.asked * (pod_count + 1) + 1
            for pod in islice(self.arrivals, pod_count)
        ]
        demands = zip(self._whole.demands, weights, strict=False)
        return replace(
            self._whole,
            demands=tuple(
                replace(pod_demand, weight=weight)
                for pod_demand, weight in demands
            ),
        )

    def measure(
        self,
        demand: float,
        policies: Sequence[str],
        options: Options,
        progress: Callable[[Progress], None] | None,
    ) -> Iterator[Outcome]:
        """Answer by each policy; the optimum starts from the best of those before it.

        Everybody but the optimum takes one pod after the other and never moves any, so that the answer at a lower
        demand is the beginning of that at the highest one.
        """
        problem = self.problem(demand)
        best: Solution | None = None
        for policy in policies:
            started = perf_counter()
            if policy == OPTIMAL:
                answer = solve(
                    problem,
                    options,
                    hint=best or place(problem, "first-fit"),
                    progress=progress,
                    starts=Starts(problem, options),
                )
                seconds = perf_counter() - started
            else:
                whole, seconds = self._whole_answer(policy)
                demand_count = len(problem.demands)
                answer = Solution(
                    tuple(
                        placement
                        for placement in whole.placements
                        if placement.demand < demand_count
                    )
                )
            check(problem, answer)
            if best is None or _weight(problem, answer) > _weight(
                problem, best
            ):
                best = answer
            yield self._outcome(demand, policy, problem, answer, seconds)

    def _whole_answer(self, policy: str) -> tuple[Solution, float]:
        """Return what a policy makes of all arrivals, and in how many seconds."""
        if policy not in self._answers:
            started = perf_counter()
            if policy in PUBLISHED_RULES:
                answer = self._by_published_rules(policy)
            elif policy == SCHEDULER:
                answer = schedule(
                    self._compiled,
                    seed=self.seed,
                    release=Release.of(_ONE_ORDER),
                )
            else:
                answer = place(self._whole, policy)
            self._answers[policy] = answer, perf_counter() - started
        return self._answers[policy]

    def _by_published_rules(self, policy: str) -> Solution:
        problem = self._whole
        node_of = {
            node.name: node_index
            for node_index, node in numbered(problem.nodes)
        }
        by_name = {
            (device.id.pool, device.id.device): DeviceIndex(device_index)
            for device_index, device in enumerate(problem.devices)
        }
        chosen = spots(
            policy, self._nodes, self._pods, self.arrivals, self.seed
        )
        placements: list[Placement] = []
        for demand, spot in enumerate(chosen):
            if spot is None:
                continue
            node = self._nodes[spot.node]
            grants = [Grant(0, 0, by_name[node.name, HOST])]
            models = self.arrivals[demand].models
            # Several models are the entries of a list, in the order of the trace.
            entry = models.index(node.model) if len(models) > 1 else 0
            for gpu in spot.gpus:
                device = by_name[node.name, f"{GPU}-{gpu}"]
                grants.append(Grant(1, entry, device))
            placements.append(
                Placement(
                    DemandIndex(demand), node_of[node.name], (tuple(grants),)
                )
            )
        return Solution(tuple(placements))

    def _outcome(
        self,
        demand: float,
        policy: str,
        problem: Problem,
        answer: Solution,
        seconds: float,
    ) -> Outcome:
        allocated = sum(
            self.arrivals[placement.demand].asked
            for placement in answer.placements
        )
        bound = (
            answer.tiers[0].bound // (len(problem.demands) + 1)
            if answer.tiers
            else None
        )
        return Outcome(
            demand=demand,
            policy=policy,
            source="measured",
            allocated_percent=self._percent(allocated),
            seed=self.seed,
            pods=len(problem.demands),
            placed=len(answer.placements),
            bound_percent=None if bound is None else self._percent(bound),
            status=answer.status.value,
            seconds=seconds,
        )

    def _percent(self, milli: int) -> float:
        return 100 * milli / (WHOLE * self.gpus) if self.gpus else 0.0


def published_outcomes(
    demand: float, figures: Mapping[str, float]
) -> Iterator[Outcome]:
    """The published figures in the same form."""
    for policy, percent in figures.items():
        yield Outcome(demand, policy, "published", percent)


def _weight(problem: Problem, answer: Solution) -> int:
    return sum(
        problem.demands[placement.demand].weight
        for placement in answer.placements
    )
