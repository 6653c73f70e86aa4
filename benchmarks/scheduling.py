"""How fast mode ``scheduler`` is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import match
from benchmarks.objects import Json
from benchmarks.reading import timed
from benchmarks.registry import Workload
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Choices, Mode
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.load import load
from dralloc.objects.save import save
from dralloc.problem.solution import Solution
from dralloc.solve.scheduler import schedule

__all__ = ["SchedulerFigures", "measure_scheduler"]


@dataclass(frozen=True)
class SchedulerFigures:
    """Several runs over the same objects.

    Parameters
    ----------
    pods
        How many there are to schedule.
    seconds
        The median over the runs, of the processor: selectors are looked at before.
    """

    workload: str
    size: int
    pods: int
    placed: int
    seconds: float

    @property
    def per_second(self) -> float:
        """How many pods are gone through in a second, placed or not."""
        return self.pods / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return asdict(self) | {"per_second": self.per_second}


@without_garbage_collection()
def measure_scheduler(
    workload: Workload, size: int, seed: int, repeat: int, *, limits: bool
) -> SchedulerFigures:
    """Generate a workload and schedule its pods, each run in a problem of its own.

    Parameters
    ----------
    limits
        Whether nodes say what they have, if they do in the workload.
    """
    objects = workload.objects(size, seed)
    with TemporaryDirectory() as room:
        path = Path(room) / "objects.json"
        save(objects if limits else unlimited(objects), path)
        cluster = load(path)
    choices = Choices.of(None, workload.words(size))

    def run() -> tuple[Solution, float]:
        compiled = compile_cluster(cluster, choices, modes={Mode.SCHEDULER})
        match(compiled.problem)
        return timed(lambda: schedule(compiled))

    runs = [run() for _ in range(repeat)]
    solution, _ = runs[-1]
    pods = sum(not pod.spec.node_name for pod in cluster.pods)
    seconds = median(seconds for _, seconds in runs)
    return SchedulerFigures(
        workload.name, size, pods, len(solution.placements), seconds
    )


def unlimited(objects: Iterable[Json]) -> Iterator[Json]:
    """The objects with nodes that do not say what they have."""
    for api_object in objects:
        yield (
            {**api_object, "status": {}}
            if api_object["kind"] == "Node"
            else api_object
        )
