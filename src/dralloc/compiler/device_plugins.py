"""Extended resources that no class offers: those of device plugins, of which nodes say how much there is.

What of it is left on a node is not looked at. But where no node has any, a pod that asks for it cannot be placed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from dralloc.api import Node, Pod
from dralloc.cluster import Cluster
from dralloc.compiler.extended import IMPLICIT, classes_by_resource
from dralloc.features import Features

__all__ = ["DevicePlugins", "is_extended"]

_NATIVE: Final = "kubernetes.io/"
_QUOTA: Final = "requests."


class DevicePlugins:
    """What pods ask device plugins for, and what of it there can be on no node."""

    def __init__(self, cluster: Cluster, nodes: Sequence[Node], features: Features) -> None:
        self._nodes = nodes
        self.backed = frozenset(classes_by_resource(cluster.classes.values()) if features.ExtendedResource else ())

    def asked(self, pod: Pod) -> frozenset[str]:
        """The extended resources that a pod asks for, whoever offers them (upstream's ``IsExtendedResourceName``)."""
        return frozenset(name for name in pod.requested if is_extended(name))

    def missing(self, pod: Pod) -> list[str]:
        """Those that neither a class nor a node has, by name. A node that says nothing may have everything."""
        return [] if self._on_nodes is None else sorted(self.asked(pod) - self.backed - self._on_nodes)

    @cached_property
    def _on_nodes(self) -> frozenset[str] | None:
        """The resources that some node has; None if they may be any."""
        if not all(node.status.allocatable for node in self._nodes):
            return None
        stocks = (node.status.allocatable.items() for node in self._nodes)
        return frozenset(name for stock in stocks for name, amount in stock if amount.nanos)


def is_extended(name: str) -> bool:
    """Whether a resource is an extended one: of no domain of Kubernetes, and no quota."""
    native = "/" not in name or _NATIVE in name
    return name.startswith(IMPLICIT) or not (native or name.startswith(_QUOTA))
