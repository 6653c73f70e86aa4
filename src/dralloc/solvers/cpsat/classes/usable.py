"""The usable devices: those that some demand class can still get, and what each of them can serve."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from dralloc.errors import AllocationError
from dralloc.problem import Charge, Problem
from dralloc.problem.ledger import Ledger
from dralloc.solvers.cpsat.classes.demand_classes import DemandClasses, Requirement
from dralloc.solvers.cpsat.stopping import Stop

__all__ = ["Profile", "UsableDevices", "usable_devices"]

_NOTHING = Charge()

Profile = tuple[tuple[int, Charge], ...]
"""The item types that a device can serve, with what each takes of it."""


@dataclass(slots=True)
class UsableDevices:
    """The devices in the order in which nodes are searched.

    Parameters
    ----------
    profiles
        What devices can serve, each answer once.
    profile_of
        By device: the index of its profile; -1 if it can serve nothing.
    nodes_of
        By device: the nodes that reach it.
    order
        The usable devices, in search order.
    warnings
        Selectors that failed.
    """

    profiles: list[Profile] = field(default_factory=list)
    profile_of: list[int] = field(default_factory=list)
    nodes_of: list[tuple[int, ...]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)


def usable_devices(
    problem: Problem, demand_classes: DemandClasses, stop: Stop, *, strict_cel: bool = False
) -> UsableDevices:
    """Find the usable devices.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set. Otherwise the device does not match.
    """
    return _UsabilityCheck(problem, demand_classes, strict_cel, stop).usable


class _UsabilityCheck:
    def __init__(self, problem: Problem, demand_classes: DemandClasses, strict_cel: bool, stop: Stop) -> None:
        self.problem = problem
        self.demand_classes = demand_classes
        self.types = demand_classes.types
        self.strict_cel = strict_cel
        self.ledger = Ledger(problem)
        self.narrows = any(each.attributes for each in demand_classes.types)
        self.by_key: dict[Hashable, int | None] = {}
        self.narrowed: dict[tuple[int, tuple[str, ...]], int] = {}
        self.numbers: dict[Profile, int] = {}
        self.charges: list[bool] = []
        self.usable = UsableDevices(profile_of=[-1] * len(problem.devices), nodes_of=[()] * len(problem.devices))
        for device in stop.hundreds(self._seen()):
            profile = self._profile(device)
            if profile >= 0:
                self.usable.profile_of[device] = profile
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

    def _profile(self, device: int) -> int:
        view = self.problem.devices[device]
        if not self.ledger.is_free(view):
            return -1
        number = self._matching(device)
        if number >= 0 and self.narrows:
            number = self._with_attributes(number, device)
        if number < 0 or not self.charges[number]:
            return number if number < 0 or not view.consumes or self.ledger.has_counters(view, _NOTHING) else -1
        return self._with_room(number, device)

    def _matching(self, device: int) -> int:
        """The profile, found once for devices that are equal to every selector; errors are those of each device."""
        key = self.problem.eligibility.device_key(device)
        number = self.by_key.get(key, -2)
        if number == -2:
            profile, failed = self._answers(device)
            self.by_key[key] = None if failed else self._number(profile)
            return self._number(profile)
        return self._number(self._answers(device)[0]) if number is None else number

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
                self.usable.warnings[str(selected)] = None
            elif selected and eligibility.admits(alternative, device):
                charge = eligibility.charge(alternative, device)
                if charge is not None:
                    profile.append((number, Charge(charge.capacity, charge.counters)))
        return tuple(profile), failed

    def _is_required(self, type_: int, device: int) -> bool:
        """Whether something of the type may go where the device is."""
        return any(
            nodes is None or not nodes.isdisjoint(self.usable.nodes_of[device])
            for nodes in {
                self.demand_classes.node_sets[requirement.nodes]
                for requirement in self.demand_classes.requirements
                if _requires(requirement, type_)
            }
        )

    def _number(self, profile: Profile) -> int:
        if not profile:
            return -1
        if profile not in self.numbers:
            self.numbers[profile] = len(self.numbers)
            self.usable.profiles.append(profile)
            self.charges.append(any(charge.capacity or charge.counters for _, charge in profile))
        return self.numbers[profile]

    def _with_attributes(self, number: int, device: int) -> int:
        attributes = self.problem.devices[device].attributes
        key = number, tuple(attributes)
        if key not in self.narrowed:
            profile = self.usable.profiles[number]
            kept = tuple(offer for offer in profile if self.types[offer[0]].attributes <= attributes.keys())
            self.narrowed[key] = self._number(kept)
        return self.narrowed[key]

    def _with_room(self, number: int, device: int) -> int:
        profile, view = self.usable.profiles[number], self.problem.devices[device]
        kept = tuple(offer for offer in profile if self.ledger.fits(view, offer[1]))
        return number if len(kept) == len(profile) else self._number(kept)


def _requires(requirement: Requirement, type_: int) -> bool:
    return any(group.type == type_ for group in requirement.item_groups)
