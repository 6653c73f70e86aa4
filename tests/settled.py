"""Random clusters in which a part of the pods has been placed and runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hypothesis import strategies as st

import dralloc
from cluster_strategies import clusters
from dralloc.compile.compiler.extended import extended_claims
from dralloc.objects.api import Pod
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from wire import Json, allocated, claim, cluster, request

__all__ = ["held", "running_clusters"]


@st.composite
def running_clusters(draw: st.DrawFn) -> Cluster:
    """A cluster in which first fit has placed some pods, the later ones perhaps first; some of these have ended."""
    initial = cluster(draw(clusters()))
    names = [pod.key for pod in initial.pods]
    waiting = (
        draw(st.sets(st.sampled_from(names), max_size=1)) if names else set()
    )
    gone = (
        draw(st.sets(st.sampled_from(names), max_size=1)) - waiting
        if names
        else set()
    )
    late = replace(
        initial,
        pods=tuple(
            reversed([pod for pod in initial.pods if pod.key not in waiting])
        ),
    )
    return without(started(initial, late), gone)


def started(whole: Cluster, part: Cluster) -> Cluster:
    """The cluster with everything running that first fit places of a part of it."""
    plan = dralloc.allocate(part, "first-fit")
    written = {claim.key: claim for claim in plan.claims}
    nodes = {
        plan.demands[placement.demand].key: plan.node_of(placement)
        for placement in plan.solution.placements
    }
    given = {claim.key for claim in whole.claims}
    made = tuple(claim for key, claim in written.items() if key not in given)
    return replace(
        whole,
        claims=(
            *(written.get(claim.key, claim) for claim in whole.claims),
            *made,
        ),
        pods=tuple(bound(pod, nodes.get(pod.key)) for pod in whole.pods),
    )


def bound(pod: Pod, node: str | None) -> Pod:
    """The pod on its node."""
    return (
        pod.model_copy(
            update={"spec": pod.spec.model_copy(update={"node_name": node})}
        )
        if node
        else pod
    )


def without(whole: Cluster, pods: Collection[ClaimKey]) -> Cluster:
    """The cluster without some pods and their own claims: holes in what is allocated."""
    kept = tuple(pod for pod in whole.pods if pod.key not in pods)
    used = {key for pod in kept for key in whole.claims_of_pods[pod.key]}
    freed = {key for pod in pods for key in whole.claims_of_pods[pod]} - used
    freed |= {
        claim.key for owner, claim in extended_claims(whole) if owner in pods
    }
    return replace(
        whole,
        pods=kept,
        claims=tuple(claim for claim in whole.claims if claim.key not in freed),
        claims_of_pods={pod.key: whole.claims_of_pods[pod.key] for pod in kept},
    )


def held(name: str, home: str | None, *devices: str) -> Json:
    """A claim that holds devices of the node's pool, or with None of the pool that all nodes reach."""
    pool = home or "network"
    claim_object = allocated(
        name, *({"device": device, "pool": pool} for device in devices)
    )
    claim_object["spec"] = claim(name, request(count=len(devices)))["spec"]
    if home:
        field = {"key": "metadata.name", "operator": "In", "values": [home]}
        claim_object["status"]["allocation"]["nodeSelector"] = {
            "nodeSelectorTerms": [{"matchFields": [field]}]
        }
    return claim_object
