"""CPU, memory and whatever else a node has so much of, against what pods request.

Source: ``framework/plugins/noderesources/fit.go`` of ``kubernetes/pkg/scheduler``. A node without
``status.allocatable`` limits nothing; one that lists some resources has nothing of the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from dralloc.api import Node
from dralloc.choices import Ignored
from dralloc.pods.kinds import PodInfo, PodKind
from dralloc.pods.requests import CPU, PODS, amounts_of
from dralloc.problem.node_claims import node_resource, resource_of
from dralloc.quantity import NANOS

__all__ = ["NodeResources"]

_THOUSANDTH: Final = NANOS // 1000


class NodeResources:
    """What pods take of the resources of nodes, in nanos.

    Parameters
    ----------
    wanting
        The pods to be placed.
    of_devices
        The resources that devices take something of.
    ignored
        What does not count.
    """

    def __init__(self, wanting: Iterable[PodKind], of_devices: Iterable[str], ignored: Collection[Ignored]) -> None:
        self._ignored = ignored
        self.kept = frozenset(name for name, _ in self._in_nanos(dict.fromkeys(of_devices, 0)))
        self._names = self.kept.union(*map(self.asked, wanting))

    def asked(self, pod: PodKind | PodInfo) -> dict[str, int]:
        """What such a pod takes of its node."""
        return dict(self._in_nanos({**pod.requests, PODS: 1}))

    def of_devices(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """What devices take, which is in nanos already."""
        return {name: amounts.get(resource_of(name), 0) for name in self.kept}

    def there(self, node: Node) -> dict[str, int]:
        """What there is of what is wanted."""
        if not node.status.allocatable:
            return {}
        return dict.fromkeys(self._names, 0) | dict(self._in_nanos(amounts_of(node.status.allocatable)))

    def _in_nanos(self, units: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        for name, amount in units.items():
            if Ignored.of_resource(name) not in self._ignored:
                yield node_resource(name), amount * (_THOUSANDTH if name == CPU else NANOS)
