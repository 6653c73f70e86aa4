"""All workloads. Importing this package enters them into the registry."""

from __future__ import annotations

from benchmarks.workloads import (
    allocatable,
    budgets,
    bundles,
    gangs,
    goals,
    hard,
    headroom,
    mig,
    mixed,
    pending,
    racks,
    scheduler_perf,
    shapes,
    sharing,
    varied,
)

__all__ = [
    "allocatable",
    "budgets",
    "bundles",
    "gangs",
    "goals",
    "hard",
    "headroom",
    "mig",
    "mixed",
    "pending",
    "racks",
    "scheduler_perf",
    "shapes",
    "sharing",
    "varied",
]
