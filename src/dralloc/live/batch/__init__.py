"""Places pods that wait for it, batch after batch.

- `dralloc.live.batch.cache`: the cluster, kept up to date by watches, and which of several replicas works;
- `dralloc.live.batch.queue`: when a batch is due, what then happens, what waiting pods are told, and how to let go;
- `dralloc.live.batch.figures`: metrics and health.
"""

from __future__ import annotations

from dralloc.live.batch.cache import LEASES, LeaderLease, WatchCache
from dralloc.live.batch.figures import Figures, serving
from dralloc.live.batch.queue import EVENTS, BatchQueue, PodNotes, release_all

__all__ = [
    "EVENTS",
    "LEASES",
    "BatchQueue",
    "Figures",
    "LeaderLease",
    "PodNotes",
    "WatchCache",
    "release_all",
    "serving",
]
