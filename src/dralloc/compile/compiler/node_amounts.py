"""The amounts that pods, and devices of their claims, take of their nodes beside devices, by name and in nanos.

Sources: ``framework/plugins/noderesources/fit.go``, ``nodeports/node_ports.go``, ``interpodaffinity/filtering.go`` of
``kubernetes/pkg/scheduler``; KEP-5517 for devices that take something of nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from dralloc.compile.pods import PodInfo, PodKind
from dralloc.compile.pods.node_requests import CPU, PODS, amounts_of, caps_of
from dralloc.compile.pods.selectors import Term
from dralloc.objects.api import (
    DeviceRequestAllocationResult,
    Node,
    Pod,
    ResourceClaim,
)
from dralloc.objects.choices import Ignored
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import NANOS
from dralloc.problem import Device, NodeFootprint
from dralloc.problem.node_claims import node_resource, resource_of
from dralloc.problem.node_footprints import PodUse, footprint_of

__all__ = [
    "Footprints",
    "HostExclusion",
    "HostPorts",
    "NodeAmounts",
    "NodeResources",
]

_THOUSANDTH: Final = NANOS // 1000


class NodeAmounts(ABC):
    """Something that pods take of nodes."""

    @abstractmethod
    def asked(self, kind: PodKind) -> dict[str, int]:
        """Return the amounts that such a pod takes of its node."""

    @abstractmethod
    def there(self, node: Node) -> dict[str, int]:
        """Return the amounts that a node has."""


class NodeResources(NodeAmounts):
    """CPU, memory, room for pods and whatever else nodes list.

    A node without ``status.allocatable`` limits nothing; one that lists some resources has nothing of the others.

    Parameters
    ----------
    wanting
        The pods to be placed.
    of_devices
        The resources that devices take something of.
    ignored
        What does not count.
    """

    def __init__(
        self,
        wanting: Iterable[PodKind],
        of_devices: Iterable[str],
        ignored: Collection[Ignored],
    ) -> None:
        self._ignored = ignored
        self.of_footprints = frozenset(
            name for name, _ in self._in_nanos(dict.fromkeys(of_devices, 0))
        )
        self._names = self.of_footprints.union(*map(self.asked, wanting))

    def asked(self, kind: PodKind | PodInfo) -> dict[str, int]:
        """As in `NodeAmounts`."""
        return dict(self._in_nanos({**kind.requests, PODS: 1}))

    def of_devices(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """Return what devices take, which is in nanos already."""
        return {
            name: amounts.get(resource_of(name), 0)
            for name in self.of_footprints
        }

    def there(self, node: Node) -> dict[str, int]:
        """As in `NodeAmounts`."""
        if not node.status.allocatable:
            return {}
        return dict.fromkeys(self._names, 0) | dict(
            self._in_nanos(amounts_of(node.status.allocatable))
        )

    def _in_nanos(self, units: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        for name, amount in units.items():
            if Ignored.of_resource(name) not in self._ignored:
                yield (
                    node_resource(name),
                    amount * (_THOUSANDTH if name == CPU else NANOS),
                )


class HostPorts(NodeAmounts):
    """Ports of nodes: one of each port with its protocol on each address that any of the pods names.

    Who wants the port on any address takes it on all of them.
    """

    def __init__(self, kinds: Iterable[PodKind]) -> None:
        self._addresses: dict[tuple[str, int], set[str]] = defaultdict(set)
        for kind in kinds:
            for port in kind.host_ports:
                self._addresses[port.protocol, port.port].add(port.address)
        names = (
            _port(protocol, port_number, address)
            for (protocol, port_number), addresses in self._addresses.items()
            for address in addresses
        )
        self._there = dict.fromkeys(names, NANOS)

    def asked(self, kind: PodKind) -> dict[str, int]:
        """As in `NodeAmounts`."""
        amounts = {}
        for port in kind.host_ports:
            addresses: Iterable[str] = (port.address,)
            if port.is_anywhere:
                addresses = self._addresses[port.protocol, port.port]
            for address in addresses:
                amounts[_port(port.protocol, port.port, address)] = NANOS
        return amounts

    def there(self, node: Node) -> dict[str, int]:  # noqa: ARG002 - every node has every port
        """As in `NodeAmounts`."""
        return self._there


def _port(protocol: str, port: int, address: str) -> str:
    return f"hostPort {address}:{port}/{protocol}"


class HostExclusion(NodeAmounts):
    """Required anti-affinity of pods by node, where those that have a term are meant by it, too.

    Of each such term a node has enough for everybody who could be there: who has the term takes all of it, who is only
    meant by it takes a little. So there is one of those that have it, or any number of the others, whether they run
    already or come. Nodes without the label are no place that a term means.

    Parameters
    ----------
    max_pods
        More pods than this are never on one node, those that run there included.
    """

    def __init__(self, terms: Iterable[Term], max_pods: int) -> None:
        self._names = {
            term: f"podAntiAffinity {index}" for index, term in enumerate(terms)
        }
        self._all = max_pods * NANOS

    def asked(self, kind: PodKind) -> dict[str, int]:
        """As in `NodeAmounts`."""
        return {
            name: self._all if term in kind.required_anti_affinity else NANOS
            for term, name in self._names.items()
            if term in kind.required_anti_affinity or kind.is_meant_by(term)
        }

    def there(self, node: Node) -> dict[str, int]:
        """As in `NodeAmounts`."""
        return {
            name: self._all
            for term, name in self._names.items()
            if term.topology_key in node.metadata.labels
        }


# ----------------------------------------------------------------------------
# How pods use the devices of their claims, as far as these take something of nodes
# (KEP-5517).


class Footprints:
    """The amounts that devices of a cluster take of nodes, for its pods.

    Parameters
    ----------
    devices
        All devices; with equal names, the last one counts.
    """

    def __init__(self, cluster: Cluster, devices: Iterable[Device]) -> None:
        self._cluster = cluster
        self._parts = {
            device.id: device.footprint
            for device in devices
            if device.footprint
        }

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def resources(self) -> frozenset[str]:
        """The resources that devices take something of."""
        return frozenset(
            part.resource for parts in self._parts.values() for part in parts
        )

    def use(self, pod: Pod) -> PodUse:
        """Note how a pod uses claims."""
        allocated = self.of_allocated(pod)
        caps = {
            name: cap - allocated[name]
            for name, cap in caps_of(pod.spec).items()
        }
        return PodUse(self.containers(pod), caps)

    def held(self, pod: Pod) -> Mapping[str, int]:
        """Return the amounts that a pod takes of its node for its allocated claims, in nanos."""
        capped = caps_of(pod.spec)
        return {
            name: amount
            for name, amount in self.of_allocated(pod).items()
            if name not in capped
        }

    def of_allocated(self, pod: Pod) -> Counter[str]:
        """Return the amounts that the allocated claims of a pod take, by resource and in nanos."""
        amounts: Counter[str] = Counter()
        containers = self.containers(pod)
        for key in self._cluster.pod_claims(pod):
            claim = self._cluster.claim(key)
            for result, parts in (
                self._results(claim) if claim is not None else ()
            ):
                consumed = {
                    name: amount.nanos
                    for name, amount in result.consumed_capacity.items()
                }
                amounts.update(
                    footprint_of(parts, consumed, containers[key]) or {}
                )
        return amounts

    def is_mapped(self, claim: ResourceClaim) -> bool:
        """Whether an allocated claim has a device that stands for a part of its node, which one pod alone can use."""
        return any(
            part.is_mapped
            for _, parts in self._results(claim)
            for part in parts
        )

    def _results(
        self, claim: ResourceClaim
    ) -> Iterator[
        tuple[DeviceRequestAllocationResult, Sequence[NodeFootprint]]
    ]:
        return (
            (result, self._parts.get(result.device_id, ()))
            for result in claim.results
        )

    def containers(self, pod: Pod) -> Counter[ClaimKey]:
        """Return the number of containers' references to each claim."""
        keys = self._keys(pod)
        used = (
            claim.name
            for container in (*pod.spec.init_containers, *pod.spec.containers)
            for claim in container.resources.claims
        )
        return Counter(keys[name] for name in used if name in keys)

    def _keys(self, pod: Pod) -> Mapping[str, ClaimKey]:
        """The claim of each entry of a pod: those of the cluster are in order, each once."""
        unneeded = {
            status.name
            for status in pod.status.resource_claim_statuses
            if status.resource_claim_name is None
        }
        references = {
            entry.name: (
                entry.resource_claim_name or "",
                # Claims of templates have the entry's name, so that no two entries mean
                # one of them.
                "" if entry.resource_claim_name else entry.name,
            )
            for entry in pod.spec.resource_claims
            if entry.name not in unneeded
        }
        keys = dict(
            zip(
                dict.fromkeys(references.values()),
                self._cluster.pod_claims(pod),
                strict=False,
            )
        )
        return {
            name: keys[reference]
            for name, reference in references.items()
            if reference in keys
        }
