"""A live cluster: the objects that dralloc uses, trimmed to what it reads of them; and single objects, to change them.

`connect` opens the cluster of a kubeconfig, `take_snapshot` reads it, `LiveObjects` has its objects one by one.
`trimmed` and `is_needed` also serve objects that were read from files.
"""

from __future__ import annotations

from dralloc.live.snapshot.client import (
    LISTED_KINDS,
    ApiServer,
    Json,
    ListedKind,
    Page,
    ReadLimits,
    Refused,
    Unanswered,
    Wire,
    connect,
)
from dralloc.live.snapshot.listing import (
    ClusterSnapshot,
    LiveObjects,
    condition,
    is_current,
    is_needed,
    kept,
    key_of,
    served,
    take_snapshot,
    trimmed,
    version_of,
)

__all__ = [
    "LISTED_KINDS",
    "ApiServer",
    "ClusterSnapshot",
    "Json",
    "ListedKind",
    "LiveObjects",
    "Page",
    "ReadLimits",
    "Refused",
    "Unanswered",
    "Wire",
    "condition",
    "connect",
    "is_current",
    "is_needed",
    "kept",
    "key_of",
    "served",
    "take_snapshot",
    "trimmed",
    "version_of",
]
