"""How long it takes to say why the pod of workload ``explain`` is pending."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.export import export
from benchmarks.measure import peak_rss_mib
from benchmarks.registry import WORKLOADS
from benchmarks.workloads.pending import PENDING
from dralloc.ask.explain import explain
from dralloc.objects.choices import Mode
from dralloc.objects.load import load
from dralloc.solve.work import phase

__all__ = ["Explained", "measure_explain"]


@dataclass(frozen=True)
class Explained:
    """One run: seconds by phase, and how much was found."""

    size: int
    seed: int
    mode: str
    phases: dict[str, float]
    peak_rss_mib: float
    reasons: int
    conflict: int
    suggestions: int

    def to_dict(self) -> dict[str, Any]:
        """The run as plain data."""
        return asdict(self)


def measure_explain(
    size: int, seed: int, mode: Mode = Mode.FIRST_FIT
) -> Explained:
    """Generate the workload, load it, and explain its pod."""
    phases: dict[str, float] = {}
    with TemporaryDirectory() as room:
        export(WORKLOADS["explain"].objects(size, seed), Path(room))
        with phase(phases, "load"):
            cluster = load(Path(room))
    explanation = explain(
        cluster, pod=f"default/{PENDING}", mode=mode, seed=seed
    )
    return Explained(
        size=size,
        seed=seed,
        mode=mode.value,
        phases={**phases, **explanation.timings},
        peak_rss_mib=peak_rss_mib(),
        reasons=len(explanation.groups),
        conflict=len(explanation.conflict.members)
        if explanation.conflict
        else 0,
        suggestions=len(explanation.suggestions),
    )
