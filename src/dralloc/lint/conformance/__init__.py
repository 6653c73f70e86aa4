"""Recorded answers of upstream, asked again: does dralloc give the same ones."""

from __future__ import annotations

from dralloc.lint.conformance.cases import (
    AllocationCase,
    CaseOutcome,
    Json,
    read_allocation_case,
    read_lines,
    run_cel,
    run_first_fit,
    run_optimal,
)
from dralloc.lint.conformance.scheduler import run_scheduler

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
