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
        return sorted(name for name in self.asked(pod) - self.backed if name not in self._on_nodes)

    def beside_devices(self, pod: Pod) -> frozenset[str]:
        """Everything that a pod asks its node for and that is no device: CPU, memory, what device plugins have."""
        return pod.requested - self.backed

    @cached_property
    def _on_nodes(self) -> _Offered:
        return _Offered(self._nodes)


class _Offered:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self._everything = any(not node.status.allocatable for node in nodes)
        self._names = {name for node in nodes for name, amount in node.status.allocatable.items() if amount.nanos}

    def __contains__(self, name: str) -> bool:
        return self._everything or name in self._names


def is_extended(name: str) -> bool:
    """Whether a resource is an extended one: of no domain of Kubernetes, and no quota."""
    native = "/" not in name or _NATIVE in name
    return name.startswith(IMPLICIT) or not (native or name.startswith(_QUOTA))
