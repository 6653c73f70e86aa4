"""How long it takes to say how many more of some MIG profiles fit into workload ``headroom``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.clusters import template_name
from benchmarks.export import export
from benchmarks.measure import peak_rss_mib
from benchmarks.registry import WORKLOADS
from dralloc.ask.whatif import Headroom, headroom
from dralloc.objects.load import load
from dralloc.objects.report import Part
from dralloc.solve.work import phase

__all__ = ["Room", "measure_headroom"]


@dataclass(frozen=True)
class Room:
    """One run: seconds by phase, and the answer."""

    size: int
    seed: int
    phases: dict[str, float]
    peak_rss_mib: float
    answer: Headroom

    def to_dict(self) -> dict[str, Any]:
        """The run as plain data."""
        return {**asdict(self), "answer": self.answer.to_dict()}

    def parts(self) -> list[Part]:
        """The answer, without the seconds that it took."""
        return self.answer.parts()[:-1]


def measure_headroom(size: int, seed: int, profiles: Sequence[str]) -> Room:
    """Generate the workload, load it, and ask for room for some profiles, each alone and together."""
    phases: dict[str, float] = {}
    with TemporaryDirectory() as room:
        export(WORKLOADS["headroom"].objects(size, seed), Path(room))
        with phase(phases, "load"):
            cluster = load(Path(room))
    answer = headroom(
        cluster, *(template_name(profile) for profile in profiles)
    )
    return Room(
        size, seed, {**phases, **answer.timings}, peak_rss_mib(), answer
    )
