"""CPU, memory and whatever else a node has so much of, against what pods request.

Source: ``framework/plugins/noderesources/fit.go`` of ``kubernetes/pkg/scheduler``. A node without
``status.allocatable`` limits nothing; one that lists some resources has nothing of the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from dralloc.api import Node
from dralloc.choices import Ignored
from dralloc.pods.kinds import PodKind
from dralloc.pods.requests import CPU, PODS, amounts_of
from dralloc.quantity import NANOS

__all__ = ["NodeResources", "resource_of"]

_THOUSANDTH: Final = NANOS // 1000
_PREFIX: Final = "node "
"""Of names, as no capacity of a device can have them: caps mean devices only."""


class NodeResources:
    """What pods take of the resources of nodes, in nanos.

    Parameters
    ----------
    wanting
        The pods to be placed.
    ignored
        What does not count.
    """

    def __init__(self, wanting: Iterable[PodKind], ignored: Collection[Ignored]) -> None:
        self._ignored = ignored
        self._names = frozenset(name for kind in wanting for name in self.asked(kind))

    def asked(self, kind: PodKind) -> dict[str, int]:
        """What such a pod takes of its node."""
        return dict(self._in_nanos({**kind.requests, PODS: 1}))

    def there(self, node: Node) -> dict[str, int]:
        """What there is of what is wanted."""
        if not node.status.allocatable:
            return {}
        return dict.fromkeys(self._names, 0) | dict(self._in_nanos(amounts_of(node.status.allocatable)))

    def _in_nanos(self, units: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        for name, amount in units.items():
            if Ignored.of_resource(name) not in self._ignored:
                yield f"{_PREFIX}{name}", amount * (_THOUSANDTH if name == CPU else NANOS)


def resource_of(name: str) -> str:
    """The resource of nodes that a name stands for; empty if it stands for something else."""
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else ""
