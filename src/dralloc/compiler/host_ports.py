"""Ports of nodes. Source: ``framework/plugins/nodeports/node_ports.go`` of ``kubernetes/pkg/scheduler``.

Of each port with its protocol a node has one on each address that anybody names. Who wants the port on any address
takes it on all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from dralloc.api import Node
from dralloc.pods.kinds import HostPort, PodKind
from dralloc.quantity import NANOS

__all__ = ["HostPorts"]


class HostPorts:
    """What pods take of the ports of nodes; ``kinds`` are all pods that are or may come on them."""

    def __init__(self, kinds: Iterable[PodKind]) -> None:
        self._addresses: dict[tuple[str, int], set[str]] = defaultdict(set)
        for kind in kinds:
            for port in kind.host_ports:
                self._addresses[port.protocol, port.port].add(port.address)

    def asked(self, kind: PodKind) -> dict[str, int]:
        """What such a pod takes of its node."""
        return {name: NANOS for port in kind.host_ports for name in self._names(port)}

    def there(self, node: Node) -> dict[str, int]:  # noqa: ARG002 - every node has every port
        """What there is: one of each."""
        return {
            _name(protocol, port, address): NANOS
            for (protocol, port), addresses in self._addresses.items()
            for address in addresses
        }

    def _names(self, port: HostPort) -> list[str]:
        addresses = self._addresses[port.protocol, port.port] if port.is_anywhere else (port.address,)
        return [_name(port.protocol, port.port, address) for address in addresses]


def _name(protocol: str, port: int, address: str) -> str:
    return f"hostPort {address}:{port}/{protocol}"
