"""Components of nodes, up to names: devices connected by common counters, or one device by itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from dralloc.problem import (
    AlternativeIndex,
    CounterIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
)
from dralloc.problem.equivalence import device_traits

__all__ = ["NodeComponent", "NodeComponents"]


@dataclass(frozen=True, slots=True)
class NodeComponent:
    """A part of a node: a GPU with its partitions, a network adapter, a host.

    Parameters
    ----------
    key
        Equal for components that can be exchanged as long as they are in the same state, as their devices are equal one
        by one (see `dralloc.problem.equivalence.device_traits`).
    devices
        Those that the node reaches, in search order.
    counters
        All that its devices can consume.
    groups
        The groups whose overdrawn counters close some of its devices.
    counter_sets
        The counter sets on which some of its devices need compatibility groups in common with what is in use.
    """

    key: int
    devices: tuple[DeviceIndex, ...]
    counters: tuple[CounterIndex, ...]
    groups: tuple[int, ...]
    counter_sets: tuple[int, ...]


class NodeComponents:
    """Takes nodes apart."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._keys: dict[Hashable, int] = {}
        self._sets: dict[Hashable, int] = {}
        self._set_of = [
            self._sets.setdefault(counter.id[:3], len(self._sets))
            for counter in problem.counters
        ]
        # One alternative for each key: the others are charged the same.
        self._representatives: dict[Hashable, AlternativeIndex] = {}
        for demand in problem.demands:
            for alternative in demand.alternatives():
                key = problem.eligibility.request_key(alternative.index)
                self._representatives[key] = alternative.index
        self._by_request: dict[Hashable, tuple[CounterIndex, ...]] = {}

    def on(self, node: NodeIndex) -> tuple[NodeComponent, ...]:
        """The components of a node."""
        owners: dict[Hashable, list[DeviceIndex]] = {}
        for device in self._problem.nodes[node].devices():
            if not self._problem.on_node(device, node):
                continue
            first_tie, *more_ties = dict.fromkeys(self._ties(device))
            component = owners.setdefault(first_tie, [])
            for tie in more_ties:
                _join(owners, tie, component)
            component.append(device)
        listed = {id(members): sorted(members) for members in owners.values()}
        return tuple(
            self._component(members) for members in sorted(listed.values())
        )

    def _ties(self, device: DeviceIndex) -> Iterator[Hashable]:
        """Yield the resources that tie a device to others: counter sets, or nothing but itself."""
        charged = self._charged_by_request(device)
        by_request = [("counter", counter) for counter in charged]
        for sort, index in (
            *by_request,
            *self._problem.devices[device].resources,
        ):
            if sort == "counter":
                yield "published set", self._set_of[index]
            else:
                yield sort, index

    def _counters(self, device: DeviceIndex) -> list[CounterIndex]:
        fixed = [
            counter for counter, _ in self._problem.devices[device].consumes
        ]
        return [*fixed, *self._charged_by_request(device)]

    def _charged_by_request(
        self, device: DeviceIndex
    ) -> tuple[CounterIndex, ...]:
        """The counters that some request makes the device consume (KEP-5941)."""
        device_key = self._problem.eligibility.device_key(device)
        if device_key not in self._by_request:
            counters: dict[CounterIndex, None] = {}
            for alternative in self._representatives.values():
                charge = self._problem.eligibility.charge(alternative, device)
                if charge is not None:
                    counters.update(
                        (counter, None) for counter, _ in charge.counters
                    )
            self._by_request[device_key] = tuple(counters)
        return self._by_request[device_key]

    def _component(self, members: Sequence[DeviceIndex]) -> NodeComponent:
        devices = self._problem.devices
        counters: dict[CounterIndex, None] = {}
        for device in members:
            counters.update(dict.fromkeys(self._counters(device)))
        # Counters by their order in the component, so that names do not matter.
        local_numbers: dict[tuple[str, int], int] = {
            ("counter", counter): position
            for position, counter in enumerate(counters)
        }

        def local_number(sort: str, index: int) -> int:
            return local_numbers.setdefault((sort, index), len(local_numbers))

        key = (
            tuple([self._traits(device, local_number) for device in members]),
            tuple(
                [self._problem.counters[counter].total for counter in counters]
            ),
        )
        groups = dict.fromkeys(
            devices[device].group
            for device in members
            if devices[device].consumes
        )
        counter_sets = dict.fromkeys(
            counter_set
            for device in members
            for counter_set, _ in devices[device].compatibility
        )
        key_number = self._keys.setdefault(key, len(self._keys))
        return NodeComponent(
            key_number,
            tuple(members),
            tuple(counters),
            tuple(groups),
            tuple(counter_sets),
        )

    def _traits(
        self, index: DeviceIndex, number_of: Callable[[str, int], int]
    ) -> Hashable:
        """All that matters about a device and does not change."""
        device = self._problem.devices[index]
        return (
            self._problem.eligibility.device_key(index),
            device_traits(device, number_of),
            tuple(sorted(device.attributes.items()))
            if device.attributes
            else (),
            device.slot
            if device.slot in self._problem.several_versions
            else None,
        )


def _join(
    owners: dict[Hashable, list[DeviceIndex]],
    tie: Hashable,
    component: list[DeviceIndex],
) -> None:
    """Make the component the owner of the tie, with all that its owner had."""
    absorbed = owners.get(tie, component)
    if absorbed is not component:
        component += absorbed
        for owned_tie, members in owners.items():
            if members is absorbed:
                owners[owned_tie] = component
    owners[tie] = component
