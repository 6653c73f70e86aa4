"""The nodes of pods, read from the API's text: pods that have a node, and newcomers with the nodes that they get.

Pods are grouped by what they say, and looked up by their labels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from dralloc.check.objects.node_requests import resource_of_class
from dralloc.check.objects.promise import Binding, Promise
from dralloc.check.objects.selection import (
    Conditions,
    LabelCondition,
    Labels,
    all_hold,
    conditions_of,
)
from dralloc.objects.api import Node, Pod, PodAffinityTerm
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey

__all__ = ["AffinityTerm", "PodOnNode", "Whereabouts", "domain_of", "term_of"]

_NAME_LABEL: Final = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True, eq=False)
class PodOnNode:
    """A pod on a node.

    Parameters
    ----------
    position
        When a newcomer came, as far as that is known; -1 if the pod had the node before.
    """

    pod: Pod
    namespace: str
    node: Node
    position: int

    @property
    def is_newcomer(self) -> bool:
        """Whether it gets its node by the answer."""
        return self.position >= 0

    @property
    def labels(self) -> Labels:
        """The labels by which the pod is selected."""
        return self.pod.metadata.labels

    def __str__(self) -> str:
        return f"pod {self.pod.key}"


class AffinityTerm(NamedTuple):
    """A term of affinity or anti-affinity: the pods that it means, and the label that makes a domain.

    Parameters
    ----------
    namespaces, of_namespaces
        Pods in a namespace that is named, or whose labels are selected, ...
    of_pods
        ... with labels that are selected.
    """

    namespaces: frozenset[str]
    of_namespaces: Conditions
    of_pods: Conditions
    topology_key: str


def term_of(api_term: PodAffinityTerm, pod: PodOnNode) -> AffinityTerm:
    """The term of a pod: without namespaces and selector of namespaces it means pods of its own namespace."""
    is_local = not api_term.namespaces and api_term.namespace_selector is None
    keys = api_term.match_label_keys, api_term.mismatch_label_keys
    return AffinityTerm(
        namespaces=frozenset(
            (pod.namespace,) if is_local else api_term.namespaces
        ),
        of_namespaces=conditions_of(api_term.namespace_selector, {}),
        of_pods=conditions_of(api_term.label_selector, pod.labels, *keys),
        topology_key=api_term.topology_key,
    )


def domain_of(node: Node, topology_key: str) -> str | None:
    """The domain that a node is in; None if it lacks the label."""
    return node.metadata.labels.get(topology_key)


class Whereabouts:
    """The pods of a cluster and their nodes, after all bindings.

    Parameters
    ----------
    bindings
        Of pods and nodes that there are.
    """

    def __init__(
        self, cluster: Cluster, bindings: Sequence[Binding], promise: Promise
    ) -> None:
        self.cluster = cluster
        self.promise = promise
        chosen = frozenset(promise.nodes)
        self.nodes: Mapping[str, Node] = {
            node.name: node for node in cluster.nodes if node.name in chosen
        }
        pods = cluster.pods_by_key
        # Bindings can be of pods that have their node already, and get devices there: these run.
        self.newcomers: Sequence[PodOnNode] = [
            PodOnNode(pods[key], key.namespace, self.nodes[name], position)
            for position, (key, name) in enumerate(bindings)
            if not pods[key].spec.node_name
        ]
        self.running: Sequence[PodOnNode] = [
            PodOnNode(
                pod, pod.key.namespace, self.nodes[pod.spec.node_name], -1
            )
            for pod in cluster.pods
            if pod.spec.node_name and pod.spec.node_name in self.nodes
        ]
        self._meant: dict[
            tuple[frozenset[str], Conditions, Conditions], Sequence[PodOnNode]
        ] = {}

    @property
    def everybody(self) -> Iterator[PodOnNode]:
        """All pods with a node, those first that had it before."""
        yield from self.running
        yield from self.newcomers

    def has_filter(self, pod: PodOnNode, plugin: str) -> bool:
        """Whether a pod passed a filter when it got its node by the answer."""
        return (
            pod.is_newcomer
            and plugin not in self.promise.filters_of(pod.pod).off
        )

    @cached_property
    def node_of(self) -> Mapping[ClaimKey, Node]:
        """The nodes of newcomers."""
        return {newcomer.pod.key: newcomer.node for newcomer in self.newcomers}

    @cached_property
    def every_node(self) -> Mapping[str, Node]:
        """All nodes of the cluster by name, whether they are there for the answer or not."""
        return {node.name: node for node in self.cluster.nodes}

    @cached_property
    def offered_by_classes(self) -> frozenset[str]:
        """The extended resources that DeviceClasses stand for (KEP-5004)."""
        if not self.promise.features.ExtendedResource:
            return frozenset()
        classes = self.cluster.classes
        names = {
            device_class.spec.extended_resource_name
            for device_class in classes.values()
        }
        return frozenset(
            name
            for name in names.union(map(resource_of_class, classes))
            if name
        )

    @cached_property
    def offered_resources(self) -> frozenset[str] | None:
        """The resources that a class or some node has; None if some node does not say what it has."""
        stocks = [node.status.allocatable for node in self.nodes.values()]
        if not all(stocks):
            return None
        on_nodes = {
            name
            for stock in stocks
            for name, amount in stock.items()
            if amount.nanos
        }
        return self.offered_by_classes | on_nodes

    def meant_by(self, term: AffinityTerm) -> Sequence[PodOnNode]:
        """The pods that a term means."""
        key = term[:3]
        if key not in self._meant:
            namespaces = {
                name
                for name in self._in_namespaces
                if self._is_namespace_of(term, name)
            }
            self._meant[key] = [
                pod
                for pod in self._candidates(term.of_pods)
                if pod.namespace in namespaces
                and all_hold(term.of_pods, pod.labels)
            ]
        return self._meant[key]

    def of_incoming(self, term: AffinityTerm) -> AffinityTerm:
        """The term of a pod as it is read when the pod itself comes.

        Then kube-scheduler has no labels of namespaces at hand any more when it comes to the pods, so that a selector
        of namespaces that holds without any label selects every namespace (upstream behaviour).
        """
        is_for_all = self.promise.in_order and all_hold(term.of_namespaces, {})
        return term._replace(of_namespaces=()) if is_for_all else term

    def in_namespace(
        self, namespace: str, conditions: Conditions
    ) -> Sequence[PodOnNode]:
        """The pods of one namespace that are selected."""
        return self.meant_by(
            AffinityTerm(frozenset((namespace,)), None, conditions, "")
        )

    def _is_namespace_of(self, term: AffinityTerm, namespace: str) -> bool:
        return namespace in term.namespaces or all_hold(
            term.of_namespaces, self._in_namespaces[namespace]
        )

    @cached_property
    def _in_namespaces(self) -> Mapping[str, Labels]:
        """The namespaces of pods, with their labels; every namespace has its name as a label."""
        labels_of = {}
        for name in dict.fromkeys(pod.namespace for pod in self.everybody):
            namespace = self.cluster.namespaces.get(name)
            labels = namespace.metadata.labels if namespace else {}
            labels_of[name] = {_NAME_LABEL: name, **labels}
        return labels_of

    def _candidates(self, conditions: Conditions) -> Iterable[PodOnNode]:
        """Pods among which are all that conditions select: those with the rarest value that is asked for."""
        if conditions is None:
            return ()
        choices = [
            list(self._with_value(condition))
            for condition in conditions
            if condition.operator == "In"
        ]
        if not choices:
            return self.everybody
        return min(choices, key=len)

    def _with_value(self, condition: LabelCondition) -> Iterator[PodOnNode]:
        for value in dict.fromkeys(condition.values):
            yield from self._by_label.get((condition.key, value), ())

    @cached_property
    def _by_label(self) -> Mapping[tuple[str, str], Sequence[PodOnNode]]:
        pods: dict[tuple[str, str], list[PodOnNode]] = defaultdict(list)
        for pod in self.everybody:
            for label in pod.labels.items():
                pods[label].append(pod)
        return pods
