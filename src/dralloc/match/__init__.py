"""Which device may serve which request."""

from __future__ import annotations

from dralloc.match.table import Criteria, MatchTable
from dralloc.match.taint_rules import TaintRules

__all__ = ["Criteria", "MatchTable", "TaintRules"]
