"""The nodes of pods, read from the API's text: pods that have a node, and newcomers with the nodes that they get.

From the bottom: what selectors select and taints ask for, what a pod requests of its node, what an answer promises,
and then the pods themselves, grouped by what they say and looked up by their labels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from dralloc.objects.api import (
    Container,
    LabelSelector,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    Pod,
    PodAffinityTerm,
    PodSpec,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.features import ALL_FEATURES, Features
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import NANOS, Quantity

__all__ = [
    "PODS",
    "AffinityTerm",
    "Binding",
    "Conditions",
    "Filters",
    "PodOnNode",
    "Promise",
    "Whereabouts",
    "all_hold",
    "amounts_of",
    "conditions_of",
    "domain_of",
    "extended_resources",
    "is_tolerated",
    "may_be_on_cordoned",
    "node_is_selected",
    "requests_of",
    "term_of",
]

# ----------------------------------------------------------------------------
# What selectors select, and which taints are tolerated, by the text of the API.
#
# Source: the comments of ``LabelSelector``, ``NodeSelector`` and ``Toleration`` in
# ``k8s.io/api`` and ``k8s.io/apimachinery``.

Labels = Mapping[str, str]

_CORDON: Final = Taint(
    key="node.kubernetes.io/unschedulable", effect="NoSchedule"
)
_REPELLING: Final = ("NoSchedule", "NoExecute")


class LabelCondition(NamedTuple):
    """A condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, labels: Labels) -> bool:
        """Whether it holds for these labels."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
        return False

    def _compares(self, value: str | None) -> bool:
        """Whether the label is an integer above (``Gt``) or below (``Lt``) the only value."""
        bound = _integer(self.values[0]) if len(self.values) == 1 else None
        integer = None if value is None else _integer(value)
        if bound is None or integer is None:
            return False
        return integer > bound if self.operator == "Gt" else integer < bound


Conditions = tuple[LabelCondition, ...] | None
"""Conditions that must all hold; None selects nothing."""


def all_hold(conditions: Conditions, labels: Labels) -> bool:
    """Whether labels are selected."""
    if conditions is None:
        return False
    return all(condition.holds(labels) for condition in conditions)


def conditions_of(
    selector: LabelSelector | None,
    pod_labels: Labels,
    same_keys: Iterable[str] = (),
    different_keys: Iterable[str] = (),
) -> Conditions:
    """The conditions of a selector, of a pod with these labels.

    Parameters
    ----------
    same_keys, different_keys
        ``matchLabelKeys`` and ``mismatchLabelKeys``: labels that must be, or must not be, what they are for the pod
        itself, if it has them.
    """
    if selector is None:
        return None
    keys = [
        LabelCondition(key, "In", (pod_labels[key],))
        for key in same_keys
        if key in pod_labels
    ]
    keys += [
        LabelCondition(key, "NotIn", (pod_labels[key],))
        for key in different_keys
        if key in pod_labels
    ]
    labels = [
        LabelCondition(key, "In", (value,))
        for key, value in sorted(selector.match_labels.items())
    ]
    expressions = [
        LabelCondition(
            requirement.key, requirement.operator, requirement.values
        )
        for requirement in selector.match_expressions
    ]
    return (*keys, *labels, *expressions)


def node_is_selected(selector: NodeSelector, node: Node) -> bool:
    """Whether a node selector selects a node: terms are alternatives, and an empty one selects nothing."""
    for term in selector.node_selector_terms:
        expressions, fields = (
            _plain(term.match_expressions),
            _plain(term.match_fields),
        )
        is_empty = not expressions and not fields
        # A node has one field that can be selected by.
        by_name = {"metadata.name": node.name}
        if (
            not is_empty
            and all_hold(expressions, node.metadata.labels)
            and all_hold(fields, by_name)
        ):
            return True
    return False


def _plain(
    conditions: Iterable[NodeSelectorRequirement],
) -> tuple[LabelCondition, ...]:
    return tuple(
        LabelCondition(
            requirement.key, requirement.operator, requirement.values
        )
        for requirement in conditions
    )


def is_tolerated(taints: Iterable[Taint], pod: Pod) -> bool:
    """Whether a pod tolerates all taints that keep pods away."""
    return all(
        _has_toleration(pod.spec.tolerations, taint)
        for taint in taints
        if taint.effect in _REPELLING
    )


def may_be_on_cordoned(pod: Pod) -> bool:
    """Whether a pod may come to nodes that are unschedulable."""
    return _has_toleration(pod.spec.tolerations, _CORDON)


def _has_toleration(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    for toleration in tolerations:
        # An empty key or effect tolerates all of them.
        same_key = toleration.key in ("", taint.key)
        same_effect = toleration.effect in ("", taint.effect)
        if same_key and same_effect and _has_value(toleration, taint.value):
            return True
    return False


def _has_value(toleration: Toleration, value: str) -> bool:
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == value
        case "Exists":
            return True
        case "Gt" | "Lt":
            # Taints are compared as integers that are written without sign or zeros in front (KEP-5471).
            integers = _integer(value), _integer(toleration.value)
            if (str(integers[0]), str(integers[1])) != (
                value,
                toleration.value,
            ):
                return False
            return LabelCondition(
                "", toleration.operator, (toleration.value,)
            ).holds({"": value})
    return False


def _integer(text: str) -> int | None:
    """The number of 64 bits that a text is, if it is one."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 63:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


# ----------------------------------------------------------------------------
# What a pod requests of its node, by the text of the API: CPU in thousandths,
# everything else in whole units.
#
# Sources: the comments of ``PodSpec`` in ``k8s.io/api/core/v1``, KEP-753 (sidecars),
# KEP-2837 (requests of the whole pod), KEP-688 (overhead).

PODS: Final = "pods"
_CPU: Final = "cpu"
_OF_WHOLE_PODS: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"
_OF_CLASS: Final = "deviceclass.resource.kubernetes.io/"

Quantities = Mapping[str, Quantity]
Nanos = dict[str, int]


def _of_class(name: str) -> str:
    """The extended resource that every DeviceClass stands for by its name (KEP-5004)."""
    return f"{_OF_CLASS}{name}"


def extended_resources(spec: PodSpec) -> Iterator[str]:
    """The resources that containers ask for and that are not Kubernetes' own."""
    for container in (*spec.init_containers, *spec.containers):
        for name, amount in {
            **container.resources.limits,
            **container.resources.requests,
        }.items():
            is_native = (
                "/" not in name
                or "kubernetes.io/" in name
                or name.startswith("requests.")
            )
            if amount.nanos and (name.startswith(_OF_CLASS) or not is_native):
                yield name


def amounts_of(quantities: Quantities) -> dict[str, int]:
    """Quantities as the scheduler counts them: rounded up."""
    return _rounded_up(_nanos(quantities))


def requests_of(spec: PodSpec) -> dict[str, int]:
    """Return the requests of a pod of its node.

    Containers and sidecars run at the same time. Init containers run before, one after the other, each beside the
    sidecars that were started before it. So a node needs the most that is requested at any time.
    """
    peak: Nanos = {}
    sidecars: Nanos = {}
    for container in spec.init_containers:
        requested = _sum(sidecars, _requested(container))
        if container.restart_policy == "Always":
            sidecars = requested
        _raise(peak, requested)
    lasting = sidecars
    for container in spec.containers:
        lasting = _sum(lasting, _requested(container))
    _raise(peak, lasting)
    # What is requested for the pod as a whole counts in place of what its containers request.
    for name, amount in _of_whole_pod(spec, peak).items():
        if name in _OF_WHOLE_PODS or name.startswith(_HUGE_PAGES):
            peak[name] = amount
    return _rounded_up(_sum(peak, _nanos(spec.overhead)))


def _nanos(quantities: Quantities) -> Nanos:
    return {name: quantity.nanos for name, quantity in quantities.items()}


def _requested(container: Container) -> Nanos:
    """Return the requests of a container; a limit without request counts as the request."""
    resources = container.resources
    return _nanos({**resources.limits, **resources.requests})


def _sum(first: Nanos, second: Nanos) -> Nanos:
    if not first or not second:
        return first or second
    return {
        name: first.get(name, 0) + second.get(name, 0)
        for name in (first | second)
    }


def _raise(peak: Nanos, requested: Nanos) -> None:
    for name, amount in requested.items():
        peak[name] = max(peak.get(name, amount), amount)


def _of_whole_pod(spec: PodSpec, of_containers: Nanos) -> Nanos:
    """Return the requests of the pod as a whole; for what it only limits, its containers' count if there are any."""
    resources = spec.resources
    limits = {
        name: limit
        for name, limit in resources.limits.items()
        if name not in of_containers
    }
    return _nanos({**limits, **resources.requests})


def _rounded_up(nanos: Nanos) -> dict[str, int]:
    return {
        name: -(-amount // (NANOS // 1000 if name == _CPU else NANOS))
        for name, amount in nanos.items()
    }


# ----------------------------------------------------------------------------
# What an answer says and promises about pods, as far as objects of the API can tell
# whether it keeps it.


class Binding(NamedTuple):
    """A pod and the name of the node that it gets."""

    pod: ClaimKey
    node: str


def _nothing(_: str) -> bool:
    return False


@dataclass(frozen=True)
class Filters:
    """The filters of kube-scheduler that a pod has to pass.

    Parameters
    ----------
    off
        The names of the plugins that do not count.
    ignores
        Tells which resources NodeResourcesFit does not look at.
    added_affinity
        Selects the only nodes for any pod (``addedAffinity`` of NodeAffinity).
    default_constraints
        Spread pods that say nothing about it beside the others of their controller (``defaultConstraints`` of
        PodTopologySpread).
    """

    off: frozenset[str] = frozenset()
    ignores: Callable[[str], bool] = _nothing
    added_affinity: NodeSelector | None = None
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()


@dataclass(frozen=True)
class Promise:
    """The promises of an answer beside its bindings.

    Parameters
    ----------
    nodes
        The names of the only nodes that there are for it.
    features
        Which feature gates are on.
    in_order
        Whether the bindings are in the order in which pods got their nodes, and are all of them, as kube-scheduler
        answers. If not, they are a batch of pods that ask for devices: each rule is kept in some order of these pods,
        and pods that ask for no devices are placed by others.
    gang_label
        The label of which pods with the same value, in one namespace, are placed all or none; only of a batch.
    filters
        The filters for pods by their ``schedulerName``.
    other_filters
        The filters for pods of any other ``schedulerName``.
    moving
        Pods of the bindings that ran elsewhere before. Their groups were admitted then, and as many of their pods have
        nodes now; that others wait does not hold them back.
    """

    nodes: Sequence[str]
    features: Features = ALL_FEATURES
    in_order: bool = False
    gang_label: str = ""
    filters: Mapping[str, Filters] = field(default_factory=dict)
    other_filters: Filters = Filters()
    moving: Collection[ClaimKey] = frozenset()

    def filters_of(self, pod: Pod) -> Filters:
        """The filters that a pod has to pass."""
        return self.filters.get(pod.spec.scheduler_name, self.other_filters)


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
            name for name in names.union(map(_of_class, classes)) if name
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
