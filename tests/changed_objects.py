"""Clusters changed by hand, as the tests of what-if questions ask `allocate` about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from dralloc.ask.allocate import allocate
from dralloc.ask.whatif.defragment import Itinerary
from dralloc.objects.api import Node, Pod
from dralloc.objects.api.base import changed
from dralloc.objects.api.nodes import Taint, Toleration
from dralloc.objects.api.selecting import CORDON_TAINT
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey

__all__ = [
    "homes_of",
    "of_equal_rank",
    "only",
    "pending_again",
    "pinned",
    "settled_on",
]


def pending_again(whole: Cluster, pods: Collection[ClaimKey]) -> Cluster:
    """The cluster in which some pods, and the claims that they use, are as before they were scheduled."""
    claims = {
        key for pod in pods for key in whole.pod_claims(whole.pods_by_key[pod])
    }
    return replace(
        whole,
        claims=tuple(
            claim.unallocated() if claim.key in claims else claim
            for claim in whole.claims
        ),
        pods=tuple(
            on_node(pod_object, None) if pod_object.key in pods else pod_object
            for pod_object in whole.pods
        ),
    )


def on_node(pod: Pod, name: str | None) -> Pod:
    return changed(pod, spec=changed(pod.spec, node_name=name))


def only(whole: Cluster, pods: Collection[ClaimKey]) -> Cluster:
    """The cluster in which nobody is pending but these pods."""
    waiting = {pod.key for pod in whole.pods if not pod.spec.node_name} - set(
        pods
    )
    claims = {key for pod in waiting for key in whole.claims_of_pods[pod]}
    return replace(
        whole,
        pods=tuple(pod for pod in whole.pods if pod.key not in waiting),
        claims=tuple(
            claim for claim in whole.claims if claim.key not in claims
        ),
    )


def settled_on(whole: Cluster, homes: dict[ClaimKey, str]) -> Cluster | None:
    """The cluster once these pods, which are pending, have been placed on their nodes; None if `allocate` cannot."""
    state = whole
    for key, home in homes.items():
        plan = allocate(only(state, [key]), "optimal", nodes=[home])
        if not plan.solution.placements:
            return None
        written = {claim.key: claim for claim in plan.claims}
        state = replace(
            state,
            claims=tuple(
                written.get(claim.key, claim) for claim in state.claims
            ),
            pods=tuple(
                on_node(pod, home) if pod.key == key else pod
                for pod in state.pods
            ),
        )
    return state


def homes_of(whole: Cluster, itinerary: Itinerary) -> dict[ClaimKey, str]:
    """Where pods go in the end, by the moves of their claims."""
    moved = {}
    for step in itinerary.steps:
        for change in step.claims:
            if change.to_node is not None:
                moved[ClaimKey.parse(change.claim)] = change.to_node
    return {
        pod.key: moved[key]
        for pod in whole.pods
        for key in whole.claims_of_pods[pod.key]
        if key in moved
    }


def of_equal_rank(whole: Cluster) -> Cluster:
    """The cluster whose pods all have the same priority."""
    return replace(
        whole,
        pods=tuple(
            changed(pod, spec=changed(pod.spec, priority=0))
            for pod in whole.pods
        ),
    )


def pinned(whole: Cluster, homes: Mapping[ClaimKey, str]) -> Cluster:
    """The cluster in which some pods may go to one node each only.

    By taints: what a pod selects would change which domains count for topology spread.
    """

    def guarded(node: Node) -> Node:
        taint = Taint(key=f"example.com/{node.name}", effect="NoSchedule")
        return changed(
            node, spec=changed(node.spec, taints=(*node.spec.taints, taint))
        )

    def tied(pod: Pod) -> Pod:
        home = Toleration(
            key=f"example.com/{homes[pod.key]}", operator="Exists"
        )
        if any(not toleration.key for toleration in pod.spec.tolerations):
            known = tuple(
                Toleration(key=key, operator="Exists")
                for key in ("example.com/gpu", CORDON_TAINT.key)
            )
        else:
            known = pod.spec.tolerations
        return changed(pod, spec=changed(pod.spec, tolerations=(*known, home)))

    return replace(
        whole,
        nodes=tuple(map(guarded, whole.nodes)),
        pods=tuple(
            tied(pod) if pod.key in homes else pod for pod in whole.pods
        ),
    )
