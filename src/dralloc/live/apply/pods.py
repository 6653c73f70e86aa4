"""Pods as the API server holds them: what they name, what a release changes of them, and what becomes of them then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dralloc.live.apply.units import WrittenDemand
from dralloc.live.snapshot import Json, key_of
from dralloc.objects.names import ClaimKey

__all__ = [
    "BindingWatch",
    "claims_of",
    "gates_of",
    "gates_without",
    "on_node",
    "tolerating",
]

_AFFINITY: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def claims_of(pod: Json) -> Iterator[ClaimKey]:
    """Yield the claims that a pod names, and those that were made for it."""
    namespace = key_of(pod).namespace
    entries: tuple[Mapping[str, str], ...] = (
        *(pod.get("spec", {}).get("resourceClaims") or ()),
        *(pod.get("status", {}).get("resourceClaimStatuses") or ()),
    )
    return (
        ClaimKey(namespace, entry["resourceClaimName"])
        for entry in entries
        if entry.get("resourceClaimName")
    )


def gates_of(pod: Json) -> list[str]:
    """Return the names of a pod's scheduling gates."""
    return [
        str(gate.get("name"))
        for gate in pod.get("spec", {}).get("schedulingGates") or ()
    ]


def gates_without(pod: Json, name: str) -> list[Json]:
    """Return the scheduling gates of a pod, but for that with a name."""
    return [
        gate
        for gate in pod["spec"].get("schedulingGates") or ()
        if gate.get("name") != name
    ]


def on_node(pod: Json, node: str) -> Json:
    """Return a change of a gated pod's affinity: what it required already, and the node, if there is one."""
    if not node:
        return {}
    # Terms are alternatives, so that the node has to be in each of them.
    only = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get(_AFFINITY) or {}).get("nodeSelectorTerms") or ()
    tighter = [_with_field(term, only) for term in terms]
    return {
        "affinity": {
            "nodeAffinity": {
                _AFFINITY: {
                    "nodeSelectorTerms": tighter or [{"matchFields": [only]}]
                }
            }
        }
    }


def _with_field(term: Json, only: Json) -> Json:
    """Return a term with one field more, behind its others, as the server lets terms of gated pods get nothing else.

    One without any condition selects no node; it may not get one.
    """
    fields = term.get("matchFields") or []
    is_empty = not fields and not term.get("matchExpressions")
    if is_empty or only in fields:
        return term
    return {**term, "matchFields": [*fields, only]}


def tolerating(pod: Json, toleration: Json | None) -> Json:
    """Return a change of a pod's tolerations: those that it has, and one more."""
    tolerations = pod["spec"].get("tolerations") or []
    return (
        {}
        if toleration is None or toleration in tolerations
        else {"tolerations": [*tolerations, toleration]}
    )


# ----------------------------------------------------------------------------
# What becomes of released pods: bound as planned, elsewhere, or not at all within a
# limit.

_INTERVAL: Final = 0.25
"""Seconds between two looks."""


@dataclass(frozen=True)
class BindingWatch:
    """Looks at pods until each of them is bound.

    Parameters
    ----------
    pods
        All pods of the cluster, as they are now.
    limit
        Seconds without any pod that is newly bound after which the others are given up; 0 looks at none.
    """

    pods: Callable[[], Iterable[Json]]
    limit: float
    pause: Callable[[float], None]

    def differences(
        self, demands: Iterable[WrittenDemand]
    ) -> Mapping[ClaimKey, str]:
        """Wait for pods; what is not as planned in the end, by pod."""
        awaited = [demand for demand in demands if demand.pod]
        if not awaited or not self.limit:
            return {}
        bound, quiet = -1, 0.0
        while True:
            held = {pod["metadata"]["uid"]: pod for pod in self.pods()}
            verdicts = {
                demand.key: _difference(demand, held.get(demand.pod))
                for demand in awaited
            }
            waiting = sum(verdict is None for verdict in verdicts.values())
            if not waiting or quiet >= self.limit:
                break
            # With each pod that is newly bound, the limit begins anew.
            if len(awaited) - waiting > bound:
                bound, quiet = len(awaited) - waiting, 0.0
            self.pause(_INTERVAL)
            quiet += _INTERVAL
        late = {key for key, verdict in verdicts.items() if verdict is None}
        # A pod without a verdict is there, and so it is in `held`.
        unbound = {
            demand.key: self._unbound(demand, held[demand.pod])
            for demand in awaited
            if demand.key in late
        }
        return {
            **{key: verdict for key, verdict in verdicts.items() if verdict},
            **unbound,
        }

    def _unbound(self, demand: WrittenDemand, pod: Json) -> str:
        conditions = pod.get("status", {}).get("conditions") or ()
        message = next(
            (
                str(entry.get("message", ""))
                for entry in conditions
                if entry.get("type") == "PodScheduled"
            ),
            "",
        )
        where = f" to {demand.node}" if demand.node else ""
        return (
            f"pod {demand.key}: is not bound{where} after {self.limit:g} s"
            + (f": {message}" if message else "")
        )


def _difference(demand: WrittenDemand, pod: Json | None) -> str | None:
    """Return what is otherwise than planned; empty if nothing is, None as long as nobody can say."""
    if pod is None:
        return f"pod {demand.key}: is gone"
    node = pod.get("spec", {}).get("nodeName")
    if not node:
        return (
            f"pod {demand.key}: is being deleted"
            if pod["metadata"].get("deletionTimestamp")
            else None
        )
    return (
        ""
        if node == (demand.node or node)
        else f"pod {demand.key}: is bound to {node} in place of {demand.node}"
    )
