"""Which demand a claim or pod is, or why it is none."""

from __future__ import annotations

from typing import Final

from dralloc.ask.context.node_rules import pod_of
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey
from dralloc.objects.unasked import Unasked

__all__ = ["find_demand"]

_PATHS: Final = {
    Unasked.GATED: "spec.schedulingGates",
    Unasked.BOUND: "spec.nodeName",
    Unasked.ALLOCATED: "spec.resourceClaims",
    Unasked.FINISHED: "status.phase",
    Unasked.DELETED: "metadata.deletionTimestamp",
}


def find_demand(
    compiled: CompiledCluster, claim: ClaimKey | None, pod: ClaimKey | None
) -> int:
    """The index of the demand.

    Raises
    ------
    DrallocError
        Not exactly one of the two is given, it does not exist, or nothing of it is pending.
    """
    if (claim is None) == (pod is None):
        raise DrallocError(
            "explain needs the name of a claim or of a pod, and not both"
        )
    for number, demand in enumerate(compiled.problem.demands):
        if claim is not None and any(one.key == claim for one in demand.claims):
            return number
        if (
            pod is not None
            and demand.key == pod
            and pod_of(compiled.cluster, demand) is not None
        ):
            return number
    if claim is not None:
        raise DrallocError(_about_claim(compiled, claim))
    raise DrallocError(_about_pod(compiled, pod or ClaimKey("", "")))


def _about_claim(compiled: CompiledCluster, key: ClaimKey) -> str:
    cluster = compiled.cluster
    claim = cluster.claim(key)
    if claim is None:
        return f"ResourceClaim {key}: not found"
    if claim.is_allocated:
        devices = ", ".join(str(result.device_id) for result in claim.results)
        return f"ResourceClaim {key}: status.allocation: is allocated already ({devices or 'no devices'})"
    users = [
        pod.key
        for pod in cluster.pods
        if pod.key in compiled.unasked and key in cluster.pod_claims(pod)
    ]
    reason = f": {_about_pod(compiled, users[0])}" if users else ""
    return f"ResourceClaim {key}: is not pending{reason}"


def _about_pod(compiled: CompiledCluster, key: ClaimKey) -> str:
    why = compiled.unasked.get(key)
    if why is None:
        return f"Pod {key}: not found"
    path = f"{_PATHS[why]}: " if why in _PATHS else ""
    hint = f"; --include {why.include} plans for it" if why.include else ""
    return f"Pod {key}: {path}{why}{hint}"
