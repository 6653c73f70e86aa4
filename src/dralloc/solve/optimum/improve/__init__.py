"""Better answers to any problem: large-neighbourhood search on the hub.

It takes an answer (`dralloc.solve.optimum.improve.incumbent`). Step by step (`dralloc.solve.optimum.improve.search`)
some nodes are chosen (`dralloc.solve.optimum.improve.selection`), the demands on them are taken out, and they are
placed again together with demands that wait: as a problem of its own, with everything that the rest of the answer holds
in use (`dralloc.solve.optimum.improve.neighbourhood`), which is solved as any problem is
(`dralloc.solve.optimum.improve.task`). What is better is kept. Nothing here knows a rule or a shape of demand; so
nothing is too mixed for it.

A component that is too large or too mixed for one model (`dralloc.solve.optimum.improve.component`) goes through the
three parts of the optimum: it is relaxed for a bound, improved by this search, and decided by the exact model at last.
"""

from __future__ import annotations

from dralloc.solve.optimum.improve.component import (
    SearchedComponent,
    relaxation_stop,
)
from dralloc.solve.optimum.improve.search import NeighbourhoodSearch

__all__ = [
    "NeighbourhoodSearch",
    "SearchedComponent",
    "relaxation_stop",
]
