"""The usable devices: those that some demand class can still get, and what each of them can serve."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dralloc.objects.errors import AllocationError
from dralloc.problem import Charge, Problem
from dralloc.problem.eligibility import renumbered
from dralloc.problem.ledger import Ledger
from dralloc.solve.optimum.classes.demand_classes import DemandClasses, Listed
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Profile", "UsableDevices", "usable_devices"]

_NOTHING = Charge()

_Numbered = tuple[int, tuple[int, ...]]
"""The number of a profile, and the counters that a device charges by it."""

_NONE: Final[_Numbered] = (-1, ())

Profile = tuple[tuple[int, Charge], ...]
"""The item types that a device can serve, with what each takes of it; counters by their place in `charged`.

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
    charged: list[tuple[int, ...]] = field(default_factory=list)
    nodes_of: list[tuple[int, ...]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    failures: dict[str, AllocationError] = field(default_factory=dict)

    def charges(self, device: int) -> Profile:
        """The item types that a device can serve, with what each takes of the problem's counters."""
        return _named(self.profiles[self.profile_of[device]], self.charged[device])


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
        self.narrows = any(each.attributes for each in demand_classes.types)
        self.by_key: dict[Hashable, _Numbered] = {}
        self.narrowed: dict[tuple[int, tuple[str, ...]], _Numbered] = {}
        self.charges: list[bool] = []
        devices = len(problem.devices)
        self.usable = UsableDevices(
            profile_of=[-1] * devices, charged=[()] * devices, nodes_of=[()] * devices
        )
        for device in stop.hundreds(self._seen()):
            profile, charged = self._profile(device)
            if profile >= 0:
                self.usable.profile_of[device] = profile
                self.usable.charged[device] = charged
                self.usable.order.append(device)

    def _seen(self) -> list[int]:
        """Every device that some node reaches, in search order; enters the nodes that reach it."""
        nodes_of, seen = self.usable.nodes_of, []
        for node, view in enumerate(self.problem.nodes):
            here = (node,)
            for device in view.devices():
                if self.problem.on_node(device, node):
                    if nodes_of[device]:
                        nodes_of[device] += here
                    else:
                        nodes_of[device] = here
                        seen.append(device)
        return seen

    def _profile(self, device: int) -> _Numbered:
        view = self.problem.devices[device]
        if not self.ledger.is_free(view):
            return _NONE
        found = self._matching(device)
        if found[0] >= 0 and self.narrows:
            found = self._with_attributes(found, device)
        number = found[0]
        if number < 0 or not self.charges[number]:
            return (
                found
                if number < 0
                or not view.consumes
                or self.ledger.has_counters(view, _NOTHING)
                else _NONE
            )
        return self._with_room(found, device)

    def _matching(self, device: int) -> _Numbered:
        """The profile, found once for devices that are equal to every selector; errors are those of each device."""
        key = self.problem.eligibility.device_key(device)
        known = self.by_key.get(key)
        if known is not None:
            return known
        offers, failed = self._answers(device)
        found = self._number(offers)
        if not failed:
            self.by_key[key] = found
        return found

    def _answers(self, device: int) -> tuple[Profile, bool]:
        eligibility, profile, failed = self.problem.eligibility, [], False
        for number, (alternative, _) in enumerate(self.types):
            selected = eligibility.selects(alternative, device)
            if isinstance(selected, AllocationError):
                failed = True
                if not self._is_required(number, device):
                    continue
                if self.strict_cel:
                    raise selected
                self.usable.failures[str(selected)] = selected
            elif selected and eligibility.admits(alternative, device):
                charge = eligibility.charge(alternative, device)
                if charge is not None:
                    profile.append((number, Charge(charge.capacity, charge.counters)))
        return tuple(profile), failed

    def _is_required(self, type_: int, device: int) -> bool:
        """Whether something of the type may go where the device is."""
        node_sets = {
            self.demand_classes.node_sets[requirement.nodes]
            for requirement in self.demand_classes.requirements
            if any(group.type == type_ for group in requirement.item_groups)
        }
        return any(
            nodes is None or not nodes.isdisjoint(self.usable.nodes_of[device])
            for nodes in node_sets
        )

    def _number(self, offers: Iterable[tuple[int, Charge]]) -> _Numbered:
        """The number of a profile, of whichever counters, and these in the order in which it charges them."""
        places: dict[int, int] = {}
        profile = tuple(
            [(type_, _with_places(charge, places)) for type_, charge in offers]
        )
        if not profile:
            return _NONE
        number = self.usable.profiles.number(profile)
        if number == len(self.charges):
            self.charges.append(
                any(charge.capacity or charge.counters for _, charge in profile)
            )
        return number, tuple(places)

    def _with_attributes(self, found: _Numbered, device: int) -> _Numbered:
        number, charged = found
        attributes = self.problem.devices[device].attributes
        key = number, tuple(attributes)
        if key not in self.narrowed:
            profile = self.usable.profiles[number]
            kept = [
                each
                for each in profile
                if self.types[each[0]].attributes <= attributes.keys()
            ]
            self.narrowed[key] = self._number(kept)
        narrowed, places = self.narrowed[key]
        return narrowed, tuple([charged[place] for place in places])

    def _with_room(self, found: _Numbered, device: int) -> _Numbered:
        (number, charged), view = found, self.problem.devices[device]
        profile = self.usable.profiles[number]
        kept = [
            each for each in _named(profile, charged) if self.ledger.fits(view, each[1])
        ]
        return found if len(kept) == len(profile) else self._number(kept)


def _named(profile: Profile, charged: Sequence[int]) -> Profile:
    """The profile with the counters themselves."""
    if not charged:
        return profile
    named = dict(enumerate(charged))
    return tuple(
        [
            (type_, replace(one, counters=renumbered(one.counters, named)))
            for type_, one in profile
        ]
    )


def _with_places(charge: Charge, places: dict[int, int]) -> Charge:
    """The charge with the places of its counters, where new ones come last."""
    if not charge.counters:
        return charge
    return replace(
        charge,
        counters=tuple(
            [(places.setdefault(each, len(places)), n) for each, n in charge.counters]
        ),
    )
