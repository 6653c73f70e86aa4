"""Ports of nodes. Source: ``framework/plugins/nodeports/node_ports.go``."""

from __future__ import annotations

from typing import Final

from dralloc.scheduling.cycle import Cycle
from dralloc.scheduling.plugins.plugin import Check, Plugin, Rejection

__all__ = ["NODE_PORTS"]

_TAKEN: Final = Rejection(("node(s) didn't have free ports for the requested pod ports",), resolvable=True)


def _filter(cycle: Cycle) -> Check | None:
    wanted = cycle.pod.kind.host_ports
    if not wanted:
        return None
    return lambda node: _TAKEN if any(port.collides(other) for port in wanted for other in node.ports) else None


NODE_PORTS: Final = Plugin("NodePorts", _filter, view=lambda node: tuple(node.ports))
