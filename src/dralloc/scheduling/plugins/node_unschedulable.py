"""Nodes that are cordoned. Source: ``framework/plugins/nodeunschedulable/node_unschedulable.go``."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from dralloc.api.tolerating import CORDON_TAINT, all_tolerated
from dralloc.scheduling.cycle import Cycle
from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins.plugin import Check, Plugin, Rejection

__all__ = ["NODE_UNSCHEDULABLE"]

_CORDONED: Final = Rejection(("node(s) were unschedulable",))


def _filter(cycle: Cycle) -> Check | None:
    if all_tolerated((CORDON_TAINT,), cycle.pod.kind.spec.tolerations):
        return None
    return _check


def _check(node: NodeInfo) -> Rejection | None:
    return _CORDONED if node.node.spec.unschedulable else None


NODE_UNSCHEDULABLE: Final = Plugin("NodeUnschedulable", _filter, view=attrgetter("place"))
