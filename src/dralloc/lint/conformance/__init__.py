"""Recorded answers of upstream, asked again: does dralloc give the same ones.

Cases are read in `dralloc.lint.conformance.cases`; those of the allocator are asked again in
`dralloc.lint.conformance.allocation_answers`, those of CEL in `dralloc.lint.conformance.cel_answers`. Recorded runs of
kube-scheduler are replayed in `dralloc.lint.conformance.scheduler_answers`, attempt by attempt, and cycle by cycle
where it tried groups of pods.
"""

from __future__ import annotations

from dralloc.lint.conformance.allocation_answers import (
    run_first_fit,
    run_optimal,
)
from dralloc.lint.conformance.cases import (
    AllocationCase,
    Json,
    read_allocation_case,
    read_lines,
)
from dralloc.lint.conformance.cel_answers import run_cel
from dralloc.lint.conformance.outcomes import CaseOutcome
from dralloc.lint.conformance.scheduler_answers import run_scheduler

__all__ = [
    "AllocationCase",
    "CaseOutcome",
    "Json",
    "read_allocation_case",
    "read_lines",
    "run_cel",
    "run_first_fit",
    "run_optimal",
    "run_scheduler",
]
