"""The usable devices: those that some demand class can still get, and what each of them can serve."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dralloc.objects.errors import AllocationError
from dralloc.problem import (
    Charge,
    CounterIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    numbered,
)
from dralloc.problem.ledger import Ledger
from dralloc.problem.problem import renumbered
from dralloc.solve.optimum.classes.demand_classes import DemandClasses
from dralloc.solve.optimum.classes.numbering import Listed
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Profile", "UsableDevices", "usable_devices"]

_NOTHING = Charge()

_Numbered = tuple[int, tuple[CounterIndex, ...]]
"""The number of a profile, and the counters that a device charges by it."""

_NONE: Final[_Numbered] = (-1, ())

Profile = tuple[tuple[int, Charge], ...]
"""The item types that a device can serve, with what each takes of it; counters by their position in `charged`.

So devices have one profile if they differ in nothing but which counters they charge by request: those of their own
nodes (KEP-5517), or of their own GPUs (KEP-5941).
"""


@dataclass(slots=True)
class UsableDevices:
    """The devices in the order in which nodes are searched.

    Parameters
    ----------
    profiles
        What devices can serve, each answer once.
    profile_of
        By device: the index of its profile; -1 if it can serve nothing.
    charged
        By device: the counters that its profile charges by request.
    nodes_of
        By device: the nodes that reach it.
    order
        The usable devices, in search order.
    failures
        Selectors that failed on a device, by message.
    """

    profiles: Listed[Profile] = field(default_factory=Listed)
    profile_of: list[int] = field(default_factory=list)
    charged: list[tuple[CounterIndex, ...]] = field(default_factory=list)
    nodes_of: list[tuple[NodeIndex, ...]] = field(default_factory=list)
    order: list[DeviceIndex] = field(default_factory=list)
    failures: dict[str, AllocationError] = field(default_factory=dict)

    def charges(self, device: DeviceIndex) -> Profile:
        """The item types that a device can serve, with what each takes of the problem's counters."""
        return _named(
            self.profiles[self.profile_of[device]], self.charged[device]
        )


def usable_devices(
    problem: Problem,
    demand_classes: DemandClasses,
    stop: Stop,
    *,
    strict_cel: bool = False,
) -> UsableDevices:
    """Find the usable devices.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set. Otherwise the device does not match.
    """
    return _UsabilityCheck(problem, demand_classes, strict_cel, stop).usable


class _UsabilityCheck:
    def __init__(
        self,
        problem: Problem,
        demand_classes: DemandClasses,
        strict_cel: bool,
        stop: Stop,
    ) -> None:
        self.problem = problem
        self.demand_classes = demand_classes
        self.types = demand_classes.types
        self.strict_cel = strict_cel
        self.ledger = Ledger(problem)
        self.narrows = any(
            item_type.attributes for item_type in demand_classes.types
        )
        self.by_key: dict[Hashable, _Numbered] = {}
        self.narrowed: dict[tuple[int, tuple[str, ...]], _Numbered] = {}
        # By profile, whether it charges anything: then what is free of each device decides which types remain.
        self.charges: list[bool] = []
        devices = len(problem.devices)
        self.usable = UsableDevices(
            profile_of=[-1] * devices,
            charged=[()] * devices,
            nodes_of=[()] * devices,
        )
        for device in stop.hundreds(self._seen()):
            profile, charged = self._profile(device)
            if profile >= 0:
                self.usable.profile_of[device] = profile
                self.usable.charged[device] = charged
                self.usable.order.append(device)

    def _seen(self) -> list[DeviceIndex]:
        """Every device that some node reaches, in search order; enters the nodes that reach it."""
        nodes_of, seen = self.usable.nodes_of, []
        for node, view in numbered(self.problem.nodes):
            # One tuple for all devices of a node: there may be a million of them.
            node_alone = (node,)
            for device in view.devices():
                if not self.problem.on_node(device, node):
                    continue
                if nodes_of[device]:
                    nodes_of[device] += node_alone
                else:
                    nodes_of[device] = node_alone
                    seen.append(device)
        return seen

    def _profile(self, device: DeviceIndex) -> _Numbered:
        view = self.problem.devices[device]
        if not self.ledger.is_free(view):
            return _NONE
        profile = self._matching(device)
        if profile != _NONE and self.narrows:
            profile = self._with_attributes(profile, device)
        profile_index, _ = profile
        if profile_index < 0:
            return profile
        if self.charges[profile_index]:
            return self._with_room(profile, device)
        if view.consumes and not self.ledger.has_counters(view, _NOTHING):
            return _NONE
        return profile

    def _matching(self, device: DeviceIndex) -> _Numbered:
        """The profile, found once for devices that are equal to every selector; errors are those of each device."""
        key = self.problem.eligibility.device_key(device)
        if key in self.by_key:
            return self.by_key[key]
        offers, failed = self._answers(device)
        profile = self._number(offers)
        if not failed:
            self.by_key[key] = profile
        return profile

    def _answers(self, device: DeviceIndex) -> tuple[Profile, bool]:
        eligibility, profile, failed = self.problem.eligibility, [], False
        for type_, (alternative, _) in enumerate(self.types):
            selected = eligibility.selects(alternative, device)
            if isinstance(selected, AllocationError):
                failed = True
                if not self._is_required(type_, device):
                    continue
                if self.strict_cel:
                    raise selected
                self.usable.failures[str(selected)] = selected
            elif selected and eligibility.admits(alternative, device):
                charge = eligibility.charge(alternative, device)
                if charge is not None:
                    profile.append(
                        (type_, Charge(charge.capacity, charge.counters))
                    )
        return tuple(profile), failed

    def _is_required(self, type_: int, device: DeviceIndex) -> bool:
        """Whether something of the type may go where the device is."""
        for requirement in self.demand_classes.requirements:
            types = [group.type for group in requirement.item_groups]
            if type_ not in types:
                continue
            nodes = self.demand_classes.node_sets[requirement.nodes]
            if nodes is None or not nodes.isdisjoint(
                self.usable.nodes_of[device]
            ):
                return True
        return False

    def _number(self, offers: Iterable[tuple[int, Charge]]) -> _Numbered:
        """The number of a profile, of whichever counters, and these in the order in which it charges them."""
        counter_positions: dict[CounterIndex, CounterIndex] = {}
        profile = tuple(
            [
                (type_, _with_places(charge, counter_positions))
                for type_, charge in offers
            ]
        )
        if not profile:
            return _NONE
        profile_index = self.usable.profiles.number(profile)
        if profile_index == len(self.charges):
            charges = any(
                charge.capacity or charge.counters for _, charge in profile
            )
            self.charges.append(charges)
        return profile_index, tuple(counter_positions)

    def _with_attributes(
        self, numbered: _Numbered, device: DeviceIndex
    ) -> _Numbered:
        """Return the profile without the types whose constraints name attributes that the device lacks."""
        profile_index, charged = numbered
        attributes = self.problem.devices[device].attributes
        key = profile_index, tuple(attributes)
        if key not in self.narrowed:
            offers = [
                (type_, charge)
                for type_, charge in self.usable.profiles[profile_index]
                if self.types[type_].attributes <= attributes.keys()
            ]
            self.narrowed[key] = self._number(offers)
        narrowed, positions = self.narrowed[key]
        return narrowed, tuple([charged[position] for position in positions])

    def _with_room(self, numbered: _Numbered, device: DeviceIndex) -> _Numbered:
        """Return the profile without the types for which there is too little free."""
        (profile_index, charged), view = numbered, self.problem.devices[device]
        profile = self.usable.profiles[profile_index]
        offers = [
            (type_, charge)
            for type_, charge in _named(profile, charged)
            if self.ledger.fits(view, charge)
        ]
        if len(offers) == len(profile):
            return numbered
        return self._number(offers)


def _named(profile: Profile, charged: Sequence[CounterIndex]) -> Profile:
    """The profile with the counters themselves."""
    if not charged:
        return profile
    counter_at = {
        CounterIndex(position): counter
        for position, counter in enumerate(charged)
    }
    named = []
    for type_, charge in profile:
        counters = renumbered(charge.counters, counter_at)
        named.append((type_, replace(charge, counters=counters)))
    return tuple(named)


def _with_places(
    charge: Charge, counter_positions: dict[CounterIndex, CounterIndex]
) -> Charge:
    """The charge with the positions of its counters, where new ones come last."""
    if not charge.counters:
        return charge
    counters = []
    for counter, amount in charge.counters:
        position = counter_positions.setdefault(
            counter, CounterIndex(len(counter_positions))
        )
        counters.append((position, amount))
    return replace(charge, counters=tuple(counters))
