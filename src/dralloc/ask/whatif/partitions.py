"""Partitionable devices: the partitions that can exist together, and the demands that these serve.

A unit is what shares counters: a GPU as a whole and in all its parts (KEP-4815), or a device that shares none. A layout
is a set of partitions of a unit that its counters allow all at once, to which none can be added. Partitions that serve
the same demands are of one type, and layouts with as many of each type are one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from operator import ge
from typing import Final

from dralloc.objects.errors import DrallocError
from dralloc.problem import (
    Alternative,
    Charge,
    Demand,
    Device,
    DeviceIndex,
    NodeIndex,
    Problem,
    indices,
    numbered,
)
from dralloc.problem.equivalence import inventory_key
from dralloc.problem.ledger import Ledger
from dralloc.problem.problem import EligibilityTable
from dralloc.problem.subproblem import cut, separated

__all__ = [
    "Layout",
    "PartitionCatalog",
    "SingleRequest",
    "Unit",
    "read_single",
    "shared_device",
]

_MOST_STATES: Final = 200_000
"""More combinations of partitions are not listed."""

_SHARED: Final = (
    "can be shared; layouts are for devices that one claim has for itself"
)

_NOTHING: Final = Charge()

Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SingleRequest:
    """The only request of a demand: where it stands, and its alternatives, each for one device."""

    claim: int
    request: int
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Partitions that can exist together: how many of each type, and an example by places in the unit."""

    numbers: Numbers
    places: tuple[DeviceIndex, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """Devices that share counters and are of use to a demand, with their types; ``key`` is equal for equal units."""

    devices: tuple[DeviceIndex, ...]
    types: tuple[int, ...]
    key: Hashable


def read_single(demand: Demand) -> SingleRequest | None:
    """The request of a demand for one device; None if it asks for something else."""
    requests = [
        SingleRequest(claim_index, request_index, request.alternatives)
        for claim_index, claim in enumerate(demand.claims)
        for request_index, request in enumerate(claim.requests)
    ]
    if len(requests) != 1:
        return None
    for alternative in requests[0].alternatives:
        if alternative.count != 1 or alternative.admin:
            return None
    return requests[0]


def shared_device(problem: Problem, demand: Demand) -> str:
    """Return why the demand is none for partitions: a device for it can be shared; empty if there is none such."""
    offers, seen = problem.eligibility, set[Hashable]()
    for index, device in numbered(problem.devices):
        key = offers.device_key(index), device.shareable
        if key in seen:
            continue
        seen.add(key)
        for alternative in demand.alternatives():
            if offers.selects(
                alternative.index, index
            ) is True and offers.admits(alternative.index, index):
                charge = offers.charge(alternative.index, index)
                if charge is not None and _can_be_shared(device, charge):
                    return f"device {device.id}: {_SHARED}"
    return ""


def _can_be_shared(device: Device, charge: Charge) -> bool:
    return device.shareable or bool(charge.capacity or charge.counters)


class PartitionCatalog:
    """The units of a problem, and their layouts.

    Parameters
    ----------
    problem
        Nothing of it is in use.
    demands
        Who is to be served; each asks for one device.

    Raises
    ------
    DrallocError
        Some partition can be shared, or what it takes depends on who asks.
    """

    def __init__(self, problem: Problem, demands: Sequence[Demand]) -> None:
        self.problem = problem
        self.demands = demands
        self.singles = list(filter(None, map(read_single, demands)))
        self.homes: dict[DeviceIndex, list[NodeIndex]] = {}
        """By device the nodes that reach it."""
        for node_index, node in numbered(problem.nodes):
            for device in node.devices():
                if problem.on_node(device, node_index):
                    self.homes.setdefault(device, []).append(node_index)
        self.types: dict[frozenset[int], int] = {}
        self.units = tuple(self._units())

    def pick(
        self, demand: int, device: DeviceIndex
    ) -> tuple[NodeIndex, int] | None:
        """The node and the first alternative with which a demand can have a device; None if it cannot."""
        offers, allowed = self.problem.eligibility, self.demands[demand].nodes
        # Nothing is in use, so the first node will do from which the demand may reach the device.
        home = next(
            (
                node
                for node in self.homes[device]
                if allowed is None or node in allowed
            ),
            None,
        )
        if home is None or self.demands[demand].is_defective:
            return None
        for rank, alternative in enumerate(self.singles[demand].alternatives):
            index = alternative.index
            if offers.selects(index, device) is True and offers.admits(
                index, device
            ):
                charge = offers.charge(index, device)
                # A single device is compared with no other: constraints only ask it to have the attribute.
                if charge is not None and self._has_compared(
                    demand, alternative, device
                ):
                    self._refuse_sharing(device, charge)
                    return home, rank
        return None

    def _has_compared(
        self, demand: int, alternative: Alternative, device: DeviceIndex
    ) -> bool:
        """Whether the device has the attributes that constraints compare."""
        constraints = (
            self.demands[demand].claims[self.singles[demand].claim].constraints
        )
        attributes = self.problem.devices[device].attributes
        return all(
            constraint.compared(alternative.name) in attributes
            for constraint in constraints
            if constraint.covers(alternative.name)
        )

    def _refuse_sharing(self, index: DeviceIndex, charge: Charge) -> None:
        device = self.problem.devices[index]
        if _can_be_shared(device, charge):
            raise DrallocError(f"device {device.id}: {_SHARED}")

    def _units(self) -> Iterator[Unit]:
        types: dict[DeviceIndex, int] = {}
        for device in self.homes:
            device_type = self._type(device)
            if device_type is not None:
                types[device] = device_type
        for members in separated(self.problem, types):
            devices = tuple(sorted(members))
            unit_types = tuple(types[device] for device in devices)
            key = unit_types, inventory_key(self._part(devices))
            yield Unit(devices, unit_types, key)

    def _type(self, device: DeviceIndex) -> int | None:
        serves = frozenset(
            demand
            for demand in range(len(self.demands))
            if self.pick(demand, device)
        )
        return (
            self.types.setdefault(serves, len(self.types)) if serves else None
        )

    def _part(self, devices: Sequence[DeviceIndex]) -> Problem:
        """The devices of a unit as an inventory of their own."""
        drawn = dict.fromkeys(
            counter
            for device in devices
            for counter, _ in self.problem.devices[device].consumes
        )
        return cut(
            self.problem,
            (),
            devices=devices,
            counters=drawn,
            eligibility=EligibilityTable({}),
        ).problem

    def layouts(self, unit: Unit) -> tuple[Layout, ...]:
        """Return all layouts of a unit.

        Raises
        ------
        DrallocError
            They are too many.
        """
        part = self._part(unit.devices)
        ledger = Ledger(part)
        nothing = (0,) * len(self.types)
        # Sets with as many partitions of each type that leave the same to others are one.
        sets: dict[tuple[Numbers, Hashable], tuple[DeviceIndex, ...]] = {
            (nothing, _state_with(ledger, ())): ()
        }
        for device, type_ in zip(
            indices(part.devices), unit.types, strict=True
        ):
            for (counts, _), devices in list(sets.items()):
                after = _state_with(ledger, (*devices, device))
                if after is not None:
                    with_it = (
                        *counts[:type_],
                        counts[type_] + 1,
                        *counts[type_ + 1 :],
                    )
                    sets.setdefault((with_it, after), (*devices, device))
            if len(sets) > _MOST_STATES:
                name = self.problem.devices[unit.devices[0]].id
                raise DrallocError(
                    f"device {name}: more than {_MOST_STATES} sets of its partitions can exist together"
                )
        examples: dict[Numbers, tuple[DeviceIndex, ...]] = {}
        for (counts, _), devices in sets.items():
            examples.setdefault(counts, devices)
        return tuple(
            Layout(counts, examples[counts])
            for counts in _largest(list(examples))
        )


def _state_with(
    ledger: Ledger, device_indices: Sequence[DeviceIndex]
) -> Hashable | None:
    """Return all that matters for others once these devices are in use; None if the last of them does not fit.

    Afterwards the ledger is as before.
    """
    devices = [ledger.problem.devices[index] for index in device_indices]
    entered = []
    state = None
    for device in devices:
        if device is devices[-1] and not ledger.fits(device, _NOTHING):
            break
        ledger.enter(device, _NOTHING, share=False)
        entered.append(device)
    else:
        held_versions = frozenset(ledger.held & ledger.problem.several_versions)
        state = (
            tuple(ledger.free),
            held_versions,
            frozenset(ledger.common_groups().items()),
        )
    for device in entered:
        ledger.revoke(device, _NOTHING, share=False)
    return state


def _largest(vectors: Sequence[Numbers]) -> list[Numbers]:
    """Return those that no other exceeds."""
    largest: list[Numbers] = []
    # What exceeds a vector has a larger sum, and so comes before it.
    for vector in sorted(vectors, key=sum, reverse=True):
        if not any(_covers(larger, vector) for larger in largest):
            largest.append(vector)
    return largest


def _covers(larger: Numbers, vector: Numbers) -> bool:
    return all(map(ge, larger, vector))
