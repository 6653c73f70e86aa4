"""Who uses the allocated claims of a cluster, and from where they can be used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import networkx as nx

from dralloc.api import Pod, ResourceClaim
from dralloc.api.node_selectors import selector_matches
from dralloc.cluster import Cluster
from dralloc.compiler.extended import extended_claims
from dralloc.names import ClaimKey

__all__ = ["ClaimGroup", "ClaimUsers"]


@dataclass(frozen=True, slots=True)
class ClaimGroup:
    """Allocated claims that have pods in common, and these pods."""

    claims: tuple[ClaimKey, ...]
    pods: tuple[Pod, ...]


class ClaimUsers:
    """Who uses the allocated claims of a cluster.

    Parameters
    ----------
    nodes
        Names of the only nodes that count; all if there are none.
    """

    def __init__(self, cluster: Cluster, nodes: Sequence[str] = ()) -> None:
        self.cluster = cluster
        self.nodes = tuple(node for node in cluster.nodes if not nodes or node.metadata.name in nodes)
        self.by_name = {node.metadata.name: number for number, node in enumerate(self.nodes)}
        extended: dict[ClaimKey, list[ClaimKey]] = defaultdict(list)
        for owner, claim in extended_claims(cluster.claims):
            extended[owner].append(claim.key)
        self.claims_of = {
            pod.key: tuple(dict.fromkeys((*cluster.pod_claims(pod), *extended.get(pod.key, ()))))
            for pod in cluster.pods
        }
        self.users: dict[ClaimKey, list[Pod]] = defaultdict(list)
        for pod in cluster.pods:
            for key in self.claims_of[pod.key]:
                self.users[key].append(pod)

    def groups(self) -> Iterator[ClaimGroup]:
        """The allocated claims by what they have in common, in order."""
        graph: nx.Graph[tuple[str, ClaimKey]] = nx.Graph()
        for claim in self.cluster.claims:
            if claim.is_allocated:
                graph.add_node(("claim", claim.key))
                graph.add_edges_from((("claim", claim.key), ("pod", pod.key)) for pod in self.users[claim.key])
        pods = {pod.key: pod for pod in self.cluster.pods}
        order = {claim.key: number for number, claim in enumerate(self.cluster.claims)}
        for members in nx.connected_components(graph):
            claims = sorted((key for kind, key in members if kind == "claim"), key=order.__getitem__)
            users = sorted(key for kind, key in members if kind == "pod")
            yield ClaimGroup(tuple(claims), tuple(pods[key] for key in users))

    def is_settled(self, group: ClaimGroup) -> bool:
        """Whether nobody of the group still waits for a claim or to be scheduled, or is about to go."""
        claims = (self.cluster.claim(key) for pod in group.pods for key in self.claims_of[pod.key])
        allocated = all(claim is not None and claim.is_allocated for claim in claims)
        leaving = any(
            key in self.cluster.abandoned or self.claim(key).metadata.deletion_timestamp for key in group.claims
        )
        return allocated and not leaving and not any(pod.spec.scheduling_gates for pod in group.pods)

    def claim(self, key: ClaimKey) -> ResourceClaim:
        """An allocated claim."""
        found = self.cluster.claim(key)
        if found is None:
            raise KeyError(key)
        return found

    def reach(self, key: ClaimKey) -> tuple[int, ...]:
        """The nodes, by index, from which an allocated claim can be used."""
        allocation = self.claim(key).status.allocation
        selector = allocation.node_selector if allocation is not None else None
        if selector is None:
            return tuple(range(len(self.nodes)))
        only = [
            field.values
            for term in selector.node_selector_terms
            for field in term.match_fields
            if field.key == "metadata.name" and field.operator == "In"
        ]
        if (
            len(only) == len(selector.node_selector_terms) == 1
            and not selector.node_selector_terms[0].match_expressions
        ):
            return tuple(sorted(self.by_name[name] for name in only[0] if name in self.by_name))
        return tuple(number for number, node in enumerate(self.nodes) if selector_matches(selector, node))

    def home(self, key: ClaimKey) -> tuple[int, ...]:
        """The nodes where an allocated claim is used: those of its pods, or else those from which it can be."""
        bound = [self.by_name.get(pod.spec.node_name or "") for pod in self.users[key] if pod.spec.node_name]
        return tuple(node for node in bound if node is not None) if bound else self.reach(key)
