"""The supply side of a problem: nodes with their pools, devices with counters and capacities, and usage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, TypeVar, dataclass_transform

from dralloc.objects.names import CounterID, DeviceID, PoolID
from dralloc.problem.indices import (
    CounterIndex,
    DeviceIndex,
    NodeIndex,
    SlotIndex,
)

__all__ = [
    "NODE_DRIVER",
    "NO_GROUPS",
    "Capacity",
    "Counter",
    "Device",
    "Node",
    "NodeFootprint",
    "PoolAccess",
    "PoolState",
    "Resource",
    "Scalar",
    "Usage",
    "record",
]

# ----------------------------------------------------------------------------
# Plain data of which there are a million.

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """A dataclass that is frozen for type checkers, and made in a quarter of the time of one that is really frozen.

    As such, it has a hash. Named tuples are made as fast, but reading their fields takes twice as long.
    """
    # Really frozen dataclasses set each field through object.__setattr__, which costs
    # most of the time that it takes to make them.
    return dataclass(slots=True, unsafe_hash=True)(cls)


NO_GROUPS: Final = ""
"""Stands for the compatibility group of devices that declare none."""

NODE_DRIVER: Final = "node.dralloc.dev"
"""The driver of synthetic devices and counters, which stand for what nodes have beside devices."""

Scalar = tuple[str, bool | int | str]
"""One attribute value with the name of its type, so that ``True``, ``1`` and ``"1"`` stay different."""


Resource = tuple[str, int]
"""Something that devices have in common, by sort and number: see `Device.resources`."""


@record
class Counter:
    """A shared counter as one set of slices publishes it.

    Parameters
    ----------
    id
        Its name. While a pool is being updated, two generations can publish a counter of the same name.
    total
        The published value, in nanos.
    free
        What allocated claims leave of it, in nanos; negative if they hold more than there is.
    group
        Index of the group of slices that publishes it. As long as one counter of a group is overdrawn, no device
        that consumes counters of the group can be allocated (upstream behaviour).
    """

    id: CounterID
    total: int
    free: int
    group: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """A capacity of a device. ``consumable`` is false for a capacity that allocations never use up."""

    name: str
    total: int
    consumable: bool = True


@dataclass(frozen=True, slots=True)
class NodeFootprint:
    """The amount of one resource that a device takes of the node where it is used (KEP-5517).

    Parameters
    ----------
    resource
        ``cpu``, ``memory``, ...
    capacity
        The capacity whose consumption counts; empty if each allocation takes the same.
    multiplier
        Nanos for each unit of the capacity, or for each allocation.
    per_pod, per_container
        Nanos for the pod that uses it, and for each of its containers that does.
    """

    resource: str
    capacity: str = ""
    multiplier: int = 0
    per_pod: int = 0
    per_container: int = 0

    @property
    def is_mapped(self) -> bool:
        """Whether the device stands for a part of the node: only one pod can use a claim with such a device."""
        return self.multiplier > 0


@record
class Device:
    """A device as one slice publishes it.

    Parameters
    ----------
    id
        Driver, pool and device name.
    slot
        Index of the physical device: the versions of one device in two generations of a pool share it.
    group
        Index of the group of slices that the device belongs to (see `Counter`).
    shareable
        Whether it allows multiple allocations (KEP-5075).
    capacity
        Its capacities by name.
    consumes
        Index of each counter that it consumes while it is in use, with the fixed amount in nanos (KEP-4815).
    attributes
        Values by qualified name, of the attributes that some constraint names: one for a scalar, any number for a
        list. Absent if the device lacks the attribute; empty if its type cannot be compared, in which case it agrees
        with no other device (and is different from comparable ones).
    nodes
        Indices of the nodes that reach it, where that is said per device; None if its slice says it.
    binds_to_node
        Whether, once allocated, only the node that it was allocated for can use it.
    compatibility
        For each counter set that this device consumes counters of and on which any device declares compatibility
        groups: the set's index, and this device's groups there. What is in use on a set must have a group in common
        (KEP-5963). Devices without groups are compatible among themselves: they are in the group `NO_GROUPS`.
    footprint
        What it takes of the node where it is used.
    """

    id: DeviceID
    slot: SlotIndex
    group: int
    shareable: bool
    capacity: Mapping[str, Capacity]
    consumes: tuple[tuple[CounterIndex, int], ...]
    attributes: Mapping[str, frozenset[Scalar]]
    nodes: frozenset[NodeIndex] | None
    binds_to_node: bool = False
    compatibility: tuple[tuple[int, frozenset[str]], ...] = ()
    footprint: tuple[NodeFootprint, ...] = ()

    @property
    def resources(self) -> Sequence[Resource]:
        """The resources that it shares with others while it is in use; devices without a common one never interfere.

        Beside these there are counters that are charged by request (see `dralloc.problem.Charge`).
        """
        # Lists, not generators: this is asked for every device of a cluster.
        counters = [("counter", counter) for counter, _ in self.consumes]
        return [
            *counters,
            *[
                ("counter set", counter_set)
                for counter_set, _ in self.compatibility
            ],
            ("slot", self.slot),
        ]

    @property
    def is_opened_freely(self) -> bool:
        """Whether neither counters nor compatibility groups have a say in its coming into use."""
        return not (self.consumes or self.compatibility)

    @property
    def is_additive(self) -> bool:
        """Whether sums of amounts decide what may be in use beside the device, and no compatibility groups."""
        return not self.compatibility

    def renumbered(
        self,
        number_of: Callable[[str, int], int],
        counters: Callable[[CounterIndex], CounterIndex],
        **changes: Any,
    ) -> Device:
        """The device in a problem with other numbers: of slots, groups and counter sets, and of counters."""
        return replace(
            self,
            slot=SlotIndex(number_of("slot", self.slot)),
            group=number_of("group", self.group),
            consumes=tuple(
                [
                    (counters(counter), amount)
                    for counter, amount in self.consumes
                ]
            ),
            compatibility=tuple(
                [
                    (number_of("counter set", counter_set), groups)
                    for counter_set, groups in self.compatibility
                ]
            ),
            **changes,
        )

    def without_groups(self) -> Device:
        """The device as if it had declared no groups on any counter set."""
        return replace(self, compatibility=())

    def groups_on(self, counter_set: int) -> frozenset[str]:
        """Its compatibility groups on a counter set that it draws on."""
        # Few devices are on more than two counter sets, so a mapping of its own would
        # not pay.
        return dict(self.compatibility)[counter_set]


class PoolState(Enum):
    """Whether a pool can be used from a node."""

    USABLE = "usable"
    INCOMPLETE = "incomplete"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class PoolAccess:
    """A pool as one node sees it: the devices to search, in order. Unusable pools have none."""

    id: PoolID
    state: PoolState
    devices: tuple[DeviceIndex, ...]
    reason: str = ""

    @property
    def is_of_node(self) -> bool:
        """Whether it holds what stands for the node itself (see `dralloc.problem.node_claims`)."""
        return self.id.driver == NODE_DRIVER


@dataclass(frozen=True, slots=True)
class Node:
    """A node with its pools in search order."""

    name: str
    pools: tuple[PoolAccess, ...]

    def devices(self) -> Iterator[DeviceIndex]:
        """Every device that the slices offer to this node, in search order."""
        for pool in self.pools:
            yield from pool.devices

    def pools_in(self, state: PoolState) -> Iterator[PoolAccess]:
        """The pools in that state, in search order."""
        return (pool for pool in self.pools if pool.state is state)


@dataclass(frozen=True, slots=True)
class Usage:
    """The holdings of allocated claims, by the device's slot.

    ``held``: devices that one claim has for itself. ``shares``: number of allocations of shareable devices.
    ``consumed``: amounts by capacity name on shareable devices, in nanos.
    ``compatibility``: by index of a counter set, the groups that devices in use there have in common which are not
    among those of the problem, because it is a part of another one (KEP-5963).
    """

    held: frozenset[SlotIndex]
    shares: Mapping[SlotIndex, int]
    consumed: Mapping[SlotIndex, Mapping[str, int]]
    compatibility: Mapping[int, frozenset[str]] = field(default_factory=dict)
