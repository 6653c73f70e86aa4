"""Notes that tell pods why they wait, in a line each: a condition of the pod, and an event about it.

Behind them stand the reasons that they give: what explain says about some of the pods, and plans about the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from dralloc.ask.explain import explain
from dralloc.live.apply import Question
from dralloc.live.apply.pods import gates_of
from dralloc.live.snapshot import (
    PODS,
    Json,
    ListedKind,
    LiveObjects,
    Refused,
    condition,
    is_current,
    key_of,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError, SnapshotError
from dralloc.objects.names import ClaimKey

__all__ = ["CONDITION", "EVENTS", "PodNotes", "reasons_for"]

EVENTS: Final = ListedKind("events", "Event", namespaced=True)
CONDITION: Final = "dralloc.dev/Placed"
"""Type of the condition."""
_EXPLAINED: Final = 20
"""How many pods are explained after a batch; pods of one owner share an explanation."""
_CAUSES: Final = 4
_LONGEST: Final = 1024
"""Bytes of an event's note that the API takes."""


@dataclass
class PodNotes:
    """Writes what is new about pods; what a pod was told already is not said again."""

    objects: LiveObjects
    component: str
    _told: dict[str, str] = field(default_factory=dict)

    def tell(
        self, pods: Mapping[ClaimKey, Json], reasons: Mapping[ClaimKey, str]
    ) -> int:
        """Say to each pod why it waits; returns how many heard something new.

        A pod that is gone or changes meanwhile hears it the next time.
        """
        told = 0
        waiting = {pod["metadata"]["uid"] for pod in pods.values()}
        self._told = {
            uid: why for uid, why in self._told.items() if uid in waiting
        }
        for key, why in reasons.items():
            pod = pods.get(key)
            if pod is None or self._told.get(pod["metadata"]["uid"]) == why:
                continue
            try:
                self._write(key, pod, _shortened(why))
            except (Refused, SnapshotError):
                continue
            self._told[pod["metadata"]["uid"]] = why
            told += 1
        return told

    def take_back(
        self, pods: Mapping[ClaimKey, Json], released: Iterable[ClaimKey]
    ) -> None:
        """Say of released pods that they wait no more, where they were told otherwise."""
        for key in released:
            pod = pods.get(key, {})
            if any(
                entry.get("type") == CONDITION
                for entry in pod.get("status", {}).get("conditions") or ()
            ):
                with suppress(Refused, SnapshotError):
                    # The list goes by type; other conditions are the scheduler's, who writes now.
                    held = self.objects.get(PODS, key)
                    self._set(
                        key, held, "True", "Released", "its claims are written"
                    )

    def correct(self, pods: Iterable[Json]) -> None:
        """Say of pods that were told why they wait that they wait no more, whoever took the gate from them."""
        for pod in pods:
            # One that still has a gate waits for another queue, which told it: none is told that has several.
            if not gates_of(pod) and _is_told_to_wait(pod):
                # It may be gone, or have changed: the next look tells.
                with suppress(Refused, SnapshotError):
                    self._set(
                        key_of(pod), pod, "True", "Released", "has no gate"
                    )

    def _set(
        self, key: ClaimKey, pod: Json, status: str, reason: str, why: str
    ) -> None:
        conditions = [
            entry
            for entry in pod.get("status", {}).get("conditions") or ()
            if entry.get("type") != CONDITION
        ]
        note = {
            "type": CONDITION,
            "status": status,
            "reason": reason,
            "message": why,
            "lastTransitionTime": _now(),
        }
        change = {
            "metadata": condition(pod),
            "status": {"conditions": [*conditions, note]},
        }
        self.objects.patch(PODS, key, change, "status")

    def _write(self, key: ClaimKey, pod: Json, why: str) -> None:
        self._set(key, pod, "False", "Waiting", why)
        timestamp = _now()
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": key.namespace,
            "name": key.name,
        }
        event = {
            "metadata": {
                "name": _event_name(pod, why),
                "namespace": key.namespace,
            },
            "involvedObject": {**about, "uid": pod["metadata"]["uid"]},
            "type": "Warning",
            "reason": "NotPlaced",
            "message": why,
            "firstTimestamp": timestamp,
            "lastTimestamp": timestamp,
            "count": 1,
            "source": {"component": self.component},
        }
        # A conflict means that the same was said before: then that event counts once more.
        if not is_current(lambda: self.objects.create(EVENTS, event)):
            event_key = ClaimKey(key.namespace, _event_name(pod, why))
            times = (
                int(self.objects.get(EVENTS, event_key).get("count") or 1) + 1
            )
            self.objects.patch(
                EVENTS, event_key, {"count": times, "lastTimestamp": timestamp}
            )


def _is_told_to_wait(pod: Json) -> bool:
    return any(
        entry.get("type") == CONDITION and entry.get("status") == "False"
        for entry in pod.get("status", {}).get("conditions") or ()
    )


def _shortened(why: str) -> str:
    """Return as much of a text as a note may have, in whole characters."""
    # What is left of a character that was cut in two is no UTF-8.
    return why.encode()[:_LONGEST].decode(errors="ignore")


def _event_name(pod: Json, why: str) -> str:
    """Return a name that is the same for what is said to a pod again, as kubelets aggregate their events."""
    digest = sha256(f"{pod['metadata']['uid']} {why}".encode()).hexdigest()[:16]
    return f"{pod['metadata']['name'][:200]}.{digest}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def reasons_for(
    question: Question,
    cluster: Cluster,
    pods: Mapping[ClaimKey, Json],
    plan_reasons: Mapping[ClaimKey, str],
) -> Mapping[ClaimKey, str]:
    """Return what explain says about each pod, node by node; where it is not asked, what is known.

    Parameters
    ----------
    cluster
        As it is once the others are placed.
    plan_reasons
        The pods, each with what its plan says.
    """
    said: dict[str, str] = {}
    reasons = {}
    for key, why in plan_reasons.items():
        owner = _owner(pods.get(key, {}))
        if owner not in said and len(said) < _EXPLAINED:
            said[owner] = _explained(question, cluster, key) or why
        reasons[key] = said.get(owner, why)
    return reasons


def _owner(pod: Json) -> str:
    metadata = pod.get("metadata", {})
    return str(
        next(
            (
                reference["uid"]
                for reference in metadata.get("ownerReferences") or ()
            ),
            metadata.get("uid"),
        )
    )


def _explained(question: Question, cluster: Cluster, key: ClaimKey) -> str:
    try:
        explanation = explain(
            cluster,
            pod=str(key),
            mode="first-fit",
            suggest=False,
            choices=question.choices,
        )
    except DrallocError as error:
        return str(error)
    texts: list[str] = []
    for group in explanation.groups[:_CAUSES]:
        causes = ", ".join(map(str, group.causes))
        texts.append(f"{len(group.nodes)} nodes: {causes}")
    return "; ".join(texts)
