"""Tells pods why they wait: a condition of the pod, and an event about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from dralloc.apply.executor import PODS
from dralloc.errors import SnapshotError
from dralloc.names import ClaimKey
from dralloc.snapshot import Json, ListedKind, LiveObjects, Refused, condition

__all__ = ["CONDITION", "EVENTS", "PodNotes"]

EVENTS: Final = ListedKind("events", "Event", namespaced=True)
CONDITION: Final = "dralloc.dev/Placed"
"""Type of the condition."""
_LONGEST: Final = 1024
"""Bytes of an event's note that the API takes."""


@dataclass
class PodNotes:
    """Writes what is new about pods; what a pod was told already is not said again."""

    objects: LiveObjects
    component: str
    _told: dict[str, str] = field(default_factory=dict)

    def tell(self, pods: Mapping[ClaimKey, Json], reasons: Mapping[ClaimKey, str]) -> int:
        """Say to each pod why it waits; returns how many heard something new.

        A pod that is gone or changes meanwhile hears it the next time.
        """
        told = 0
        for key, why in reasons.items():
            pod = pods.get(key)
            if pod is None or self._told.get(pod["metadata"]["uid"]) == why:
                continue
            try:
                self._write(key, pod, why[:_LONGEST])
            except (Refused, SnapshotError):
                continue
            self._told[pod["metadata"]["uid"]] = why
            told += 1
        return told

    def _write(self, key: ClaimKey, pod: Json, why: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        others = [one for one in pod.get("status", {}).get("conditions") or () if one.get("type") != CONDITION]
        mine = {"type": CONDITION, "status": "False", "reason": "Waiting", "message": why, "lastTransitionTime": now}
        change = {"metadata": condition(pod), "status": {"conditions": [*others, mine]}}
        self.objects.patch(PODS, key, change, "status")
        about = {"apiVersion": "v1", "kind": "Pod", "namespace": key.namespace, "name": key.name}
        event = {
            "metadata": {"generateName": f"{key.name[:200]}.", "namespace": key.namespace},
            "involvedObject": {**about, "uid": pod["metadata"]["uid"]},
            "type": "Warning",
            "reason": "NotPlaced",
            "message": why,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": self.component},
        }
        self.objects.create(EVENTS, event)
