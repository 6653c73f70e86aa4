"""Which slices matter to which node.

Source: upstream's ``GatherPools``. Slices with shared counters matter to every node, because the devices of a pool can
only be judged together with its counters (KEP-4815).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dralloc.objects.api import Device, Node, NodeSelector, ResourceSlice
from dralloc.objects.api.node_selectors import selector_matches
from dralloc.objects.features import Features
from dralloc.objects.names import PoolID

__all__ = ["NodeIndex", "SliceReach", "find_reach"]


class NodeIndex:
    """Answers which nodes a node selection means. Equal selectors are worked out once. ``everywhere``: all nodes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._by_name = {node.metadata.name: index for index, node in enumerate(nodes)}
        self._by_selector: dict[str, frozenset[int]] = {}
        self.everywhere = frozenset(range(len(nodes)))

    def selected(
        self, name: str | None, everywhere: bool | None, selector: NodeSelector | None
    ) -> frozenset[int]:
        """Indices of the nodes meant by ``nodeName``, ``allNodes`` or ``nodeSelector``, in this order of precedence."""
        if name:
            index = self._by_name.get(name)
            return frozenset() if index is None else frozenset((index,))
        if everywhere:
            return self.everywhere
        if selector is None:
            return frozenset()
        key = repr(selector)
        if key not in self._by_selector:
            self._by_selector[key] = frozenset(
                index
                for index, node in enumerate(self._nodes)
                if selector_matches(selector, node)
            )
        return self._by_selector[key]

    def of_device(self, device: Device) -> frozenset[int]:
        """The nodes that a device with its own node selection is reachable from."""
        return self.selected(device.node_name, device.all_nodes, device.node_selector)

    def of_slice(self, slice_: ResourceSlice) -> frozenset[int]:
        """The nodes that a slice is meant for; with node selection per device, those of any of its devices."""
        spec = slice_.spec
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return self.selected(spec.node_name, spec.all_nodes, spec.node_selector)
        if spec.per_device_node_selection:
            return frozenset().union(
                *(self.of_device(device) for device in spec.devices)
            )
        return frozenset()


class SliceReach(NamedTuple):
    """Slices by pool, as indices into the cluster's slices.

    ``everywhere``: slices with counters. ``by_node``: for each node the other slices that are meant for it.
    """

    everywhere: Mapping[PoolID, list[int]]
    by_node: Sequence[Mapping[PoolID, list[int]]]


def find_reach(
    slices: Sequence[ResourceSlice], nodes: NodeIndex, features: Features
) -> SliceReach:
    """Sort the slices by the nodes that they matter to."""
    everywhere: dict[PoolID, list[int]] = defaultdict(list)
    by_node: list[dict[PoolID, list[int]]] = [{} for _ in nodes.everywhere]
    for index, slice_ in enumerate(slices):
        partitionable = (
            slice_.spec.per_device_node_selection or slice_.spec.shared_counters
        )
        if partitionable and not features.PartitionableDevices:
            continue
        if slice_.spec.shared_counters:
            everywhere[slice_.pool_id].append(index)
        else:
            for node in nodes.of_slice(slice_):
                by_node[node].setdefault(slice_.pool_id, []).append(index)
    return SliceReach(everywhere, by_node)
