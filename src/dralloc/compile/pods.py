"""Pods as their nodes see them, in every mode.

First label selectors and pod affinity terms, ready to be asked often; then what a pod requests of its node; then what
equal pods have in common, worked out once for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple
from weakref import ref

from dralloc.objects.api import (
    Container,
    LabelSelector,
    LabelSelectorRequirement,
    Namespace,
    Node,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    TopologySpreadConstraint,
)
from dralloc.objects.api.selecting import holds, selector_matches
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import NANOS, Quantity

__all__ = [
    "CPU",
    "DEFAULT_REQUESTS",
    "EPHEMERAL",
    "MEMORY",
    "PODS",
    "HostPort",
    "PodInfo",
    "PodKind",
    "PodKinds",
    "Selector",
    "Term",
    "amounts_of",
    "caps_of",
    "is_scalar",
    "requests_of",
    "selector_of",
    "spread_selector",
]

# ----------------------------------------------------------------------------
# Label selectors and pod affinity terms, ready to be asked often.
#
# Source: ``k8s.io/apimachinery/pkg/labels``, ``AffinityTerm`` of
# ``k8s.io/kube-scheduler/framework``.

Labels = Mapping[str, str]


class Selector(NamedTuple):
    """Conditions on labels that must all hold; None for a selector that selects nothing."""

    requirements: tuple[LabelSelectorRequirement, ...] | None

    @property
    def is_empty(self) -> bool:
        """Whether it selects everything."""
        return self.requirements == ()

    def matches(self, labels: Labels) -> bool:
        """Whether it selects something with these labels."""
        return self.requirements is not None and all(
            holds(
                requirement.operator,
                requirement.values,
                labels.get(requirement.key),
            )
            for requirement in self.requirements
        )


def selector_of(
    selector: LabelSelector | None,
    requirements: Iterable[LabelSelectorRequirement] = (),
) -> Selector:
    """A selector of the API; without one nothing is selected."""
    if selector is None:
        return Selector(None)
    labels = _of_same_label(
        sorted(selector.match_labels), selector.match_labels, "In"
    )
    return Selector((*requirements, *labels, *selector.match_expressions))


def _of_same_label(
    keys: Iterable[str], labels: Labels, operator: str
) -> tuple[LabelSelectorRequirement, ...]:
    """Conditions that a label is (``In``), or is not (``NotIn``), what it is for these labels (``matchLabelKeys``)."""
    return tuple(
        LabelSelectorRequirement(
            key=key, operator=operator, values=(labels[key],)
        )
        for key in keys
        if key in labels
    )


def spread_selector(
    constraint: TopologySpreadConstraint, labels: Labels
) -> Selector:
    """The pods that a constraint of a pod with these labels counts; an empty selector counts none."""
    return selector_of(
        constraint.label_selector,
        _of_same_label(constraint.match_label_keys, labels, "In"),
    )


class Term(NamedTuple):
    """A pod affinity term of a pod."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str
    weight: int = 0

    def matches(
        self, namespace: str, namespace_labels: Labels, labels: Labels
    ) -> bool:
        """Whether it means a pod in this namespace with these labels."""
        return (
            namespace in self.namespaces
            or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)


def _term_of(
    term: PodAffinityTerm, namespace: str, labels: Labels, weight: int = 0
) -> Term:
    """A term of a pod in a namespace, with these labels."""
    # Without either, the term is about the pod's own namespace.
    in_own_namespace = not term.namespaces and term.namespace_selector is None
    requirements = (
        *_of_same_label(term.match_label_keys, labels, "In"),
        *_of_same_label(term.mismatch_label_keys, labels, "NotIn"),
    )
    return Term(
        namespaces=frozenset(
            (namespace,) if in_own_namespace else term.namespaces
        ),
        namespace_selector=selector_of(term.namespace_selector),
        selector=selector_of(term.label_selector, requirements),
        topology_key=term.topology_key,
        weight=weight,
    )


# ----------------------------------------------------------------------------
# What a pod requests of its node, in the scheduler's integers: CPU in thousandths,
# everything else in whole units.
#
# Source: ``PodRequests`` of ``k8s.io/component-helpers/resource/helpers.go`` (KEP-753
# for sidecars, KEP-2837 for requests of the pod as a whole). Sums are exact; only
# they are rounded up.

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL: Final = "ephemeral-storage"
PODS: Final = "pods"

DEFAULT_REQUESTS: Final[Mapping[str, int]] = {
    CPU: NANOS // 10,
    MEMORY: 200 * 1024 * 1024 * NANOS,
}
"""What a container counts for in scores that requests nothing, in nanos (``pod_resources.go``)."""

Nanos = dict[str, int]


def amounts_of(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    """Quantities in the scheduler's units."""
    return _rounded(_nanos(quantities))


def requests_of(
    spec: PodSpec,
    defaults: Mapping[str, int] | None = None,
    *,
    whole_pod: bool = True,
    of_devices: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """The requests of a pod with its overhead.

    Parameters
    ----------
    defaults
        What counts for a container without a request, by resource, in nanos.
    whole_pod
        Whether requests of the pod as a whole replace those of its containers.
    of_devices
        What its devices take of the node, in nanos (KEP-5517); requests of the pod as a whole replace that, too.
    """
    of_containers = _of_containers(spec, defaults or {})
    of_pod = _of_whole_pod(spec, of_containers) if whole_pod else {}
    _add(of_containers, of_devices or {})
    total = {**of_containers, **of_pod}
    _add(total, _nanos(spec.overhead))
    return _rounded(total)


def caps_of(spec: PodSpec) -> dict[str, int]:
    """Return the amounts that the pod's own requests leave beside its containers, in nanos."""
    of_containers = _of_containers(spec, {})
    return {
        name: amount - of_containers.get(name, 0)
        for name, amount in _of_whole_pod(spec, of_containers).items()
    }


def _taken_by_devices(status: PodStatus) -> dict[str, int]:
    """Return the amounts that a pod's devices take of its node, as the scheduler noted them, in nanos (KEP-5517)."""
    total: Counter[str] = Counter()
    for claim in status.node_allocatable_resource_claim_statuses:
        total.update(_nanos(claim.resources))
        for mapped in claim.mapping:
            if mapped.quantity:
                total[mapped.name] += mapped.quantity.nanos
        for overhead in claim.overhead:
            if overhead.per_pod:
                total[overhead.name] += overhead.per_pod.nanos
            if overhead.per_container:
                containers = len(claim.containers)
                total[overhead.name] += (
                    containers * overhead.per_container.nanos
                )
    return total


def is_scalar(resource: str) -> bool:
    """Whether a resource is neither CPU nor memory nor storage nor pods: huge pages, and what has a domain."""
    return resource not in (CPU, MEMORY, EPHEMERAL, PODS)


def _of_containers(spec: PodSpec, defaults: Mapping[str, int]) -> Nanos:
    """The larger of what runs in the end and of what each init container needs beside the sidecars before it."""
    running: Nanos = {}
    for container in spec.containers:
        _add(running, _requested(container, defaults))
    sidecars: Nanos = {}
    peak: Nanos = {}
    for container in spec.init_containers:
        requested = _requested(container, defaults)
        if container.sidecar:
            _add(running, requested)
            _add(sidecars, requested)
            requested = sidecars
        else:
            _add(requested, sidecars)
        _raise(peak, requested)
    _raise(running, peak)
    return running


def _of_whole_pod(spec: PodSpec, of_containers: Nanos) -> dict[str, int]:
    """Requests of the pod as a whole; of what has only a limit, the containers' requests or else the limit count."""
    limits = {
        name: limit
        for name, limit in _nanos(spec.resources.limits).items()
        if name not in of_containers
    }
    return {
        name: amount
        for name, amount in {
            **limits,
            **_nanos(spec.resources.requests),
        }.items()
        if name in (CPU, MEMORY) or name.startswith("hugepages-")
    }


def _requested(container: Container, defaults: Mapping[str, int]) -> Nanos:
    return {**defaults, **_nanos(container.resources.requested)}


def _nanos(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: quantity.nanos for name, quantity in quantities.items()}


def _add(total: Nanos, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: dict[str, int], least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, amount), amount)


def _rounded(nanos: Mapping[str, int]) -> dict[str, int]:
    return {
        name: -(-amount // (NANOS // 1000 if name == CPU else NANOS))
        for name, amount in nanos.items()
    }


# ----------------------------------------------------------------------------
# Pods as their nodes see them. What equal pods have in common is worked out once for
# all of them.

_SPREAD_KINDS: Final = (
    "ReplicationController",
    "ReplicaSet",
    "StatefulSet",
    "Deployment",
)
"""Controllers whose pods are spread by default. A Deployment stands for the ReplicaSet that it would make."""
_ANYWHERE: Final = "0.0.0.0"
_NO_AFFINITY: Final = PodAffinity()
_NAME_LABEL: Final = "kubernetes.io/metadata.name"

Controller = tuple[str, str]
"""Kind and name."""


class HostPort(NamedTuple):
    """A port of the node that a pod wants: address, protocol, number."""

    address: str
    protocol: str
    port: int

    @property
    def is_anywhere(self) -> bool:
        """Whether it is wanted on every address."""
        return self.address == _ANYWHERE

    def collides(self, port: HostPort) -> bool:
        """Whether both cannot be had on one node: the same port on the same address, or on any."""
        return self[1:] == port[1:] and (
            self.address == port.address or self.is_anywhere or port.is_anywhere
        )


@dataclass(eq=False)
class PodKind:
    """The common facts of equal pods: everything but their names and claims.

    Parameters
    ----------
    namespace_labels
        What namespaces are selected by.
    controller
        Who controls the pods, if it is somebody whose pods are spread by default.
    memo
        What others worked out for pods of this kind.
    """

    namespace: str
    namespace_labels: Mapping[str, str]
    labels: Mapping[str, str]
    spec: PodSpec
    controller: Controller | None
    memo: dict[Hashable, Any] = field(default_factory=dict)

    @cached_property
    def priority(self) -> int:
        """The pods' priority."""
        return self.spec.priority or 0

    @cached_property
    def requests(self) -> Mapping[str, int]:
        """The amounts that are requested of a node, overhead included."""
        return requests_of(self.spec)

    @cached_property
    def scored(self) -> Mapping[str, int]:
        """The amounts that count in the pod's own scores; upstream leaves out requests of the whole pod."""
        if not self._has_defaults:
            return self.requests
        return requests_of(self.spec, DEFAULT_REQUESTS, whole_pod=False)

    @cached_property
    def occupied(self) -> Mapping[str, int]:
        """The amounts that count in scores of others once the pod is bound (``NonZeroRequested`` of upstream)."""
        if not self._has_defaults:
            return self.requests
        return self.occupied_with({})

    @cached_property
    def _has_defaults(self) -> bool:
        """Whether scores may count other amounts than are requested: for a container without some, or a whole pod."""
        if self.spec.resources.requested:
            return True
        return any(
            not DEFAULT_REQUESTS.keys() <= container.resources.requested.keys()
            for container in self.containers
        )

    def occupied_with(self, of_devices: Mapping[str, int]) -> dict[str, int]:
        """Return the amounts that the pod occupies, with those that its devices take of the node."""
        requested = (
            {*self.requests, *of_devices}
            if self.spec.resources.requested
            else ()
        )
        defaults = {
            name: least
            for name, least in DEFAULT_REQUESTS.items()
            if name not in requested
        }
        return requests_of(self.spec, defaults, of_devices=of_devices)

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        """Init containers and containers."""
        return (*self.spec.init_containers, *self.spec.containers)

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """Ports of the node that containers and sidecars want; with the node's network these are all of theirs."""
        sidecars = [
            container
            for container in self.spec.init_containers
            if container.sidecar
        ]
        host_ports = []
        for container in (*sidecars, *self.spec.containers):
            for port in container.ports:
                port_number = port.host_port
                if not port_number and self.spec.host_network:
                    port_number = port.container_port
                if port_number > 0:
                    address = port.host_ip or _ANYWHERE
                    protocol = port.protocol or "TCP"
                    host_ports.append(HostPort(address, protocol, port_number))
        return tuple(host_ports)

    @cached_property
    def required_affinity(self) -> tuple[Term, ...]:
        """Terms of required pod affinity."""
        return tuple(self._required("pod_affinity"))

    @cached_property
    def required_anti_affinity(self) -> tuple[Term, ...]:
        """Terms of required pod anti-affinity."""
        return tuple(self._required("pod_anti_affinity"))

    @cached_property
    def preferred(self) -> tuple[Term, ...]:
        """Terms of preferred pod affinity, and those of anti-affinity with negative weights."""
        return (
            *self._preferred("pod_affinity", 1),
            *self._preferred("pod_anti_affinity", -1),
        )

    @cached_property
    def inter_pod_key(self) -> Hashable:
        """Equal for kinds of pods that rules between pods cannot tell apart."""
        terms = (
            self.required_affinity,
            self.required_anti_affinity,
            self.preferred,
        )
        labels = frozenset(self.labels.items())
        return self.namespace, labels, self.controller, terms

    @property
    def hard_spread(self) -> tuple[TopologySpreadConstraint, ...]:
        """The constraints of topology spread that must hold."""
        return tuple(
            constraint
            for constraint in self.spec.topology_spread_constraints
            if constraint.when_unsatisfiable == "DoNotSchedule"
        )

    def may_run_on(self, node: Node) -> bool:
        """Whether node selector and required node affinity let such a pod run on the node."""
        required = self.spec.required_nodes
        return (
            self.spec.node_selector.items() <= node.metadata.labels.items()
            and (required is None or selector_matches(required, node))
        )

    def is_meant_by(self, term: Term) -> bool:
        """Whether a term of another pod means such a pod."""
        return term.matches(self.namespace, self.namespace_labels, self.labels)

    def _required(self, sort: str) -> Iterator[Term]:
        for term in self._affinity(sort).required:
            yield _term_of(term, self.namespace, self.labels)

    def _preferred(self, sort: str, sign: int) -> Iterator[Term]:
        for preference in self._affinity(sort).preferred:
            yield _term_of(
                preference.pod_affinity_term,
                self.namespace,
                self.labels,
                sign * preference.weight,
            )

    def _affinity(self, sort: str) -> PodAffinity:
        return getattr(self.spec.affinity, sort, None) or _NO_AFFINITY


@dataclass(frozen=True, slots=True, eq=False)
class PodInfo:
    """A pod with its kind.

    ``of_devices``: what its devices take of the node that it has, by resource and in nanos.
    """

    key: ClaimKey
    kind: PodKind
    of_devices: Mapping[str, int] = field(default_factory=dict)

    @property
    def requests(self) -> Mapping[str, int]:
        """The amounts that are requested of its node, devices included."""
        return (
            requests_of(self.kind.spec, of_devices=self.of_devices)
            if self.of_devices
            else self.kind.requests
        )

    @property
    def occupied(self) -> Mapping[str, int]:
        """As `PodKind.occupied`, devices included."""
        return (
            self.kind.occupied_with(self.of_devices)
            if self.of_devices
            else self.kind.occupied
        )


_texts: dict[int, tuple[ref[PodSpec], str]] = {}
"""By identity of a specification, its text, as long as it is there: a cluster is compiled again and again."""


def _text_of(spec: PodSpec) -> str:
    """Return what specifications that are equal but for claims and node have in common.

    Pods that are made from one template share their specification as an object.
    """
    known, text = _texts.get(id(spec), (None, ""))
    if known is None or known() is not spec:
        text = spec.model_dump_json(
            exclude={"node_name", "resource_claims"}, exclude_defaults=True
        )
        identity = id(spec)
        _texts[identity] = (
            ref(spec, lambda gone: _forget(identity, gone)),
            text,
        )
    return text


def _forget(identity: int, gone: ref[PodSpec]) -> None:
    """Forget a specification, unless another one is in its place already."""
    if identity in _texts and _texts[identity][0] is gone:
        del _texts[identity]


class PodKinds:
    """Tells which pods are equal, of a cluster with these namespaces."""

    def __init__(self, namespaces: Mapping[str, Namespace]) -> None:
        self._namespaces = namespaces
        self._known: dict[Hashable, PodKind] = {}

    def infos(self, pods: Iterable[Pod]) -> Iterator[PodInfo]:
        """The pods with their kinds."""
        for pod in pods:
            yield PodInfo(
                pod.key,
                self._kind(pod),
                _taken_by_devices(pod.status) if pod.spec.node_name else {},
            )

    def _kind(self, pod: Pod) -> PodKind:
        controllers = (
            (owner.kind, owner.name)
            for owner in pod.metadata.owner_references
            if owner.controller and owner.kind in _SPREAD_KINDS
        )
        controller = next(controllers, None)
        key = (
            pod.key.namespace,
            frozenset(pod.metadata.labels.items()),
            controller,
            _text_of(pod.spec),
        )
        if key not in self._known:
            name, namespace = (
                pod.key.namespace,
                self._namespaces.get(pod.key.namespace),
            )
            labels = {
                _NAME_LABEL: name,
                **(namespace.metadata.labels if namespace else {}),
            }
            self._known[key] = PodKind(
                name, labels, pod.metadata.labels, pod.spec, controller
            )
        return self._known[key]
