"""Changes of a cluster that can be put together, each of which gives another cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from dralloc.api import Container, Node, Pod, ResourceClaim
from dralloc.api.objects import changed
from dralloc.cluster import Cluster
from dralloc.compiler.extended import classes_by_resource, extended_claims
from dralloc.names import ClaimKey

__all__ = ["Scenario"]


@dataclass(frozen=True)
class Scenario:
    """A cluster in which something is different.

    Each change gives a new scenario and leaves this one as it is. Of an object that is changed everything else stays:
    a pod that is unbound still tolerates, asks for and is labelled what it was.

    Parameters
    ----------
    cluster
        The cluster as it would be.
    """

    cluster: Cluster

    def release(self, claims: Collection[ClaimKey]) -> Scenario:
        """These claims are pending again.

        One that a scheduler made for extended resources (KEP-5004) becomes a claim of its pod as any other, and the
        containers of the pod ask for these resources no more: the same is asked for once, under the same name.
        """
        pods = self.cluster.claims_of_pods
        owned = extended_claims(self.cluster.claims)
        extended = {claim.key: owner for owner, claim in owned if claim.key in claims and owner in pods}
        freed = replace(self.cluster, claims=tuple(_released(one, claims) for one in self.cluster.claims))
        return Scenario(_with_claims_as_any_other(freed, extended) if extended else freed)

    def unbind(self, pods: Collection[ClaimKey]) -> Scenario:
        """These pods have no node yet."""
        return self._with_pods(lambda pod: _unbound(pod) if pod.key in pods else pod)

    def cordon(self, nodes: Collection[str]) -> Scenario:
        """No new pod comes to these nodes, unless it tolerates that."""
        return self._with_nodes(lambda node: _cordoned(node) if node.name in nodes else node)

    def _with_pods(self, change: Callable[[Pod], Pod]) -> Scenario:
        return Scenario(replace(self.cluster, pods=tuple(map(change, self.cluster.pods))))

    def _with_nodes(self, change: Callable[[Node], Node]) -> Scenario:
        return Scenario(replace(self.cluster, nodes=tuple(map(change, self.cluster.nodes))))


def _released(claim: ResourceClaim, claims: Collection[ClaimKey]) -> ResourceClaim:
    if claim.key not in claims:
        return claim
    free = changed(claim, status=changed(claim.status, allocation=None, reserved_for=()))
    return changed(free, metadata=changed(claim.metadata, annotations={})) if claim.is_extended else free


def _with_claims_as_any_other(cluster: Cluster, owners: Mapping[ClaimKey, ClaimKey]) -> Cluster:
    """The cluster in which pods use these claims as they use those that they name.

    Parameters
    ----------
    owners
        By claim, the pod that has it for what its containers ask for by name.
    """
    claims_of_pods = dict(cluster.claims_of_pods)
    for claim, pod in owners.items():
        claims_of_pods[pod] = tuple(dict.fromkeys((*claims_of_pods[pod], claim)))
    backed = classes_by_resource(cluster.classes.values()).keys()
    asking = frozenset(owners.values())
    pods = (_without_resources(pod, backed) if pod.key in asking else pod for pod in cluster.pods)
    return replace(cluster, pods=tuple(pods), claims_of_pods=claims_of_pods)


def _without_resources(pod: Pod, names: Collection[str]) -> Pod:
    """The pod whose containers do not ask for some resources."""

    def without(container: Container) -> Container:
        kept = {
            field: {name: amount for name, amount in amounts.items() if name not in names}
            for field, amounts in (("requests", container.resources.requests), ("limits", container.resources.limits))
        }
        return changed(container, resources=changed(container.resources, **kept))

    spec = pod.spec
    return changed(
        pod,
        spec=changed(
            spec,
            containers=tuple(map(without, spec.containers)),
            init_containers=tuple(map(without, spec.init_containers)),
        ),
    )


def _unbound(pod: Pod) -> Pod:
    return changed(pod, spec=changed(pod.spec, node_name=None)) if pod.spec.node_name else pod


def _cordoned(node: Node) -> Node:
    return changed(node, spec=changed(node.spec, unschedulable=True))
