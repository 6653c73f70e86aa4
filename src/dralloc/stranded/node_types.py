"""Kinds of nodes: by instance type where that is known, otherwise by what they have."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable
from typing import Final

from dralloc.compiler import CompiledCluster
from dralloc.names import PoolID
from dralloc.problem import Device, Problem

__all__ = ["SEVERAL", "NodeTypes"]

SEVERAL: Final = "several nodes"
"""What stands in place of a node's kind where several nodes reach a pool."""

_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"


class NodeTypes:
    """Tells the kind of node of each pool.

    Nodes without a label for their instance type are of one kind if they have as many devices with equal capacities
    and counters; it is called after the first of them.
    """

    def __init__(self, compiled: CompiledCluster) -> None:
        self._problem: Problem = compiled.problem
        self._labels = {node.metadata.name: node.metadata.labels for node in compiled.cluster.nodes}
        self._first: dict[Hashable, str] = {}
        self._of_pool: dict[PoolID, set[int]] = {}
        self._kinds: dict[int, str] = {}
        for number, node in enumerate(self._problem.nodes):
            for pool in node.pools:
                if pool.devices:
                    self._of_pool.setdefault(pool.id, set()).add(number)

    def of(self, pool: PoolID) -> str:
        """The kind of the node that reaches a pool."""
        nodes = self._of_pool.get(pool, set())
        if len(nodes) != 1:
            return SEVERAL
        (number,) = nodes
        if number not in self._kinds:
            self._kinds[number] = self._kind(number)
        return self._kinds[number]

    def _kind(self, number: int) -> str:
        node = self._problem.nodes[number]
        label = self._labels[node.name].get(_INSTANCE_TYPE)
        if label:
            return label
        devices = Tally(self._published(self._problem.devices[device]) for device in node.devices())
        return self._first.setdefault(frozenset(devices.items()), f"like {node.name}")

    def _published(self, device: Device) -> Hashable:
        counters = self._problem.counters
        draws = tuple((counters[number].id.counter, amount) for number, amount in device.consumes)
        capacity = tuple((name, each.total) for name, each in device.capacity.items())
        return device.id.driver, device.shareable, capacity, draws
