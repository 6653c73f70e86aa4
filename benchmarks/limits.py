"""Whether time limits hold, and cost nothing that was in hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Final

from benchmarks.export import export
from benchmarks.registry import Workload
from dralloc.check import check
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Choices, Goal
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.load import load
from dralloc.problem import Problem
from dralloc.problem.solution import Solution
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.recreate.starts import Starts

__all__ = ["LIMITED", "Limited", "measure_limits", "sizes"]

LIMITED: Final = (
    "cluster-plain",
    "cluster-mig-mixed",
    "cluster-nic",
    "bundles",
    "gangs-plain",
    "gangs-mig",
    "gangs-nic",
    "caps-mig",
    "fair-mig",
    "racks",
    "shared-claims",
    "goal-least-fragmentation",
    "goal-spread",
    "mixed",
)
"""What is measured if nothing else is said."""

_SIZES: Final = {"nodes": (500, 5000), "racks": (33, 300)}
"""By unit."""

_PER_RACK: Final = 18
"""Nodes of a rack."""

_PART: Final = 0.05
_SECONDS: Final = 2.0
"""By how much a limit may be exceeded: a part of it, or seconds, if that is more."""


@dataclass(frozen=True)
class Limited:
    """One search for the optimum under a limit.

    Parameters
    ----------
    limit, seconds, processor
        What it may take, what it takes, and what of a processor; in seconds.
    status
        What is known about the answer, and why it is no more than that.
    in_time
        Whether it ends within the limit and 5%, or 2 seconds.
    no_worse
        Whether the answer is worth as much as that of first fit, as far as caps allow that, and its tiers before
        fairness and goal as much as under the same limit without these.
    """

    workload: str
    size: int
    limit: float
    seconds: float
    processor: float
    status: str
    placed: int
    first_fit: int
    in_time: bool
    no_worse: bool

    @property
    def kept(self) -> bool:
        """Whether the limit was kept, and cost nothing that was in hand."""
        return self.in_time and self.no_worse

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return {**asdict(self), "kept": self.kept}


def sizes(workload: Workload, nodes: Sequence[int]) -> Sequence[int]:
    """The sizes of a workload with so many nodes; without any about 500 and 5,000."""
    if not nodes:
        return _SIZES.get(workload.unit, (workload.size,))
    return (
        [max(1, node_count // _PER_RACK) for node_count in nodes]
        if workload.unit == "racks"
        else nodes
    )


def measure_limits(
    workload: Workload, size: int, limits: Sequence[float], seed: int
) -> Iterator[Limited]:
    """Load and compile a workload once, and search for the optimum under each limit."""
    choices = Choices.of(None, {**workload.words(size), "seed": seed})
    problem, hint = _placed(workload, size, choices)
    for limit in limits:
        limited = replace(choices, time_limit=limit)
        started, at_work = perf_counter(), process_time()
        solution = _solved(problem, limited, hint)
        seconds, processor = perf_counter() - started, process_time() - at_work
        check(problem, solution)
        yield Limited(
            workload=workload.name,
            size=size,
            limit=limit,
            seconds=seconds,
            processor=processor,
            status=_status(solution),
            placed=len(solution.placements),
            first_fit=len(hint.placements),
            in_time=seconds <= limit + max(_PART * limit, _SECONDS),
            no_worse=_weight(problem, solution) >= _weight(problem, hint)
            and _keeps(solution, _plain(problem, limited, hint)),
        )


@without_garbage_collection()
def _placed(
    workload: Workload, size: int, choices: Choices
) -> tuple[Problem, Solution]:
    """The problem, and what of first fit's answer the caps allow."""
    with TemporaryDirectory() as room:
        export(workload.objects(size, choices.seed), Path(room))
        problem = compile_cluster(load(room), choices).whole
    first = first_fit(problem)
    return problem, replace(
        first, placements=tuple(within_caps(problem, first.placements))
    )


def _solved(problem: Problem, choices: Choices, hint: Solution) -> Solution:
    """What is derived from a problem stays with it: each search begins without."""
    fresh = replace(problem)
    return solve(fresh, choices, hint, starts=Starts(fresh, choices))


def _plain(
    problem: Problem, choices: Choices, hint: Solution
) -> Solution | None:
    """The answer under the same limit to the question without goal and fairness; None if it has neither."""
    caps = tuple(
        replace(budget, fair=False)
        for budget in problem.budgets
        if budget.most is not None
    )
    if choices.goal is Goal.NONE and caps == problem.budgets:
        return None
    return _solved(
        replace(problem, budgets=caps),
        replace(choices, goal=Goal.NONE, fair=""),
        hint,
    )


def _keeps(solution: Solution, plain: Solution | None) -> bool:
    """Whether the tiers that both answers begin with are worth as much as in the plain one."""
    tiers = plain.tiers if plain else ()
    both = takewhile(
        lambda pair: pair[0].name == pair[1].name,
        zip(solution.tiers, tiers, strict=False),
    )
    pairs = [
        (mine.sense * mine.value, theirs.sense * theirs.value)
        for mine, theirs in both
    ]
    return [mine for mine, _ in pairs] >= [theirs for _, theirs in pairs]


def _weight(problem: Problem, solution: Solution) -> int:
    return sum(
        problem.demands[placement.demand].weight
        for placement in solution.placements
    )


def _status(solution: Solution) -> str:
    return ": ".join(
        [
            solution.status.value,
            *(tier.why for tier in solution.tiers if tier.why),
        ][:2]
    )
