"""Devices that several nodes can use, by the nodes that can use them.

Most devices are of one node. Others are attached to a network, to a rack, or to all nodes. Whoever divides a problem by
nodes has to decide who may use these: see `common_devices`.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Sequence,
    Set,
)
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from dralloc.objects.names import PoolID
from dralloc.problem.indices import (
    DeviceIndex,
    NodeIndex,
    SlotIndex,
    grouped,
    numbered,
)
from dralloc.problem.problem import Problem
from dralloc.problem.supply import NODE_DRIVER

__all__ = ["CommonDevices", "common_devices", "has_no_others"]


@dataclass(frozen=True, eq=False)
class CommonDevices:
    """Devices that the same nodes can use; compared by identity.

    Parameters
    ----------
    nodes
        More than one.
    supplies
        The devices, in supplies that have nothing to do with each other: what is taken of one leaves the others as they
        are. Devices of a group of slices with counters are one supply, and so are those of a pool of which several
        generations are published; any other device is one by itself.
    devices
        All of them.
    """

    nodes: frozenset[NodeIndex]
    supplies: Sequence[frozenset[SlotIndex]]
    devices: Sequence[DeviceIndex]

    @cached_property
    def slots(self) -> frozenset[SlotIndex]:
        """Those of all supplies."""
        return frozenset[SlotIndex]().union(*self.supplies)


class _View(NamedTuple):
    """What some nodes can use of a pool."""

    devices: Sequence[DeviceIndex]
    nodes: Collection[NodeIndex]


def common_devices(problem: Problem) -> list[CommonDevices]:
    """Return all devices that several nodes can use, by the nodes that can use them."""
    views = _views(problem)
    supply_of = _supply_names(problem)
    devices_of: dict[Hashable, dict[DeviceIndex, None]] = {}
    views_of: dict[Hashable, dict[int, None]] = {}
    for view_index, view in enumerate(views):
        for device in view.devices:
            supply = supply_of(device)
            devices_of.setdefault(supply, {})[device] = None
            views_of.setdefault(supply, {})[view_index] = None
    # Most devices of a pool are seen together: their nodes are gathered once.
    supplies_by_views = grouped(
        (tuple(view_indices), supply)
        for supply, view_indices in views_of.items()
    )
    supplies_by_nodes: dict[frozenset[NodeIndex], list[Hashable]] = {}
    for view_indices, supplies in supplies_by_views.items():
        viewers = [views[view_index].nodes for view_index in view_indices]
        nodes = frozenset[NodeIndex]().union(*viewers)
        if len(nodes) > 1:
            supplies_by_nodes.setdefault(nodes, []).extend(supplies)
    common = []
    for nodes, supplies in supplies_by_nodes.items():
        devices = [devices_of[supply] for supply in supplies]
        common.append(_common(problem, nodes, devices))
    return common


def has_no_others(
    problem: Problem, node: NodeIndex, slots: Set[SlotIndex]
) -> bool:
    """Whether a node can use no devices but these, beside that which stands for the node itself."""
    devices = [
        device
        for pool in problem.nodes[node].pools
        if pool.id.driver != NODE_DRIVER
        for device in pool.devices
    ]
    return all(problem.devices[device].slot in slots for device in devices)


def _views(problem: Problem) -> list[_View]:
    """Return what nodes can use of the pools that more than one of them can use anything of."""
    users = Tally(
        pool.id for node in problem.nodes for pool in node.pools if pool.devices
    )
    viewers: dict[Sequence[DeviceIndex], list[NodeIndex]] = {}
    for index, node in numbered(problem.nodes):
        for pool in node.pools:
            if pool.devices and users[pool.id] > 1:
                viewers.setdefault(pool.devices, []).append(index)
    return [_View(devices, nodes) for devices, nodes in viewers.items()]


def _supply_names(problem: Problem) -> Callable[[DeviceIndex], Hashable]:
    """Return what names the supply to which a device belongs."""
    devices = problem.devices
    updated = {
        PoolID(*devices[version].id[:2])
        for slot in problem.several_versions
        for version in problem.versions[slot]
    }

    def supply_of(index: DeviceIndex) -> Hashable:
        device = devices[index]
        pool = PoolID(*device.id[:2])
        if pool in updated:
            return pool
        if device.group in problem.counters_of:
            return "group", device.group
        return "slot", device.slot

    return supply_of


def _common(
    problem: Problem,
    nodes: frozenset[NodeIndex],
    supplies: Sequence[Collection[DeviceIndex]],
) -> CommonDevices:
    def slots_of(supply: Iterable[DeviceIndex]) -> frozenset[SlotIndex]:
        return frozenset(problem.devices[device].slot for device in supply)

    devices = list(chain.from_iterable(supplies))
    return CommonDevices(nodes, list(map(slots_of, supplies)), devices)
