"""Asks the scheduler whether it knows of a fence: by a pod that can run nowhere, and is told why.

The pod may come to one node only, and asks for a label there that no node has. kube-scheduler looks at taints before it
looks at labels (the order of its default plugins), and says what it found first.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from dralloc.live.apply.executor import PODS
from dralloc.live.apply.fence import NODES
from dralloc.live.apply.marks import FENCE
from dralloc.live.snapshot import Json, LiveObjects, Refused
from dralloc.objects.api.tolerating import CORDON_TAINT
from dralloc.objects.errors import ApplyError, SnapshotError
from dralloc.objects.names import ClaimKey

__all__ = ["SchedulerProbe"]

NOWHERE: Final = "dralloc.dev/nowhere"
"""A label that no node has."""
_TAINTED: Final = "untolerated taint"
"""What kube-scheduler says of a node whose taint a pod does not tolerate (``plugins/tainttoleration``)."""
_INTERVAL: Final = 0.1
"""Seconds between two looks."""


@dataclass(frozen=True)
class SchedulerProbe:
    """Pods that ask.

    Parameters
    ----------
    namespace
        Where they are made.
    patience
        Seconds for the scheduler to know of a fence.
    """

    objects: LiveObjects
    namespace: str
    pause: Callable[[float], None]
    patience: float = 15.0

    def confirm(self, name: str) -> str:
        """Wait until the scheduler says that a node is tainted; why it could not be asked, if so.

        Nodes come to the scheduler in the order in which they were changed: who knows of the last one knows of all.

        Raises
        ------
        ApplyError
            It says something else, or nothing.
        """
        waited, said = 0.0, ""
        while waited < self.patience:
            key = ClaimKey(self.namespace, f"dralloc-probe-{uuid4().hex[:12]}")
            try:
                node = self.objects.get(NODES, ClaimKey("", name))
                self.objects.create(PODS, _pod(key, node))
            except Refused as refusal:
                return str(refusal)
            try:
                while not (said := self._said(key)) and waited < self.patience:
                    self.pause(_INTERVAL)
                    waited += _INTERVAL
            finally:
                with suppress(Refused, SnapshotError):  # it can run nowhere
                    path = self.objects.path(PODS, key)
                    self.objects.wire.send(
                        "DELETE", path, {}, {"gracePeriodSeconds": 0}
                    )
            if _TAINTED in said:
                return ""
            self.pause(_INTERVAL)
            waited += _INTERVAL
        raise ApplyError(
            f"the scheduler does not know of the fence after {self.patience:g} s: pod {key} was told "
            f"{said or 'nothing'}; --probe '' does not ask"
        )

    def _said(self, key: ClaimKey) -> str:
        """What the scheduler says about a pod; empty as long as it says nothing."""
        conditions = (
            self.objects.get(PODS, key).get("status", {}).get("conditions") or ()
        )
        scheduled = (one for one in conditions if one.get("type") == "PodScheduled")
        return next((str(one.get("message") or "") for one in scheduled), "")


def _pod(key: ClaimKey, node: Json) -> Json:
    """A pod for one node that tolerates all of its taints but that of the fence."""
    others = [
        one
        for one in node.get("spec", {}).get("taints") or ()
        if one.get("key") != FENCE
    ]
    cordon = {"key": CORDON_TAINT.key, "effect": CORDON_TAINT.effect}
    only = {
        "key": "metadata.name",
        "operator": "In",
        "values": [node["metadata"]["name"]],
    }
    term = {
        "matchFields": [only],
        "matchExpressions": [{"key": NOWHERE, "operator": "Exists"}],
    }
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
    }
    container = {
        "name": "probe",
        "image": "probe",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {"app.kubernetes.io/name": "dralloc-probe"},
        },
        "spec": {
            "containers": [container],
            "affinity": {"nodeAffinity": required},
            "tolerations": [
                {**_tolerated(taint), "operator": "Exists"}
                for taint in [*others, cordon]
            ],
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }


def _tolerated(taint: Json) -> Json:
    return {name: taint[name] for name in ("key", "effect") if taint.get(name)}
