"""Large-neighbourhood search on the hub: it takes any answer to any problem and makes it better.

Step by step some nodes are chosen, the demands on them are taken out, and they are placed again together with demands
that wait: as a problem of its own, with everything that the rest of the answer holds in use, which is solved as any
problem is. Nothing here knows a rule or a shape of demand; so nothing is too mixed for it.

Sources: Shaw 1998 for large-neighbourhood search, Ropke and Pisinger 2006 for the choice of neighbourhoods by success.
"""

from __future__ import annotations

from dralloc.solve.optimum.improve.component import SearchedComponent
from dralloc.solve.optimum.improve.search import NeighbourhoodSearch

__all__ = ["NeighbourhoodSearch", "SearchedComponent"]
