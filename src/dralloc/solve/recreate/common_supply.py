"""What several nodes can use, for a search that goes by nodes."""

from __future__ import annotations

from networkx.utils import UnionFind

from dralloc.problem import NodeIndex, Problem, SlotIndex
from dralloc.problem.common import common_devices

__all__ = ["CommonSupply"]


class CommonSupply:
    """What several nodes can use.

    Attributes
    ----------
    slots
        Devices that several nodes can use, or that draw on the same counters as such devices.
    counters
        Those of the groups of these devices: whoever uses a device on one node may draw on the counters of another
        one's.
    tied_nodes
        The nodes, in groups that have nothing in common.
    """

    def __init__(self, problem: Problem) -> None:
        common = common_devices(problem)
        self.slots = frozenset[SlotIndex]().union(
            *(shared.slots for shared in common)
        )
        groups = {
            problem.devices[device].group
            for shared in common
            for device in shared.devices
        }
        self.counters = {
            counter
            for group in groups
            for counter in problem.counters_of.get(group, ())
        }
        forest: UnionFind[NodeIndex] = UnionFind(problem.all_nodes)
        for shared in common:
            forest.union(*shared.nodes)
        self.tied_nodes: list[set[NodeIndex]] = list(forest.to_sets())

    @property
    def is_empty(self) -> bool:
        """Whether no node has anything in common with others."""
        return not self.slots
