"""Places pods that wait for it, batch after batch.

- `dralloc.live.batch.cache`: the cluster, kept up to date by watches;
- `dralloc.live.batch.lease`: which of several replicas works;
- `dralloc.live.batch.queue`: when a batch is due, what then happens, and what is done about a replica that was killed;
- `dralloc.live.batch.release`: lets everything go, for who takes the queue away;
- `dralloc.live.batch.notes`: what pods are told that wait on;
- `dralloc.live.batch.figures`: metrics and health.
"""

from __future__ import annotations

from dralloc.live.batch.cache import WatchCache
from dralloc.live.batch.figures import Figures, serving
from dralloc.live.batch.lease import LEASES, LeaderLease
from dralloc.live.batch.notes import EVENTS, PodNotes
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
