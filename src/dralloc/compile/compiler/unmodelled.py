"""What objects say that an answer leaves out, although it could change the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from dralloc.compile.modelled.field_uses import used
from dralloc.objects.api import ApiObject
from dralloc.objects.choices import Mode
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding, UnknownField
from dralloc.problem import Demand, DemandIndex, Numbered, Problem

__all__ = ["Unmodelled", "find_unmodelled"]

_NOT_SCHEDULER: Final = frozenset(Mode) - {Mode.SCHEDULER}

Unmodelled = tuple[Finding, frozenset[Mode]]
"""Something that is left out, and the modes that leave it out."""


def find_unmodelled(cluster: Cluster, problem: Problem) -> Iterator[Unmodelled]:
    """Find unknown fields, and those that some mode ignores by the table in `dralloc.compile.modelled`.

    Parameters
    ----------
    problem
        With what is to be placed: of other pods without a node it does not matter what they say.
    """
    for finding in cluster.findings:
        if isinstance(finding, UnknownField):
            yield finding, frozenset(Mode)
    pending = {demand.key for demand in problem.demands}
    objects: dict[str, Sequence[ApiObject]] = {
        "Pod": [pod for pod in cluster.pods if pod.key in pending],
        "PodGroup": tuple(cluster.pod_groups.values()),
        "CompositePodGroup": tuple(cluster.composite_pod_groups.values()),
        "Workload": tuple(cluster.workloads.values()),
        "ResourceClaim": [
            claim for claim in cluster.claims if not claim.is_allocated
        ],
        "ResourceSlice": cluster.slices,
        "Node": cluster.nodes,
    }
    if any(device.footprint for device in problem.devices):
        yield from _of_footprints(cluster, problem.demands)
    for use in used(
        objects, [pod for pod in cluster.pods if pod.spec.node_name]
    ):
        yield cluster.remark(use.about, use.path, use.rule), use.modes


def _of_footprints(
    cluster: Cluster, demands: Numbered[DemandIndex, Demand]
) -> Iterator[Unmodelled]:
    """Yield remarks on devices that take something of their node (KEP-5517) for claims that several pods share."""
    users = Counter(claim.key for demand in demands for claim in demand.claims)
    for claim in cluster.claims:
        if users[claim.key] > 1:
            rule = "what its devices take of nodes counts for the first of the pods that use it"
            yield cluster.remark(claim, "", rule), _NOT_SCHEDULER
        if users[claim.key] and any(
            request.exactly and request.exactly.admin_access
            for request in claim.spec.devices.requests
        ):
            rule = "devices take nothing of nodes for admin access"
            yield (
                cluster.remark(claim, "spec.devices.requests", rule),
                _NOT_SCHEDULER,
            )
    for slice_ in cluster.slices:
        taking = [
            device
            for device in slice_.spec.devices
            if device.node_allocatable_resources
        ]
        if (
            taking
            and not slice_.spec.node_name
            and not all(device.node_name for device in taking)
        ):
            rule = "what devices take of nodes does not count where several nodes reach them"
            yield cluster.remark(slice_, "spec.devices", rule), _NOT_SCHEDULER
