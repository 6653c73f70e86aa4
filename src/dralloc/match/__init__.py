"""Which device may serve which request."""

from __future__ import annotations

from dralloc.match.table import Criteria, MatchTable, cel_device
from dralloc.match.taint_rules import TaintRules

__all__ = ["Criteria", "MatchTable", "TaintRules", "cel_device"]
