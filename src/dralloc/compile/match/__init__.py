"""Matching: decides which device may serve which request."""

from __future__ import annotations

from dralloc.compile.match.derived import cel_device
from dralloc.compile.match.table import (
    Criteria,
    MatchTable,
    SelectorFailure,
    TaintRules,
)

__all__ = [
    "Criteria",
    "MatchTable",
    "SelectorFailure",
    "TaintRules",
    "cel_device",
]
