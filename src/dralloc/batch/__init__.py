"""Places pods that wait for it, batch after batch.

- `dralloc.batch.cache`: the cluster, kept up to date by watches;
- `dralloc.batch.lease`: which of several replicas works;
- `dralloc.batch.queue`: when a batch is due, what then happens, and what is done about a replica that was killed;
- `dralloc.batch.notes`: what pods are told that wait on;
- `dralloc.batch.figures`: metrics and health.
"""

from __future__ import annotations

from dralloc.batch.cache import WatchCache
from dralloc.batch.figures import Figures, serving
from dralloc.batch.lease import LEASES, LeaderLease
from dralloc.batch.notes import EVENTS, PodNotes
from dralloc.batch.queue import BatchQueue

__all__ = ["EVENTS", "LEASES", "BatchQueue", "Figures", "LeaderLease", "PodNotes", "WatchCache", "serving"]
