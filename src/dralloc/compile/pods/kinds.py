"""Pods as their nodes see them. What equal pods have in common is worked out once for all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from dralloc.compile.pods.requests import (
    DEFAULT_REQUESTS,
    requests_of,
    taken_by_devices,
)
from dralloc.compile.pods.selectors import Term, term_of
from dralloc.objects.api import (
    Container,
    Namespace,
    Node,
    Pod,
    PodAffinity,
    PodSpec,
    TopologySpreadConstraint,
)
from dralloc.objects.api.node_selectors import selector_matches
from dralloc.objects.names import ClaimKey

__all__ = ["Controller", "HostPort", "PodInfo", "PodKind", "PodKinds"]

_SPREAD_KINDS: Final = (
    "ReplicationController",
    "ReplicaSet",
    "StatefulSet",
    "Deployment",
)
"""Controllers whose pods are spread by default. A Deployment stands for the ReplicaSet that it would make."""
_ANYWHERE: Final = "0.0.0.0"
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

    def collides(self, other: HostPort) -> bool:
        """Whether both cannot be had on one node: the same port on the same address, or on any."""
        return self[1:] == other[1:] and (
            self.address == other.address or self.is_anywhere or other.is_anywhere
        )


@dataclass(eq=False)
class PodKind:
    """What equal pods have in common: everything but their names and claims.

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
        """What is requested of a node, overhead included."""
        return requests_of(self.spec)

    @cached_property
    def scored(self) -> Mapping[str, int]:
        """What the pod counts for in its own scores of what is left; upstream leaves out requests of the whole pod."""
        return requests_of(self.spec, DEFAULT_REQUESTS, whole_pod=False)

    @cached_property
    def occupied(self) -> Mapping[str, int]:
        """What the pod counts for in the scores of others once it is bound (``NonZeroRequested`` of upstream)."""
        return self.occupied_with({})

    def occupied_with(self, of_devices: Mapping[str, int]) -> dict[str, int]:
        """The same with what its devices take of the node."""
        known = {*self.requests, *of_devices} if self.spec.resources.requested else ()
        defaults = {
            name: least for name, least in DEFAULT_REQUESTS.items() if name not in known
        }
        return requests_of(self.spec, defaults, of_devices=of_devices)

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        """Init containers and containers."""
        return (*self.spec.init_containers, *self.spec.containers)

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """Ports of the node that containers and sidecars want; with the node's network these are all of theirs."""
        lasting = (
            *(one for one in self.spec.init_containers if one.sidecar),
            *self.spec.containers,
        )
        ports = (
            (port.host_port or port.container_port * self.spec.host_network, port)
            for one in lasting
            for port in one.ports
        )
        return tuple(
            HostPort(port.host_ip or _ANYWHERE, port.protocol or "TCP", number)
            for number, port in ports
            if number > 0
        )

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
        terms = self.required_affinity, self.required_anti_affinity, self.preferred
        labels = frozenset(self.labels.items())
        return self.namespace, labels, self.controller, terms

    @property
    def hard_spread(self) -> tuple[TopologySpreadConstraint, ...]:
        """The constraints of topology spread that must hold."""
        return tuple(
            one
            for one in self.spec.topology_spread_constraints
            if one.when_unsatisfiable == "DoNotSchedule"
        )

    def may_run_on(self, node: Node) -> bool:
        """Whether node selector and required node affinity let such a pod run on the node."""
        required = self.spec.required_nodes
        return self.spec.node_selector.items() <= node.metadata.labels.items() and (
            required is None or selector_matches(required, node)
        )

    def is_meant_by(self, term: Term) -> bool:
        """Whether a term of another pod means such a pod."""
        return term.matches(self.namespace, self.namespace_labels, self.labels)

    def _required(self, sort: str) -> Iterator[Term]:
        for term in self._affinity(sort).required:
            yield term_of(term, self.namespace, self.labels)

    def _preferred(self, sort: str, sign: int) -> Iterator[Term]:
        for one in self._affinity(sort).preferred:
            yield term_of(
                one.pod_affinity_term, self.namespace, self.labels, sign * one.weight
            )

    def _affinity(self, sort: str) -> PodAffinity:
        return getattr(self.spec.affinity, sort, None) or PodAffinity()


@dataclass(frozen=True, slots=True, eq=False)
class PodInfo:
    """One pod and its kind.

    ``of_devices``: what its devices take of the node that it has, by resource and in nanos.
    """

    key: ClaimKey
    kind: PodKind
    of_devices: Mapping[str, int] = field(default_factory=dict)

    @property
    def requests(self) -> Mapping[str, int]:
        """What is requested of its node, devices included."""
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


class PodKinds:
    """Tells which pods are equal, of a cluster with these namespaces."""

    def __init__(self, namespaces: Mapping[str, Namespace]) -> None:
        self._namespaces = namespaces
        self._known: dict[Hashable, PodKind] = {}
        self._specs: dict[int, tuple[PodSpec, str]] = {}

    def infos(self, pods: Iterable[Pod]) -> Iterator[PodInfo]:
        """The pods with their kinds."""
        for pod in pods:
            yield PodInfo(
                pod.key,
                self._kind(pod),
                taken_by_devices(pod.status) if pod.spec.node_name else {},
            )

    def _kind(self, pod: Pod) -> PodKind:
        owners = (
            one
            for one in pod.metadata.owner_references
            if one.controller and one.kind in _SPREAD_KINDS
        )
        controller = next(((one.kind, one.name) for one in owners), None)
        if id(pod.spec) not in self._specs:
            text = pod.spec.model_dump_json(
                exclude={"node_name", "resource_claims"}, exclude_defaults=True
            )
            self._specs[id(pod.spec)] = pod.spec, text
        _, body = self._specs[id(pod.spec)]
        key = (
            pod.key.namespace,
            frozenset(pod.metadata.labels.items()),
            controller,
            body,
        )
        if key not in self._known:
            name, namespace = pod.key.namespace, self._namespaces.get(pod.key.namespace)
            labels = {
                _NAME_LABEL: name,
                **(namespace.metadata.labels if namespace else {}),
            }
            self._known[key] = PodKind(
                name, labels, pod.metadata.labels, pod.spec, controller
            )
        return self._known[key]
