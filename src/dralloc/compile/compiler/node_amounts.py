"""What pods take of their nodes beside devices, by name and in nanos.

Sources: ``framework/plugins/noderesources/fit.go``, ``nodeports/node_ports.go``, ``interpodaffinity/filtering.go`` of
``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from dralloc.compile.pods.kinds import PodInfo, PodKind
from dralloc.compile.pods.requests import CPU, PODS, amounts_of
from dralloc.compile.pods.selectors import Term
from dralloc.objects.api import Node
from dralloc.objects.choices import Ignored
from dralloc.objects.quantity import NANOS
from dralloc.problem.node_claims import node_resource, resource_of

__all__ = ["HostExclusion", "HostPorts", "NodeAmounts", "NodeResources"]

_THOUSANDTH: Final = NANOS // 1000


class NodeAmounts(ABC):
    """Something that pods take of nodes."""

    @abstractmethod
    def asked(self, kind: PodKind) -> dict[str, int]:
        """What such a pod takes of its node."""

    @abstractmethod
    def there(self, node: Node) -> dict[str, int]:
        """What there is of it on a node."""


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
        self.kept = frozenset(
            name for name, _ in self._in_nanos(dict.fromkeys(of_devices, 0))
        )
        self._names = self.kept.union(*map(self.asked, wanting))

    def asked(self, kind: PodKind | PodInfo) -> dict[str, int]:
        """As in `NodeAmounts`."""
        return dict(self._in_nanos({**kind.requests, PODS: 1}))

    def of_devices(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """What devices take, which is in nanos already."""
        return {name: amounts.get(resource_of(name), 0) for name in self.kept}

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
            _port(*one, address)
            for one, addresses in self._addresses.items()
            for address in addresses
        )
        self._there = dict.fromkeys(names, NANOS)

    def asked(self, kind: PodKind) -> dict[str, int]:
        """As in `NodeAmounts`."""
        taken = (
            (one, self._addresses[one[1:]] if one.is_anywhere else (one.address,))
            for one in kind.host_ports
        )
        return {
            _port(one.protocol, one.port, address): NANOS
            for one, addresses in taken
            for address in addresses
        }

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
    most
        More pods than this are never on one node, those that run there included.
    """

    def __init__(self, terms: Iterable[Term], most: int) -> None:
        self._names = {
            term: f"podAntiAffinity {number}" for number, term in enumerate(terms)
        }
        self._all = most * NANOS

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
