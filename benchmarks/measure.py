"""Running a workload and measuring each phase on its own."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Final

from benchmarks.export import export
from benchmarks.registry import Workload
from dralloc.check import check
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.write import allocated_claims
from dralloc.objects.api import to_wire
from dralloc.objects.choices import Choices
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.load import load
from dralloc.objects.save import save
from dralloc.problem import Problem, indices
from dralloc.problem.solution import Solution
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.recreate.starts import Starts
from dralloc.solve.work import phase

__all__ = ["FirstFit", "Measurement", "Optimal", "measure", "middle"]

PHASES: Final = (
    "load",
    "inventory",
    "match",
    "classes",
    "first fit",
    "optimal",
    "check",
    "write",
)


@dataclass(frozen=True, slots=True)
class FirstFit:
    """What first fit placed, and how many demands per second it went through."""

    placed: int
    total: int
    per_second: float


@dataclass(frozen=True, slots=True)
class TierFigures:
    """A tier of the objective: its value, and what nobody can do better."""

    name: str
    value: int
    bound: int


@dataclass(frozen=True, slots=True)
class Optimal:
    """What the optimal mode found. The objective and its bound are those of the first tier."""

    status: str
    placed: int
    objective: int
    bound: int | None
    gap: float | None
    tiers: tuple[TierFigures, ...]


@dataclass(frozen=True)
class Measurement:
    """One run of a workload; seconds by phase, and those of a processor, where ``classes`` are part of ``optimal``."""

    workload: str
    size: int
    seed: int
    phases: dict[str, float]
    processor: dict[str, float]
    peak_rss_mib: float
    first_fit: FirstFit
    optimal: Optimal | None = None

    def to_dict(self) -> dict[str, Any]:
        """The run as plain data."""
        return asdict(self)


@dataclass
class _Run:
    """The steps from a directory with objects to written answers."""

    timings: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(PHASES, 0.0)
    )
    processor: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = process_time()
        with phase(self.timings, name):
            yield
        self.processor[name] = (
            self.processor.get(name, 0.0) + process_time() - started
        )

    def compile(self, directory: Path, choices: Choices) -> CompiledCluster:
        with self.phase("load"):
            cluster = load(directory)
        with self.phase("inventory"):
            compiled = compile_cluster(cluster, choices)
            assert compiled.whole
        with self.phase("match"):
            match(compiled.whole)
        return compiled

    def first_fit(self, problem: Problem) -> Solution:
        with self.phase("first fit"):
            solution = first_fit(problem)
        with self.phase("check"):
            # First fit does not look at budgets.
            check(replace(problem, budgets=()), solution)
        return solution

    def optimal(
        self, problem: Problem, hint: Solution, options: Choices
    ) -> Solution:
        with self.phase("optimal"):
            allowed = replace(
                hint, placements=tuple(within_caps(problem, hint.placements))
            )
            solution = solve(
                problem,
                options,
                hint=allowed,
                starts=Starts(problem, options),
            )
        # The solver counts what it needs for classes itself.
        self.timings["classes"] += solution.timings.get("classes", 0.0)
        self.timings["optimal"] -= solution.timings.get("classes", 0.0)
        with self.phase("check"):
            check(problem, solution)
        return solution

    def write(
        self, compiled: CompiledCluster, solution: Solution, directory: Path
    ) -> None:
        with self.phase("write"):
            save(
                (
                    to_wire(claim)
                    for claim in allocated_claims(compiled, solution)
                ),
                directory / "answer.json",
            )


def match(problem: Problem) -> None:
    """Ask for every kind of alternative and every device key whether they go together."""
    eligibility = problem.eligibility
    devices = {
        eligibility.device_key(device): device
        for device in indices(problem.devices)
    }
    kinds = {
        eligibility.request_key(alternative.index): alternative.index
        for demand in problem.demands
        for claim in demand.claims
        for request in claim.requests
        for alternative in request.alternatives
    }
    for alternative in kinds.values():
        for device in devices.values():
            if eligibility.selects(
                alternative, device
            ) is True and eligibility.admits(alternative, device):
                eligibility.charge(alternative, device)


@without_garbage_collection()
def measure(
    workload: Workload,
    size: int,
    seed: int,
    *,
    directory: Path | None = None,
    choices: Choices | None = None,
) -> Measurement:
    """Generate a workload, solve it and measure.

    Parameters
    ----------
    directory
        Where to leave the generated objects; by default nowhere.
    choices
        For the optimal mode, beside those of the workload; None leaves it out.
    """
    with TemporaryDirectory() as room:
        objects = directory or Path(room) / "objects"
        export(workload.objects(size, seed), objects)
        run = _Run()
        made = Choices.of(choices, workload.words(size))
        compiled = run.compile(objects, made)
        first = run.first_fit(compiled.whole)
        best = (
            None
            if choices is None
            else run.optimal(compiled.whole, first, made)
        )
        run.write(compiled, compiled.of_devices(best or first), Path(room))
    return Measurement(
        workload=workload.name,
        size=size,
        seed=seed,
        phases=run.timings,
        processor=run.processor,
        peak_rss_mib=peak_rss_mib(),
        first_fit=describe_first_fit(
            compiled.problem, first, run.timings["first fit"]
        ),
        optimal=None
        if best is None
        else describe_optimal(compiled.problem, best),
    )


def describe_first_fit(
    problem: Problem, solution: Solution, seconds: float
) -> FirstFit:
    """The figures of a first-fit answer that took so long."""
    total = len(problem.demands)
    return FirstFit(
        len(solution.placements), total, total / seconds if seconds else 0.0
    )


def describe_optimal(problem: Problem, solution: Solution) -> Optimal:
    """The figures of an answer of the optimal mode."""
    return Optimal(
        status=solution.status.value,
        placed=len(solution.placements),
        objective=sum(
            problem.demands[placement.demand].weight
            for placement in solution.placements
        ),
        bound=solution.tiers[0].bound if solution.tiers else None,
        gap=max((tier.gap for tier in solution.tiers), default=None),
        tiers=tuple(
            TierFigures(tier.name, tier.value, tier.bound)
            for tier in solution.tiers
        ),
    )


def peak_rss_mib() -> float:
    """The most memory that the process has had so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def middle(runs: Iterable[Measurement]) -> Measurement:
    """The last of several runs, with the medians of their times."""
    every = list(runs)
    last = every[-1]
    phases, processor = (
        _medians([run.phases for run in every]),
        _medians([run.processor for run in every]),
    )
    first, seconds = last.first_fit, phases["first fit"]
    fit = FirstFit(
        first.placed, first.total, first.total / seconds if seconds else 0.0
    )
    return replace(last, phases=phases, processor=processor, first_fit=fit)


def _medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: median(run[name] for run in runs) for name in runs[0]}
