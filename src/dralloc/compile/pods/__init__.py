"""Pods as their nodes see them, in every mode.

- `dralloc.compile.pods.selectors`: label selectors and pod affinity terms, ready to be asked often;
- `dralloc.compile.pods.node_requests`: what a pod requests of its node.

Here is what equal pods have in common, worked out once for all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple
from weakref import ref

from dralloc.compile.pods.node_requests import (
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
from dralloc.objects.api.selecting import selector_matches
from dralloc.objects.names import ClaimKey

__all__ = ["HostPort", "PodInfo", "PodKind", "PodKinds"]

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
            yield term_of(term, self.namespace, self.labels)

    def _preferred(self, sort: str, sign: int) -> Iterator[Term]:
        for preference in self._affinity(sort).preferred:
            yield term_of(
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
                taken_by_devices(pod.status) if pod.spec.node_name else {},
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
            # Every namespace has its name as a label, also one that is not among the objects.
            labels = {
                _NAME_LABEL: name,
                **(namespace.metadata.labels if namespace else {}),
            }
            self._known[key] = PodKind(
                name, labels, pod.metadata.labels, pod.spec, controller
            )
        return self._known[key]
