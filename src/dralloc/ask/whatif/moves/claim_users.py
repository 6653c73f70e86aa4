"""Who uses the allocated claims of a cluster, and from where they can be used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from networkx.utils import UnionFind

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.compiler.extended import extended_claims
from dralloc.objects.api import Pod, ResourceClaim
from dralloc.objects.api.node_selectors import names_of, selector_matches
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.problem import Problem
from dralloc.problem.holdings import Holding

__all__ = ["ClaimGroup", "ClaimUsers", "devices_seen"]


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
        self.nodes = tuple(
            node for node in cluster.nodes if not nodes or node.metadata.name in nodes
        )
        self.by_name = {
            node.metadata.name: number for number, node in enumerate(self.nodes)
        }
        extended: dict[ClaimKey, list[ClaimKey]] = defaultdict(list)
        for owner, claim in extended_claims(cluster.claims):
            extended[owner].append(claim.key)
        self.claims_of = {
            pod.key: tuple(
                dict.fromkeys((*cluster.pod_claims(pod), *extended.get(pod.key, ())))
            )
            for pod in cluster.pods
        }
        self.users: dict[ClaimKey, list[Pod]] = defaultdict(list)
        for pod in cluster.pods:
            for key in self.claims_of[pod.key]:
                self.users[key].append(pod)

    def groups(self) -> Iterator[ClaimGroup]:
        """The allocated claims by what they have in common, in order."""
        allocated = dict.fromkeys(
            claim.key for claim in self.cluster.claims if claim.is_allocated
        )
        forest = UnionFind(allocated)
        for claims in self.claims_of.values():
            forest.union(*(key for key in claims if key in allocated))
        groups: dict[ClaimKey, list[ClaimKey]] = defaultdict(list)
        for key in allocated:
            groups[forest[key]].append(key)
        for group in groups.values():
            pods = {pod.key: pod for key in group for pod in self.users[key]}
            yield ClaimGroup(tuple(group), tuple(pods[key] for key in sorted(pods)))

    def is_settled(self, group: ClaimGroup) -> bool:
        """Whether nobody of the group still waits for a claim or to be scheduled, or is about to go."""
        claims = (
            self.cluster.claim(key)
            for pod in group.pods
            for key in self.claims_of[pod.key]
        )
        allocated = all(claim is not None and claim.is_allocated for claim in claims)
        leaving = any(
            key in self.cluster.abandoned or self.claim(key).metadata.deletion_timestamp
            for key in group.claims
        )
        return (
            allocated
            and not leaving
            and not any(pod.spec.scheduling_gates for pod in group.pods)
        )

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
        names = names_of(selector)
        named = (
            self.by_name.values()
            if names is None
            else sorted(self.by_name[name] for name in names & self.by_name.keys())
        )
        return tuple(
            number for number in named if selector_matches(selector, self.nodes[number])
        )

    def home(self, key: ClaimKey) -> tuple[int, ...]:
        """The nodes where an allocated claim is used: those of its pods, or else those from which it can be."""
        bound = [
            self.by_name.get(pod.spec.node_name or "")
            for pod in self.users[key]
            if pod.spec.node_name
        ]
        return (
            tuple(node for node in bound if node is not None)
            if bound
            else self.reach(key)
        )

    def holdings(self, compiled: CompiledCluster) -> Mapping[ClaimKey, list[Holding]]:
        """What each allocated claim holds of the devices of a cluster that was compiled without some of them."""
        found: dict[ClaimKey, list[Holding]] = defaultdict(list)
        for holding in compiled.inventory.holdings(self.cluster.claims):
            found[holding.claim].append(holding)
        return found


def devices_seen(
    problem: Problem, node: int, holdings: Iterable[Holding]
) -> tuple[int, ...]:
    """What is held, as a node sees it if it does."""
    offered = {
        problem.devices[device].slot: device for device in problem.nodes[node].devices()
    }
    return tuple(
        offered.get(one.slot, problem.versions[one.slot][-1]) for one in holdings
    )
