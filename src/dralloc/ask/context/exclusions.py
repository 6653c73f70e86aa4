"""Exclusions: which nodes are not for a demand, and why.

What `dralloc.compile.compiler.demands` leaves out, in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.api import Node, NodeSelector, NodeSelectorTerm, Pod
from dralloc.objects.api.base import changed
from dralloc.objects.api.selecting import (
    CORDON_TAINT,
    all_tolerated,
    goes_to_cordoned,
    selector_matches,
)
from dralloc.objects.choices import Ignored
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, NodeIndex

__all__ = ["CORDONED", "SHARED", "Exclusions", "pod_of"]

CORDONED = "node is cordoned (spec.unschedulable)"
SHARED = "a claim that is shared with a placed pod cannot be used from there"
OTHER = "node is not among those that it may use"


@dataclass
class Exclusions:
    """Tells for each node which rules of the pod and of the cluster leave it out.

    Parameters
    ----------
    compiled
        The objects behind the problem; without them there is one rule, the demand's list of nodes.
    """

    compiled: CompiledCluster | None = None
    _found: dict[tuple[ClaimKey, int], tuple[str, ...]] = field(
        default_factory=dict
    )

    def rules(self, demand: Demand, node: NodeIndex) -> tuple[str, ...]:
        """The rules that leave the node out for the demand; none if it may go there."""
        key = demand.key, node
        if key not in self._found:
            allowed = demand.nodes is None or node in demand.nodes
            self._found[key] = (
                () if allowed else tuple(self._named(demand, node)) or (OTHER,)
            )
        return self._found[key]

    def of_node(self, demand: Demand, node: Node) -> tuple[str, ...]:
        """The rules of the demand's pod that would leave out a node like this one."""
        return tuple(_of_pod(self.compiled, self._pod(demand), node))

    def of_running(self, demand: Demand, node: Node) -> tuple[str, ...]:
        """As `of_node`, for a pod that would be started again elsewhere: it may leave the node it is on."""
        pod = self._pod(demand)
        again = pod and changed(pod, spec=changed(pod.spec, node_name=None))
        return tuple(_of_pod(self.compiled, again, node, allocated=False))

    def _named(self, demand: Demand, node_index: NodeIndex) -> Iterator[str]:
        if self.compiled is None:
            return
        node, pod = (
            self._nodes[self.compiled.problem.nodes[node_index].name],
            self._pod(demand),
        )
        yield from _of_pod(self.compiled, pod, node)
        if node.spec.unschedulable and not (
            pod and (pod.spec.node_name or goes_to_cordoned(pod))
        ):
            yield CORDONED

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return (
            {node.name: node for node in self.compiled.cluster.nodes}
            if self.compiled is not None
            else {}
        )

    def _pod(self, demand: Demand) -> Pod | None:
        if demand.key not in self._by_key:
            self._by_key[demand.key] = (
                pod_of(self.compiled.cluster, demand)
                if self.compiled is not None
                else None
            )
        return self._by_key[demand.key]

    _by_key: dict[ClaimKey, Pod | None] = field(default_factory=dict)


def _of_pod(
    compiled: CompiledCluster | None,
    pod: Pod | None,
    node: Node,
    *,
    allocated: bool = True,
) -> Iterator[str]:
    if compiled is None or pod is None:
        return
    cluster, spec = compiled.cluster, pod.spec
    # A pod that names its node is not scheduled: no other rule decides where it goes.
    if spec.node_name:
        if spec.node_name != node.metadata.name:
            yield f"pod spec.nodeName is {spec.node_name}"
        return
    for label, value in spec.node_selector.items():
        if node.metadata.labels.get(label) != value:
            yield f"pod spec.nodeSelector: {label}={value}"
    affinity = spec.required_nodes
    if affinity and not selector_matches(affinity, node):
        yield f"pod spec.affinity.nodeAffinity: {_selector_text(affinity)}"
    for taint in (
        node.spec.taints if Ignored.TAINTS not in compiled.pods.ignored else ()
    ):
        # That a node is cordoned is told by the callers, in words of its own, and not as a taint.
        is_cordon = node.spec.unschedulable and taint.key == CORDON_TAINT.key
        if not is_cordon and not all_tolerated((taint,), spec.tolerations):
            yield f"node taint {taint.key}{taint.value and '='}{taint.value}:{taint.effect} is not tolerated"
    for key in cluster.pod_claims(pod) if allocated else ():
        claim = cluster.claim(key)
        allocation = claim.status.allocation if claim is not None else None
        selector = allocation.node_selector if allocation is not None else None
        if selector is not None and not selector_matches(selector, node):
            yield f"claim {key} is allocated for {_selector_text(selector)}"


def _selector_text(selector: NodeSelector) -> str:
    """A node selector in short."""
    return " or ".join(map(_term, selector.node_selector_terms))


def _term(term: NodeSelectorTerm) -> str:
    requirements = (*term.match_expressions, *term.match_fields)
    return " and ".join(
        f"{requirement.key} {requirement.operator} {list(requirement.values)}"
        if requirement.values
        else f"{requirement.key} {requirement.operator}"
        for requirement in requirements
    )


def pod_of(cluster: Cluster, demand: Demand) -> Pod | None:
    """The pod of a demand; None if it is a claim that no pod uses (a pod may have the same name)."""
    lone = cluster.is_lone(demand.key, (claim.key for claim in demand.claims))
    return None if lone else cluster.pods_by_key.get(demand.key)
