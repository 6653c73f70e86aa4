"""Which demand a claim or pod is, or why it is none."""

from __future__ import annotations

from dralloc.api import Pod
from dralloc.cluster import Cluster
from dralloc.compiler import Compiled
from dralloc.errors import DrallocError
from dralloc.names import ClaimKey
from dralloc.problem import Demand

__all__ = ["find_demand", "pod_of"]


def pod_of(cluster: Cluster, demand: Demand) -> Pod | None:
    """The pod of a demand; None if it is a claim that no pod uses (a pod may have the same name)."""
    own = {claim.key for claim in demand.claims}
    candidates = (pod for pod in cluster.pods if pod.key == demand.key)
    return next((pod for pod in candidates if own <= set(cluster.pod_claims(pod))), None)


def find_demand(compiled: Compiled, claim: ClaimKey | None, pod: ClaimKey | None) -> int:
    """The index of the demand.

    Raises
    ------
    DrallocError
        Not exactly one of the two is given, it does not exist, or nothing of it is pending.
    """
    if (claim is None) == (pod is None):
        raise DrallocError("explain needs the name of a claim or of a pod, and not both")
    for number, demand in enumerate(compiled.problem.demands):
        if claim is not None and any(one.key == claim for one in demand.claims):
            return number
        if pod is not None and demand.key == pod and pod_of(compiled.cluster, demand) is not None:
            return number
    if claim is not None:
        raise DrallocError(_about_claim(compiled.cluster, claim))
    raise DrallocError(_about_pod(compiled.cluster, pod or ClaimKey("", "")))


def _about_claim(cluster: Cluster, key: ClaimKey) -> str:
    claim = cluster.claim(key)
    if claim is None:
        return f"ResourceClaim {key}: not found"
    if claim.status.allocation is not None:
        devices = ", ".join(str(result.device_id) for result in claim.status.allocation.devices.results)
        return f"ResourceClaim {key}: status.allocation: is allocated already ({devices or 'no devices'})"
    gated = [pod for pod in cluster.pods if key in cluster.pod_claims(pod) and pod.spec.scheduling_gates]
    if gated:
        return f"Pod {gated[0].key}: spec.schedulingGates: the pod of claim {key} is not to be scheduled yet"
    return f"ResourceClaim {key}: is not pending"


def _about_pod(cluster: Cluster, key: ClaimKey) -> str:
    pod = next((one for one in cluster.pods if one.key == key), None)
    if pod is None:
        return f"Pod {key}: not found"
    if pod.spec.scheduling_gates:
        return f"Pod {key}: spec.schedulingGates: is not to be scheduled yet"
    return f"Pod {key}: spec.resourceClaims: has no pending claims"
