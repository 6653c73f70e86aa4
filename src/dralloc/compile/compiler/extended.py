"""Extended resources that are backed by classes of devices (KEP-5004).

A pod whose containers ask for ``vendor.com/gpu: 2`` gets one claim for everything that a DeviceClass stands for, by its
``extendedResourceName`` or as ``deviceclass.resource.kubernetes.io/<class>``. Source: upstream's scheduler plugin,
``extendeddynamicresources.go``.

Upstream asks each node first: one whose device plugin offers the resource serves it that way, and the claim is for the
others. Mode `scheduler` does the same. For all other modes what device plugins have left is not known: nodes that offer
such a resource are left out for the pod. A pod that device plugins serve on every node asks for nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from dralloc.objects.api import (
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
from dralloc.objects.api.disclosure import EXTENDED_RESOURCE_ANNOTATION
from dralloc.objects.api.owners import generated_name
from dralloc.objects.assembly.claiming import belongs_to
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding, InputError
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import NANOS

__all__ = [
    "DevicePlugins",
    "Extended",
    "classes_by_resource",
    "extended_claims",
    "is_extended",
    "request_names",
    "with_extended_resources",
]

_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
"""Prefix of the resources that are there for every class by its name."""
_NATIVE: Final = "kubernetes.io/"
_QUOTA: Final = "requests."
_MOST_COUNTED: Final = 2**63 - 1


@dataclass(frozen=True)
class Extended:
    """The cluster with the claims for extended resources.

    ``elsewhere``: for each pod with such a claim, the names of the nodes that serve some of it by a device plugin.
    """

    cluster: Cluster
    elsewhere: Mapping[ClaimKey, frozenset[str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def with_extended_resources(
    cluster: Cluster, nodes: Sequence[Node], features: Features
) -> Extended:
    """Add a claim for every pod that asks for extended resources which classes back.

    A claim that upstream's scheduler made before is used if it is allocated. If it is not, it is made anew, as upstream
    deletes it and starts again. A pod that runs already has what it asked for.
    """
    if not features.ExtendedResource:
        return Extended(cluster)
    classes, existing = (
        classes_by_resource(cluster.classes.values()),
        dict(extended_claims(cluster)),
    )
    plugins = _plugins(nodes, classes)
    used = {pod: claim for pod, claim in existing.items() if claim.is_allocated}
    new_claims: dict[ClaimKey, ResourceClaim] = {}
    elsewhere: dict[ClaimKey, frozenset[str]] = {}
    met: set[str] = set()
    for pod in cluster.pods if classes else ():
        resources = (
            ()
            if pod.spec.node_name or pod.key in used
            else sorted(pod.requested & classes.keys())
        )
        serving = [plugins.get(resource, frozenset()) for resource in resources]
        serving_all = frozenset.intersection(*serving) if serving else ()
        if resources and (not serving_all or len(serving_all) < len(nodes)):
            new_claims[pod.key] = _claim_for(
                pod,
                {resource: classes[resource].name for resource in resources},
            )
            elsewhere[pod.key] = frozenset.union(*serving)
            met.update(resources)
    if not existing and not new_claims:
        return Extended(cluster)
    claims, anew = (
        {**used, **new_claims},
        frozenset(claim.key for claim in new_claims.values()),
    )
    claims_of_pods = {
        pod: tuple(dict.fromkeys((*keys, claims[pod].key)))
        if pod in claims
        else keys
        for pod, keys in cluster.claims_of_pods.items()
    }
    # Upstream deletes such a claim and makes another one.
    stale = frozenset(
        claim.key for claim in existing.values() if not claim.is_allocated
    )
    extended = replace(
        cluster,
        # What was made for an answer before has the same name.
        claims=(
            *(claim for claim in cluster.claims if claim.key not in anew),
            *new_claims.values(),
        ),
        claims_of_pods=claims_of_pods,
        made=cluster.made | anew,
        abandoned=cluster.abandoned | (stale - anew),
    )
    return Extended(
        extended, elsewhere, tuple(_remarks(cluster, classes, plugins, met))
    )


def _plugins(
    nodes: Iterable[Node], classes: Mapping[str, DeviceClass]
) -> Mapping[str, frozenset[str]]:
    """The nodes that offer a resource by a device plugin, by resource, for those that classes back."""
    nodes_of: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        for resource in node.status.allocatable.keys() & classes.keys():
            if node.status.allocatable[resource].nanos:
                nodes_of[resource].add(node.name)
    return {resource: frozenset(names) for resource, names in nodes_of.items()}


def _remarks(
    cluster: Cluster,
    classes: Mapping[str, DeviceClass],
    plugins: Mapping[str, Set[str]],
    requested: Set[str],
) -> Iterator[Finding]:
    for resource in sorted(requested & plugins.keys()):
        device_class = classes[resource]
        path = (
            "spec.extendedResourceName"
            if device_class.spec.extended_resource_name == resource
            else ""
        )
        where = f"a device plugin offers {resource} on {', '.join(sorted(plugins[resource]))}"
        yield cluster.remark(
            device_class,
            path,
            f"{where}: pods that ask for it are placed on other nodes only",
        )


def classes_by_resource(
    classes: Iterable[DeviceClass],
) -> Mapping[str, DeviceClass]:
    """The class for each resource name: of several the newest, then the first by name (upstream's resolver)."""
    class_of: dict[str, DeviceClass] = {}
    by_name = sorted(
        classes, key=lambda device_class: device_class.name, reverse=True
    )
    for device_class in sorted(
        by_name,
        key=lambda device_class: device_class.metadata.creation_timestamp or "",
    ):
        class_of[f"{_IMPLICIT}{device_class.name}"] = device_class
        if device_class.spec.extended_resource_name is not None:
            class_of[device_class.spec.extended_resource_name] = device_class
    return class_of


def extended_claims(
    cluster: Cluster,
) -> Iterator[tuple[ClaimKey, ResourceClaim]]:
    """The claims that a scheduler made for extended resources, by their pods (``findExtendedResourceClaim``).

    Those of an earlier pod with the name of one of the cluster are left out.
    """
    for claim in cluster.claims:
        if claim.is_extended:
            for owner in claim.metadata.owner_references:
                if owner.kind == Pod.kind and owner.controller:
                    key = ClaimKey(claim.key.namespace, owner.name)
                    pod = cluster.pods_by_key.get(key)
                    if pod is None or belongs_to(claim, pod):
                        yield key, claim


def _amount(pod: Pod, container: Container, resource: str) -> int:
    """Return the amount of a resource that a container requests.

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
        raise InputError(
            [
                Finding(
                    "",
                    pod.title,
                    path,
                    f"must not be negative, but is {amount}",
                )
            ]
        )
    # Requests count in 64 bits; so many devices no claim can get anyway.
    return min(amount.nanos // NANOS, _MOST_COUNTED)


def _requests_for(
    pod: Pod, resource: str, class_name: str
) -> Iterator[DeviceRequest]:
    """Yield the containers' requests of one resource.

    Init containers run one after the other, before the containers behind them: they share the devices of those, and
    one request covers what the most demanding of them needs beyond that.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    amounts = [_amount(pod, container, resource) for container in containers]
    short_lived = [
        index
        for index, container in enumerate(pod.spec.init_containers)
        if container.restart_policy != "Always"
    ]
    lasting = {
        index: amount
        for index, amount in enumerate(amounts)
        if amount and index not in short_lived
    }
    extra = {}
    for index in short_lived:
        # It can use the devices of containers that start after it. Sidecars that start before it use their own.
        behind = sum(
            amount for later, amount in lasting.items() if later >= index
        )
        extra[index] = amounts[index] - behind
    # Of equally needy ones upstream takes the first, after which the request is named.
    neediest = max(extra, key=lambda index: extra[index], default=None)
    if neediest is not None and extra[neediest] > 0:
        lasting[neediest] = extra[neediest]
    for index, count in lasting.items():
        resource_index = sorted(containers[index].resources.requested).index(
            resource
        )
        exactly = ExactDeviceRequest(device_class_name=class_name, count=count)
        yield DeviceRequest(
            name=f"container-{index}-request-{resource_index}", exactly=exactly
        )


def request_names(pod: Pod, resource: str) -> frozenset[str]:
    """The names of the requests for an extended resource in the claim of a pod.

    Raises
    ------
    InputError
        A container asks for less than none, which the API server refuses.
    """
    return frozenset(
        request.name for request in _requests_for(pod, resource, "")
    )


def _claim_for(pod: Pod, classes: Mapping[str, str]) -> ResourceClaim:
    """The claim of a pod: a request for each container and resource, as upstream names and shares them, by name."""
    requests: list[DeviceRequest] = []
    for resource, name in classes.items():
        requests += _requests_for(pod, resource, name)
    base = f"{pod.name}-extended-resources-"
    owner = OwnerReference(
        api_version="v1",
        kind="Pod",
        name=pod.name,
        uid=pod.metadata.uid,
        controller=True,
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            name=generated_name(base, pod.key.namespace),
            generate_name=base,
            namespace=pod.metadata.namespace,
            annotations={EXTENDED_RESOURCE_ANNOTATION: "true"},
            creation_timestamp=pod.metadata.creation_timestamp,
            owner_references=(owner,),
        ),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(
                requests=tuple(
                    sorted(requests, key=lambda request: request.name)
                )
            )
        ),
    )


class DevicePlugins:
    """The resources of device plugins that pods request, and those of them that no node has.

    What of it is left on a node is not looked at. But where no node has any, a pod that asks for it cannot be placed.

    Parameters
    ----------
    backed
        The extended resources that classes offer.
    """

    def __init__(
        self, cluster: Cluster, nodes: Sequence[Node], features: Features
    ) -> None:
        self._nodes = nodes
        self.backed = frozenset(
            classes_by_resource(cluster.classes.values())
            if features.ExtendedResource
            else ()
        )

    def asked(self, pod: Pod) -> frozenset[str]:
        """The extended resources that a pod requests, however offered (upstream's ``IsExtendedResourceName``)."""
        return frozenset(name for name in pod.requested if is_extended(name))

    def missing(self, pod: Pod) -> list[str]:
        """Return those that neither a class nor a node has, by name. A node that says nothing may have everything."""
        return (
            []
            if self._on_nodes is None
            else sorted(self.asked(pod) - self.backed - self._on_nodes)
        )

    @cached_property
    def _on_nodes(self) -> frozenset[str] | None:
        """The resources that some node has; None if they may be any."""
        if not all(node.status.allocatable for node in self._nodes):
            return None
        stocks = (node.status.allocatable.items() for node in self._nodes)
        return frozenset(
            name for stock in stocks for name, amount in stock if amount.nanos
        )


def is_extended(name: str) -> bool:
    """Whether a resource is an extended one: of no domain of Kubernetes, and no quota."""
    native = "/" not in name or _NATIVE in name
    return name.startswith(_IMPLICIT) or not (native or name.startswith(_QUOTA))
