"""The problem: demands, nodes, devices, counters and usage, numbered.

Which device may serve which alternative is asked through `Eligibility`: first the question, and answers made out of
other answers; then the problem that holds it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from dralloc.objects.errors import AllocationError
from dralloc.objects.features import ALL_FEATURES, Features
from dralloc.objects.names import PoolID
from dralloc.objects.notebook import Brief
from dralloc.objects.user_rules import Budget
from dralloc.problem.indices import (
    AlternativeIndex,
    CounterIndex,
    DemandIndex,
    DeviceIndex,
    IndexT,
    NodeIndex,
    Numbered,
    SlotIndex,
    grouped,
    indices,
    numbered,
)
from dralloc.problem.requests import Charge, Demand, ParentGroup
from dralloc.problem.supply import NODE_DRIVER, Counter, Device, Node, Usage

__all__ = [
    "Eligibility",
    "EligibilityTable",
    "Overlay",
    "Problem",
    "Remembered",
    "Renumbered",
    "renumbered",
]

# ----------------------------------------------------------------------------
# Which device may serve which alternative: the question, and answers made out of
# other answers.


class Eligibility(Protocol):
    """Decides which device may serve which alternative, whatever is in use. Answers are worked out once, when asked."""

    def selects(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool | AllocationError:
        """Whether class and request selectors accept the device; a CEL failure is the error that upstream raises."""

    def admits(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        """Whether the device lets the alternative in: its taints are tolerated, and no feature that it needs is off."""

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        """Return the charge of an allocation; None if the device lacks a requested capacity or a policy forbids it."""

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        """A canonical key: alternatives with equal keys get the same answers for every device, errors' names aside."""

    def device_key(self, device: DeviceIndex) -> Hashable:
        """A canonical key: devices with equal keys get the same answers for every alternative, errors' names aside."""


@dataclass(eq=False)
class Overlay:
    """The answers of another eligibility; what extends this says where they differ."""

    base: Eligibility

    def selects(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool | AllocationError:
        """As in `Eligibility`."""
        return self.base.selects(alternative, device)

    def admits(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        """As in `Eligibility`."""
        return self.base.admits(alternative, device)

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        """As in `Eligibility`."""
        return self.base.charge(alternative, device)

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        """As in `Eligibility`."""
        return self.base.request_key(alternative)

    def device_key(self, device: DeviceIndex) -> Hashable:
        """As in `Eligibility`."""
        return self.base.device_key(device)


@dataclass(eq=False)
class Renumbered(Overlay):
    """The answers about devices and counters that have other numbers.

    ``devices``: by new number the old one. ``counters``: by old number the new one.
    """

    devices: Sequence[DeviceIndex]
    counters: Mapping[CounterIndex, CounterIndex]

    def selects(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool | AllocationError:
        """As in `Eligibility`."""
        return self.base.selects(alternative, self.devices[device])

    def admits(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        """As in `Eligibility`."""
        return self.base.admits(alternative, self.devices[device])

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        """As in `Eligibility`."""
        charge = self.base.charge(alternative, self.devices[device])
        if charge is None or not charge.counters:
            return charge
        return replace(
            charge, counters=renumbered(charge.counters, self.counters)
        )

    def device_key(self, device: DeviceIndex) -> Hashable:
        """As in `Eligibility`."""
        return self.base.device_key(self.devices[device])


class Remembered(Overlay):
    """The answers of another eligibility, with the charges kept for repeated questions."""

    def __init__(self, base: Eligibility) -> None:
        super().__init__(base)
        self._charges: dict[
            tuple[AlternativeIndex, DeviceIndex], Charge | None
        ] = {}

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        """As in `Eligibility`."""
        question = alternative, device
        if question not in self._charges:
            self._charges[question] = self.base.charge(alternative, device)
        return self._charges[question]


@dataclass(frozen=True)
class EligibilityTable:
    """An eligibility that is known beforehand, and can be sent to another process: what is not listed is refused."""

    charges: Mapping[tuple[AlternativeIndex, DeviceIndex], Charge]

    def selects(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        """As in `Eligibility`."""
        return (alternative, device) in self.charges

    admits = selects

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        """As in `Eligibility`."""
        return self.charges.get((alternative, device))

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        """As in `Eligibility`."""
        return alternative

    def device_key(self, device: DeviceIndex) -> Hashable:
        """As in `Eligibility`."""
        return device


def renumbered(
    amounts: Sequence[tuple[IndexT, int]], counters: Mapping[IndexT, IndexT]
) -> tuple[tuple[IndexT, int], ...]:
    """Amounts of counters that have other numbers."""
    return tuple([(counters[counter], amount) for counter, amount in amounts])


@dataclass(frozen=True, repr=False)
class Problem(Brief):
    """The data that both solvers need, and all that they need.

    Demands and nodes are in the order of first fit, which does not look at budgets.
    """

    demands: Numbered[DemandIndex, Demand]
    nodes: Numbered[NodeIndex, Node]
    devices: Numbered[DeviceIndex, Device]
    counters: Numbered[CounterIndex, Counter]
    usage: Usage
    eligibility: Eligibility
    features: Features = ALL_FEATURES
    budgets: tuple[Budget, ...] = ()

    def candidate_nodes(self, demand: Demand) -> tuple[NodeIndex, ...]:
        """Indices of the nodes that the demand may go to, in search order."""
        return self.all_nodes if demand.nodes is None else demand.nodes

    def children(
        self, group: ParentGroup, members: Iterable[DemandIndex]
    ) -> Mapping[ParentGroup | str, Sequence[DemandIndex]]:
        """The children of a group, groups or gangs by name, each with its demands, given all of the group's."""

        def child(demand: Demand) -> ParentGroup | str:
            path = list(demand.parent.upwards()) if demand.parent else []
            position = path.index(group)
            return path[position - 1] if position else demand.gang

        return grouped(
            (child(self.demands[member]), member) for member in members
        )

    @cached_property
    def all_nodes(self) -> tuple[NodeIndex, ...]:
        """Indices of all nodes."""
        return tuple(indices(self.nodes))

    def on_node(self, device: DeviceIndex, node: NodeIndex) -> bool:
        """Whether a device that the slices offer to the node is reachable from it by its own node selection."""
        nodes = self.devices[device].nodes
        return nodes is None or node in nodes

    def usable_from(
        self, device: DeviceIndex, home: NodeIndex, node: NodeIndex
    ) -> bool:
        """Whether an allocated device can be used from a node: its home always, others if they reach the device."""
        return node == home or node in self.reaching(device)

    def reaching(self, device: DeviceIndex) -> frozenset[NodeIndex]:
        """Indices of the nodes that can use the device when it is allocated, whatever its home is."""
        if device not in self._reaching:
            nodes: list[NodeIndex] = []
            if not self.devices[device].binds_to_node:
                for devices, seeing in self._accesses[
                    self.devices[device].id.pool_id
                ]:
                    if device in devices:
                        nodes += seeing
            self._reaching[device] = frozenset(
                node for node in nodes if self.on_node(device, node)
            )
        return self._reaching[device]

    def seeing(self, pool: PoolID) -> Iterator[NodeIndex]:
        """Indices of the nodes to which slices offer devices of the pool."""
        for _, nodes in self._accesses[pool]:
            yield from nodes

    @cached_property
    def _reaching(self) -> dict[DeviceIndex, frozenset[NodeIndex]]:
        # Filled by `reaching`. It is no field: whether problems are equal does not depend on it.
        return {}

    @cached_property
    def _accesses(
        self,
    ) -> Mapping[
        PoolID, Sequence[tuple[tuple[DeviceIndex, ...], list[NodeIndex]]]
    ]:
        """Return, for each pool the devices that it offers, with the nodes that it offers them to."""
        offers: dict[
            PoolID,
            dict[int, tuple[tuple[DeviceIndex, ...], list[NodeIndex]]],
        ]
        offers = defaultdict(dict)
        for node_index, node in numbered(self.nodes):
            for pool in node.pools:
                # Nodes that see the same have the same object, so its identity tells as much as
                # its devices, of which there can be thousands.
                offer = offers[pool.id].setdefault(
                    id(pool.devices), (pool.devices, [])
                )
                offer[1].append(node_index)
        accesses = {
            pool: tuple(by_id.values()) for pool, by_id in offers.items()
        }
        return defaultdict(tuple, accesses)

    @cached_property
    def several_versions(self) -> frozenset[SlotIndex]:
        """The slots with more than one device behind them: those of pools that are being updated."""
        # Nearly always so, and far cheaper to see than to group a million devices by
        # slot.
        if len({device.slot for device in self.devices}) == len(self.devices):
            return frozenset()
        return frozenset(
            slot for slot, indices in self.versions.items() if len(indices) > 1
        )

    @cached_property
    def opened_freely(self) -> frozenset[SlotIndex]:
        """Slots with counters or compatibility groups that a share of some version opens without a look at these.

        Shares of other versions ask for none once the slot is open (upstream behaviour).
        """
        slots: set[SlotIndex] = set()
        for slot in self.several_versions:
            versions = [self.devices[index] for index in self.versions[slot]]
            shareable = [device for device in versions if device.shareable]
            # Some versions are opened freely, and some are not.
            if len({device.is_opened_freely for device in shareable}) > 1:
                slots.add(slot)
        return frozenset(slots)

    @cached_property
    def is_additive(self) -> bool:
        """Whether sums of amounts decide everywhere what may be in use together (see `Device.is_additive`)."""
        return all(device.is_additive for device in self.devices)

    @cached_property
    def has_scopes(self) -> bool:
        """Whether any constraint spans several claims."""
        for demand in self.demands:
            for claim in demand.claims:
                for constraint in claim.constraints:
                    if constraint.scope:
                        return True
        return False

    @cached_property
    def footprint_counters(self) -> frozenset[CounterIndex]:
        """The counters of what devices take of nodes (see `dralloc.problem.node_footprints`)."""
        return frozenset(
            counter_index
            for counter_index, counter in numbered(self.counters)
            if counter.id.driver == NODE_DRIVER
        )

    @cached_property
    def pod_counters(self) -> tuple[CounterIndex, ...]:
        """Of these, those of what requests of pods as a whole leave for devices: no node has them."""
        return tuple(
            counter
            for counter in sorted(self.footprint_counters)
            if not self.counters[counter].id.pool
        )

    @cached_property
    def counters_of(self) -> Mapping[int, Sequence[CounterIndex]]:
        """The counters of each group of slices, by index."""
        return grouped(
            (counter.group, counter_index)
            for counter_index, counter in numbered(self.counters)
        )

    @cached_property
    def counters_by_name(
        self,
    ) -> Mapping[tuple[str, str], Sequence[CounterIndex]]:
        """The counters of each driver and name, by index."""
        return grouped(
            ((counter.id.driver, counter.id.counter), counter_index)
            for counter_index, counter in numbered(self.counters)
        )

    @cached_property
    def groups_in_use(self) -> Mapping[int, Sequence[frozenset[str]]]:
        """By counter set, the compatibility groups of everything that is in use there (KEP-5963)."""
        usage = self.usage
        groups_by_set = {
            counter_set: [groups]
            for counter_set, groups in usage.compatibility.items()
        }
        for device in () if self.is_additive else self.devices:
            if device.slot in usage.held or device.slot in usage.shares:
                for counter_set, groups in device.compatibility:
                    groups_by_set.setdefault(counter_set, []).append(groups)
        return groups_by_set

    def usage_of(self, slots: Set[SlotIndex]) -> Usage:
        """Return the usage of these slots, for a part of the problem with the devices behind them."""
        usage = self.usage
        return Usage(
            usage.held & slots,
            {slot: usage.shares[slot] for slot in usage.shares.keys() & slots},
            {
                slot: usage.consumed[slot]
                for slot in usage.consumed.keys() & slots
            },
            {
                counter_set: frozenset.intersection(*groups)
                for counter_set, groups in self.groups_in_use.items()
            },
        )

    @cached_property
    def versions(self) -> Mapping[SlotIndex, tuple[DeviceIndex, ...]]:
        """The devices behind each slot: more than one while a pool is being updated."""
        slots = grouped(
            (device.slot, index) for index, device in numbered(self.devices)
        )
        return {slot: tuple(indices) for slot, indices in slots.items()}
