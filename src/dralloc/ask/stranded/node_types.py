"""Kinds of nodes: by instance type where that is known, otherwise by what they have."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import cache
from typing import Final

from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.names import PoolID
from dralloc.problem import Device, Problem

__all__ = ["node_type_of"]

_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"


def node_type_of(compiled: CompiledCluster) -> Callable[[PoolID], str]:
    """Tells the kind of the node that reaches a pool.

    Nodes without a label for their instance type are of one kind if they have as many devices with equal capacities
    and counters; it is called after the first of them that is asked about.
    """
    problem = compiled.problem
    labels = {
        node.metadata.name: node.metadata.labels for node in compiled.cluster.nodes
    }
    reached_by: dict[PoolID, set[int]] = defaultdict(set)
    for number, node in enumerate(problem.nodes):
        for pool in node.pools:
            if pool.devices:
                reached_by[pool.id].add(number)
    first: dict[Hashable, str] = {}

    @cache
    def type_of(number: int) -> str:
        node = problem.nodes[number]
        if label := labels[node.name].get(_INSTANCE_TYPE):
            return label
        published = Tally(
            _published(problem, problem.devices[device]) for device in node.devices()
        )
        return first.setdefault(frozenset(published.items()), f"like {node.name}")

    return lambda pool: (
        type_of(*reached_by[pool]) if len(reached_by[pool]) == 1 else "several nodes"
    )


def _published(problem: Problem, device: Device) -> Hashable:
    draws = tuple(
        (problem.counters[number].id.counter, amount)
        for number, amount in device.consumes
    )
    capacity = tuple((name, each.total) for name, each in device.capacity.items())
    return device.id.driver, device.shareable, capacity, draws
