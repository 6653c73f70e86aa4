"""The nodes that slices name, where no Node was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dralloc.api import Node, ObjectMeta, ResourceSlice
from dralloc.api.node_names import HOSTNAME_LABEL, named_nodes

__all__ = ["SYNTHETIC_NODE", "assumed_nodes"]

SYNTHETIC_NODE: Final = "node"
"""Name of the only node when neither nodes are given nor slices name any."""


def assumed_nodes(slices: Sequence[ResourceSlice]) -> tuple[tuple[Node, ...], str]:
    """The nodes to go by, and the remark to make about it."""
    named = named_nodes(slices)
    if named:
        return named, f"no Node was given: assuming the {len(named)} that slices name"
    if any(one.spec.all_nodes or any(device.all_nodes for device in one.spec.devices) for one in slices):
        only = Node(metadata=ObjectMeta(name=SYNTHETIC_NODE, labels={HOSTNAME_LABEL: SYNTHETIC_NODE}))
        return (only,), f'no Node was given: assuming one, "{SYNTHETIC_NODE}"'
    return (), "no Node was given, and slices name none: nothing can be placed"
