"""The domains of a cluster's nodes, by the label that makes them."""

from __future__ import annotations

from collections.abc import Iterable

from dralloc.api import Pod
from dralloc.cluster import Cluster
from dralloc.problem.inter_pod import Domains, OneDomain

__all__ = ["Topology"]


class Topology:
    """The domains of a cluster, by the label that makes them."""

    def __init__(self, cluster: Cluster) -> None:
        self._nodes = {node.name: node.metadata.labels for node in cluster.nodes}
        self._known: dict[str, Domains] = {}

    def _domains(self, key: str) -> Domains:
        if key not in self._known:
            self._known[key] = {name: labels[key] for name, labels in self._nodes.items() if key in labels}
        return self._known[key]

    def domain(self, key: str, pods: Iterable[Pod]) -> str | None:
        """The domain of the pods that run: None if none do, empty if they are in none, or in several."""
        homes = {self._domains(key).get(pod.spec.node_name, "") for pod in pods if key and pod.spec.node_name}
        return None if not homes else homes.pop() if len(homes) == 1 else ""

    def outside(self, key: str, domain: str | None) -> frozenset[str]:
        """The nodes that are not in the domain, or in none if it is still to be chosen."""
        if not key:
            return frozenset()
        domains = self._domains(key)
        inside = (name for name, here in domains.items() if domain is None or here == domain != "")
        return frozenset(self._nodes).difference(inside)

    def rule(self, key: str) -> OneDomain | None:
        """What pods of one group carry; None if they may be anywhere."""
        return OneDomain(self._domains(key)) if key else None
