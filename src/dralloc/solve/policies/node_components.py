"""The components of a node, up to names: devices connected by common counters, or one device by itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from dralloc.problem import Problem
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
    """

    key: int
    devices: tuple[int, ...]
    counters: tuple[int, ...]
    groups: tuple[int, ...]


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
        every = (
            alternative
            for demand in problem.demands
            for alternative in demand.alternatives()
        )
        self._representatives = {
            problem.eligibility.request_key(one.index): one.index for one in every
        }
        self._by_request: dict[Hashable, tuple[int, ...]] = {}

    def on(self, node: int) -> tuple[NodeComponent, ...]:
        """The components of a node."""
        owners: dict[Hashable, list[int]] = {}
        for device in self._problem.nodes[node].devices():
            if not self._problem.on_node(device, node):
                continue
            first, *others = dict.fromkeys(self._ties(device))
            component = owners.setdefault(first, [])
            for other in others:
                _join(owners, other, component)
            component.append(device)
        listed = {id(members): sorted(members) for members in owners.values()}
        return tuple(self._component(members) for members in sorted(listed.values()))

    def _ties(self, device: int) -> Iterator[Hashable]:
        """What a device has in common with others: counter sets, or nothing but itself."""
        by_request = (
            ("counter", counter) for counter in self._charged_by_request(device)
        )
        for sort, number in (*by_request, *self._problem.devices[device].resources):
            yield (
                ("published set", self._set_of[number])
                if sort == "counter"
                else (sort, number)
            )

    def _counters(self, device: int) -> list[int]:
        fixed = [counter for counter, _ in self._problem.devices[device].consumes]
        return [*fixed, *self._charged_by_request(device)]

    def _charged_by_request(self, device: int) -> tuple[int, ...]:
        """The counters that some request makes the device consume (KEP-5941)."""
        device_key = self._problem.eligibility.device_key(device)
        if device_key not in self._by_request:
            charges = (
                self._problem.eligibility.charge(one, device)
                for one in self._representatives.values()
            )
            found = (
                counter
                for charge in charges
                if charge is not None
                for counter, _ in charge.counters
            )
            self._by_request[device_key] = tuple(dict.fromkeys(found))
        return self._by_request[device_key]

    def _component(self, members: Sequence[int]) -> NodeComponent:
        devices = self._problem.devices
        counters = tuple(
            dict.fromkeys(
                counter for device in members for counter in self._counters(device)
            )
        )
        numbers = {
            ("counter", counter): number for number, counter in enumerate(counters)
        }

        def number(sort: str, index: int) -> int:
            return numbers.setdefault((sort, index), len(numbers))

        key = (
            tuple([self._traits(device, number) for device in members]),
            tuple([self._problem.counters[counter].total for counter in counters]),
        )
        groups = dict.fromkeys(
            devices[device].group for device in members if devices[device].consumes
        )
        return NodeComponent(
            self._keys.setdefault(key, len(self._keys)),
            tuple(members),
            counters,
            tuple(groups),
        )

    def _traits(self, index: int, number: Callable[[str, int], int]) -> Hashable:
        """All that matters about a device and does not change."""
        device = self._problem.devices[index]
        return (
            self._problem.eligibility.device_key(index),
            device_traits(device, number),
            tuple(sorted(device.attributes.items())) if device.attributes else (),
            device.slot if device.slot in self._problem.several_versions else None,
        )


def _join(
    owners: dict[Hashable, list[int]], tie: Hashable, component: list[int]
) -> None:
    """Make the component the owner of the tie, with all that its owner had."""
    absorbed = owners.get(tie, component)
    if absorbed is not component:
        component += absorbed
        owners.update(
            (each, component)
            for each, members in list(owners.items())
            if members is absorbed
        )
    owners[tie] = component
