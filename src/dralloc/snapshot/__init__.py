"""Reads a live cluster: the objects that dralloc uses, trimmed to what it reads of them.

`connect` opens the cluster of a kubeconfig, `take_snapshot` reads it. `trimmed` and `is_needed` also serve objects
that were read from files.
"""

from __future__ import annotations

from dralloc.snapshot.client import connect
from dralloc.snapshot.listing import ClusterSnapshot, take_snapshot
from dralloc.snapshot.server import Page, ReadLimits, Refused, Server
from dralloc.snapshot.strip import is_needed, trimmed

__all__ = [
    "ClusterSnapshot",
    "Page",
    "ReadLimits",
    "Refused",
    "Server",
    "connect",
    "is_needed",
    "take_snapshot",
    "trimmed",
]
