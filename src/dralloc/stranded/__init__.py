"""Stranded capacity: what is free, but of no use to the claims of a mix, and why.

- `dralloc.stranded.measures`: what capacity is counted in;
- `dralloc.stranded.filling`: the most of it that claims could take, by solving;
- `dralloc.stranded.split`: what strands the rest;
- `dralloc.stranded.fragmentation`: the measure of Weng et al. (USENIX ATC 2023), for comparison.
"""

from __future__ import annotations

from dralloc.stranded.ask import stranded
from dralloc.stranded.cause import Cause
from dralloc.stranded.stranding import Capacity, Stranding

__all__ = ["Capacity", "Cause", "Stranding", "stranded"]
