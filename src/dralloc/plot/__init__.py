"""Pictures of answers, with matplotlib (extra ``plot``).

Every function draws onto the axes that it is given, or onto a new figure, and returns the axes. Equal profiles of
requests have equal colours in all pictures of a cluster. Under a dark matplotlib style the pictures are dark.

>>> from dralloc.plot import device_map
>>> device_map(comparison.optimal, beside=comparison.first_fit)  # doctest: +SKIP
"""

from __future__ import annotations

from dralloc.plot.demand_curve import demand_curve
from dralloc.plot.device_map import device_map
from dralloc.plot.gained import gained
from dralloc.plot.progress import progress
from dralloc.plot.ranks import ranks
from dralloc.plot.utilisation import utilisation

__all__ = ["demand_curve", "device_map", "gained", "progress", "ranks", "utilisation"]
