"""Stranded capacity: what is free, but of no use to a mix of claims, and why.

- `dralloc.ask.stranded.quantities`: what is counted, rules that strand it, and what offers are without them;
- `dralloc.ask.stranded.split`: how much of a quantity the next grants can take, and what strands the rest;
- `dralloc.ask.stranded.measure`: the report, with the measure of Weng et al. (USENIX ATC 2023) for comparison.
"""

from __future__ import annotations

from dralloc.ask.stranded.measure import Row, Stranding, stranded
from dralloc.ask.stranded.quantities import Cause

__all__ = ["Cause", "Row", "Stranding", "stranded"]
