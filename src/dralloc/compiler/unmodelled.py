"""What objects say that an answer leaves out, although it could change the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dralloc.api import ApiObject
from dralloc.choices import Mode
from dralloc.cluster import Cluster
from dralloc.errors import Finding, UnknownField
from dralloc.modelled import used
from dralloc.problem import Demand

__all__ = ["Unmodelled", "find_unmodelled"]


@dataclass(frozen=True, slots=True)
class Unmodelled:
    """Something that is left out, and the modes that leave it out."""

    finding: Finding
    modes: frozenset[Mode]


def find_unmodelled(cluster: Cluster, demands: Sequence[Demand]) -> Iterator[Unmodelled]:
    """The fields that nobody knows, and those that say in the table that some mode ignores them (`dralloc.modelled`).

    Parameters
    ----------
    demands
        What is to be placed: of other pods without a node it does not matter what they say.
    """
    for finding in cluster.findings:
        if isinstance(finding, UnknownField):
            yield Unmodelled(finding, frozenset(Mode))
    asked = {demand.key for demand in demands}
    objects: dict[str, Sequence[ApiObject]] = {
        "Pod": [pod for pod in cluster.pods if pod.key in asked],
        "PodGroup": tuple(cluster.pod_groups.values()),
        "Workload": tuple(cluster.workloads.values()),
        "ResourceClaim": [claim for claim in cluster.claims if claim.status.allocation is None],
        "ResourceSlice": cluster.slices,
        "Node": cluster.nodes,
    }
    for use in used(objects, [pod for pod in cluster.pods if pod.spec.node_name]):
        yield Unmodelled(cluster.remark(use.about, use.path, use.rule), use.modes)
