"""Pictures of answers, with matplotlib (extra ``plot``).

Every function draws onto the axes that it is given, or onto a new figure, and returns the axes. Equal profiles of
requests have equal colours in all pictures of a cluster. Under a dark matplotlib style the pictures are dark.

>>> from dralloc.show.plot import device_map
>>> device_map(comparison.optimal, beside=comparison.first_fit)  # doctest: +SKIP
"""

from __future__ import annotations

from dralloc.show.plot.charts import demand_curve, progress, utilisation
from dralloc.show.plot.device_map import device_map
from dralloc.show.plot.gained import gained, ranks
from dralloc.show.plot.over_time import (
    allocation_over_time,
    fragmentation_over_time,
    regret_over_time,
    waiting_distribution,
)

__all__ = [
    "allocation_over_time",
    "demand_curve",
    "device_map",
    "fragmentation_over_time",
    "gained",
    "progress",
    "ranks",
    "regret_over_time",
    "utilisation",
    "waiting_distribution",
]
