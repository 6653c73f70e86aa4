"""Places pods that wait for it, batch after batch.

- `dralloc.live.batch.cache`: the cluster, kept up to date by watches, and which of several replicas works;
- `dralloc.live.batch.queue`: when a batch is due, and what then happens;
- `dralloc.live.batch.pod_notes`: what waiting pods are told, and `dralloc.live.batch.release`: how to let them go;
- `dralloc.live.batch.figures`: metrics and health.
"""

from __future__ import annotations

from dralloc.live.batch.cache import LEASES, LeaderLease, WatchCache
from dralloc.live.batch.figures import Figures, serving
from dralloc.live.batch.pod_notes import EVENTS, PodNotes
from dralloc.live.batch.queue import BatchQueue
from dralloc.live.batch.release import release_all

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
