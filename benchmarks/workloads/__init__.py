"""All workloads. Importing this package enters them into the registry."""

from __future__ import annotations

from benchmarks.workloads import (
    budgets,
    bundles,
    gangs,
    goals,
    hard,
    headroom,
    mig,
    pending,
    racks,
    scheduler_perf,
    shapes,
    sharing,
)

__all__ = [
    "budgets",
    "bundles",
    "gangs",
    "goals",
    "hard",
    "headroom",
    "mig",
    "pending",
    "racks",
    "scheduler_perf",
    "shapes",
    "sharing",
]
