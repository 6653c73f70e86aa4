"""Which device may serve which request."""

from __future__ import annotations

from dralloc.match.table import Criteria, MatchTable

__all__ = ["Criteria", "MatchTable"]
