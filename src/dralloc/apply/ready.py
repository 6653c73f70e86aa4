"""Pods that wait although nothing is to be written for them any more."""

from __future__ import annotations

from collections.abc import Iterator

from dralloc.api import Pod
from dralloc.apply.units import WriteUnit, WrittenDemand
from dralloc.apply.view import LiveView
from dralloc.names import ClaimKey

__all__ = ["ready_units"]


def ready_units(view: LiveView, gate: str) -> Iterator[WriteUnit]:
    """The gated pods whose claims are all allocated already, so that nothing has to be written but the gate taken.

    A run that was ended may have left them, or somebody who allocates by hand. Pods of a group wait for each other.
    """
    ready = {key for key, names in view.gates.items() if names == [gate] and _is_allocated(view, key)}
    waiting = {_group_of(view.pods[key]) for key in view.gates.keys() - ready if key in view.pods}
    for key in sorted(ready):
        pod = view.pods[key]
        if _group_of(pod) is None or _group_of(pod) not in waiting:
            yield WriteUnit((WrittenDemand(key, "", pod.metadata.uid),), ())


def _is_allocated(view: LiveView, key: ClaimKey) -> bool:
    pod = view.pods.get(key)
    claims = [view.cluster.claim(one) for one in view.cluster.pod_claims(pod)] if pod is not None else []
    return bool(claims) and all(one is not None and one.is_allocated for one in claims)


def _group_of(pod: Pod) -> ClaimKey | None:
    return ClaimKey(pod.key.namespace, pod.pod_group) if pod.pod_group else None
