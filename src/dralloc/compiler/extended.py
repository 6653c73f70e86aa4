"""Extended resources that are backed by classes of devices (KEP-5004).

A pod whose containers ask for ``vendor.com/gpu: 2`` gets one claim for everything that a DeviceClass stands for, by its
``extendedResourceName`` or as ``deviceclass.resource.kubernetes.io/<class>``. Source: upstream's scheduler plugin,
``extendeddynamicresources.go``.

Upstream asks each node first: one whose device plugin offers the resource serves it that way. What device plugins have
left is not known here. Nodes that offer such a resource are left out for the pod, and a pod for which there is no other
node asks for nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dralloc.api import (
    Container,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    Node,
    ObjectMeta,
    OwnerReference,
    Pod,
    ResourceClaim,
    ResourceClaimSpec,
)
from dralloc.api.disclosure import EXTENDED_RESOURCE_ANNOTATION
from dralloc.api.expansion import generated_name
from dralloc.cluster import Cluster
from dralloc.errors import Finding, InputError
from dralloc.features import Features
from dralloc.names import ClaimKey
from dralloc.quantity import NANOS

__all__ = [
    "EXTENDED_RESOURCE_ANNOTATION",
    "IMPLICIT",
    "Extended",
    "classes_by_resource",
    "extended_claims",
    "with_extended_resources",
]

IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
"""Prefix of the resources that are there for every class by its name."""


@dataclass(frozen=True)
class Extended:
    """The cluster with the claims for extended resources.

    ``elsewhere``: for each pod with such a claim, the names of the nodes that serve it by a device plugin.
    """

    cluster: Cluster
    elsewhere: Mapping[ClaimKey, frozenset[str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def with_extended_resources(cluster: Cluster, nodes: Sequence[Node], features: Features) -> Extended:
    """Add a claim for every pod that asks for extended resources which classes back.

    A claim that upstream's scheduler made before is used if it is allocated. If it is not, upstream deletes it and
    starts anew, and so do we. A pod that runs already has what it asked for.
    """
    if not features.ExtendedResource:
        return Extended(cluster)
    return _Extension(cluster, nodes).extended()


class _Extension:
    def __init__(self, cluster: Cluster, nodes: Sequence[Node]) -> None:
        self.cluster = cluster
        self.nodes = nodes
        self.classes = classes_by_resource(cluster.classes.values())
        self.given = dict(extended_claims(cluster.claims))
        self.claims: dict[ClaimKey, ResourceClaim] = {}
        self.elsewhere: dict[ClaimKey, frozenset[str]] = {}
        self.plugins = self._plugins()
        self.met: set[str] = set()

    def extended(self) -> Extended:
        claims_of_pods = dict(self.cluster.claims_of_pods)
        for pod in self.cluster.pods:
            key = self._claim_of(pod)
            if key is not None:
                claims_of_pods[pod.key] = (*claims_of_pods[pod.key], key)
        stale = {claim.key for claim in self.given.values() if claim.status.allocation is None}
        if not self.claims and not stale and claims_of_pods == self.cluster.claims_of_pods:
            return Extended(self.cluster)
        cluster = replace(
            self.cluster,
            claims=(*self.cluster.claims, *self.claims.values()),
            claims_of_pods=claims_of_pods,
            made=self.cluster.made | self.claims.keys(),
            abandoned=self.cluster.abandoned | stale,
        )
        return Extended(cluster, self.elsewhere, tuple(self._findings()))

    def _plugins(self) -> Mapping[str, frozenset[str]]:
        """The nodes that offer a resource by a device plugin, by resource, for those that classes back."""
        found: dict[str, set[str]] = defaultdict(set)
        for node in self.nodes:
            for resource in node.status.allocatable.keys() & self.classes.keys():
                if node.status.allocatable[resource].nanos:
                    found[resource].add(node.name)
        return {resource: frozenset(names) for resource, names in found.items()}

    def _claim_of(self, pod: Pod) -> ClaimKey | None:
        given = self.given.get(pod.key)
        if given is not None and given.status.allocation is not None:
            return given.key
        resources = {} if pod.spec.node_name else self._resources(pod)
        if not resources:
            return None
        elsewhere = frozenset[str]().union(*(self.plugins.get(resource, ()) for resource in resources))
        if elsewhere and len(elsewhere) == len(self.nodes):
            return None
        self.met.update(resources)
        claim = _claim_for(pod, tuple(_requests(pod, resources)))
        self.claims[claim.key] = claim
        self.elsewhere[pod.key] = elsewhere
        return claim.key

    def _resources(self, pod: Pod) -> dict[str, str]:
        """The class behind each extended resource that some container asks for, sorted by resource."""
        if not self.classes:
            return {}
        return {resource: self.classes[resource].name for resource in sorted(pod.requested & self.classes.keys())}

    def _findings(self) -> Iterator[Finding]:
        for resource in sorted(self.met & self.plugins.keys()):
            device_class = self.classes[resource]
            names = ", ".join(sorted(self.plugins[resource]))
            yield self.cluster.remark(
                device_class,
                "spec.extendedResourceName" if device_class.spec.extended_resource_name == resource else "",
                f"a device plugin offers {resource} on {names}: pods that ask for it are placed on other nodes only",
            )


def classes_by_resource(classes: Iterable[DeviceClass]) -> Mapping[str, DeviceClass]:
    """The class for each resource name: of several the newest, then the first by name (upstream's resolver)."""
    found: dict[str, DeviceClass] = {}
    oldest_first = sorted(sorted(classes, key=lambda one: one.name, reverse=True), key=_created)
    for one in oldest_first:
        found[f"{IMPLICIT}{one.name}"] = one
        if one.spec.extended_resource_name is not None:
            found[one.spec.extended_resource_name] = one
    return found


def _created(one: DeviceClass) -> str:
    return one.metadata.creation_timestamp or ""


def extended_claims(claims: Sequence[ResourceClaim]) -> Iterator[tuple[ClaimKey, ResourceClaim]]:
    """The claims that a scheduler made for extended resources, by their pods."""
    for claim in claims:
        if claim.metadata.annotations.get(EXTENDED_RESOURCE_ANNOTATION) == "true":
            for owner in claim.metadata.owner_references:
                if owner.kind == Pod.kind and owner.controller:
                    yield ClaimKey(claim.key.namespace, owner.name), claim


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*pod.spec.init_containers, *pod.spec.containers)


def _requests(pod: Pod, classes: Mapping[str, str]) -> Iterator[DeviceRequest]:
    """The requests of the claim, by name: one for each container and resource, as upstream names and shares them."""
    found = [one for resource, name in classes.items() for one in _requests_for(pod, resource, name)]
    yield from sorted(found, key=lambda one: one.name)


def _amount(pod: Pod, container: Container, resource: str) -> int:
    """How many of a resource a container asks for.

    Raises
    ------
    InputError
        It asks for less than none, which the API server refuses.
    """
    amount = container.resources.requested.get(resource)
    if amount is None:
        return 0
    if amount.nanos < 0:
        path = f'spec.containers["{container.name}"].resources.requests["{resource}"]'
        raise InputError([Finding("", pod.title, path, f"must not be negative, but is {amount}")])
    return amount.nanos // NANOS


def _requests_for(pod: Pod, resource: str, class_name: str) -> Iterator[DeviceRequest]:
    """What containers need of one resource.

    Init containers run one after the other, before the containers behind them: they share the devices of those, and
    one request covers what the most demanding of them needs beyond that.
    """
    containers = _containers(pod)
    amounts = [_amount(pod, one, resource) for one in containers]
    short_lived = [index for index, one in enumerate(pod.spec.init_containers) if one.restart_policy != "Always"]
    lasting = {index: amount for index, amount in enumerate(amounts) if amount and index not in short_lived}
    extra = {
        index: amounts[index] - sum(amount for later, amount in lasting.items() if later >= index)
        for index in short_lived
    }
    most = max(extra, key=lambda index: extra[index], default=None)
    if most is not None and extra[most] > 0:
        lasting[most] = extra[most]
    for index, count in lasting.items():
        number = sorted(containers[index].resources.requested).index(resource)
        exactly = ExactDeviceRequest(device_class_name=class_name, count=count)
        yield DeviceRequest(name=f"container-{index}-request-{number}", exactly=exactly)


def _claim_for(pod: Pod, requests: tuple[DeviceRequest, ...]) -> ResourceClaim:
    base = f"{pod.name}-extended-resources-"
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.metadata.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=generated_name(base, pod.key.namespace),
            generate_name=base,
            namespace=pod.metadata.namespace,
            annotations={EXTENDED_RESOURCE_ANNOTATION: "true"},
            creation_timestamp=pod.metadata.creation_timestamp,
            owner_references=(owner,),
        ),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)),
    )
