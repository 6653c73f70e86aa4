"""The domains of nodes, by the label that makes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from dralloc.objects.api import Node, Pod
from dralloc.problem.inter_pod import Domains, OneDomain

__all__ = ["Topology"]


class Topology:
    """The domains of some nodes. ``domains``: the same object for the same label."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = {node.name: node.metadata.labels for node in nodes}
        self.domains = cache(self._read)

    def _read(self, label: str) -> Domains:
        return {
            name: labels[label]
            for name, labels in self._nodes.items()
            if label in labels
        }

    def one_domain(
        self, label: str, pods: Iterable[Pod]
    ) -> tuple[frozenset[str], OneDomain | None]:
        """The nodes that are in no domain for pods of one group, and what these carry if they have to choose one.

        Where some of them run is their domain; if these are in none, or in several, there is none for the others.
        """
        if not label:
            return frozenset(), None
        domains = self.domains(label)
        homes = {
            domains.get(pod.spec.node_name, "")
            for pod in pods
            if pod.spec.node_name
        }
        inside = (
            name
            for name, domain in domains.items()
            if not homes or (domain and homes == {domain})
        )
        outside = frozenset(self._nodes).difference(inside)
        # Where some run already, there is nothing to choose any more.
        return outside, None if homes else OneDomain(domains)
