"""The devices that some class of demands can still get, and what they look like to the classes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from dralloc.errors import AllocationError
from dralloc.problem import Charge, Problem
from dralloc.problem.ledger import Ledger
from dralloc.solvers.cpsat.classes.needs import Need, Wants

__all__ = ["Live", "Profile", "take_stock"]

_NOTHING = Charge()

Profile = tuple[tuple[int, Charge], ...]
"""The types of asks that a device can serve, with what each takes of it."""


@dataclass(slots=True)
class Live:
    """The devices in the order in which nodes are searched.

    Parameters
    ----------
    profiles
        The distinct profiles.
    profile_of
        By device: the index of its profile; -1 if it can serve nothing.
    homes
        By device: the nodes that reach it.
    order
        The live devices, in search order.
    warnings
        Selectors that failed.
    """

    profiles: list[Profile] = field(default_factory=list)
    profile_of: list[int] = field(default_factory=list)
    homes: list[tuple[int, ...]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)


def take_stock(problem: Problem, wants: Wants, *, strict_cel: bool = False) -> Live:
    """Find the live devices.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set. Otherwise the device does not match.
    """
    return _Taker(problem, wants, strict_cel).live


class _Taker:
    def __init__(self, problem: Problem, wants: Wants, strict_cel: bool) -> None:
        self.problem = problem
        self.wants = wants
        self.types = wants.types
        self.strict_cel = strict_cel
        self.ledger = Ledger(problem)
        self.needs_attributes = any(each.attributes for each in wants.types)
        self.by_look: dict[Hashable, int | None] = {}
        self.narrowed: dict[tuple[int, tuple[str, ...]], int] = {}
        self.numbers: dict[Profile, int] = {}
        self.charges: list[bool] = []
        self.live = Live(profile_of=[-1] * len(problem.devices), homes=[()] * len(problem.devices))
        for device in self._seen():
            profile = self._profile(device)
            if profile >= 0:
                self.live.profile_of[device] = profile
                self.live.order.append(device)

    def _seen(self) -> list[int]:
        """Every device that some node reaches, in search order; enters their homes."""
        homes, seen = self.live.homes, []
        for node, view in enumerate(self.problem.nodes):
            here = (node,)
            for device in view.devices():
                if self.problem.on_node(device, node):
                    if homes[device]:
                        homes[device] += here
                    else:
                        homes[device] = here
                        seen.append(device)
        return seen

    def _profile(self, device: int) -> int:
        view = self.problem.devices[device]
        if not self.ledger.is_free(view):
            return -1
        number = self._matching(device)
        if number >= 0 and self.needs_attributes:
            number = self._with_attributes(number, device)
        if number < 0 or not self.charges[number]:
            return number if number < 0 or not view.consumes or self.ledger.has_counters(view, _NOTHING) else -1
        return self._with_room(number, device)

    def _matching(self, device: int) -> int:
        """The profile by the answers that devices of one look share; errors are those of each device."""
        look = self.problem.eligibility.look(device)
        number = self.by_look.get(look, -2)
        if number == -2:
            profile, failed = self._answers(device)
            self.by_look[look] = None if failed else self._number(profile)
            return self._number(profile)
        return self._number(self._answers(device)[0]) if number is None else number

    def _answers(self, device: int) -> tuple[Profile, bool]:
        eligibility, profile, failed = self.problem.eligibility, [], False
        for number, (alternative, _) in enumerate(self.types):
            selected = eligibility.selects(alternative, device)
            if isinstance(selected, AllocationError):
                failed = True
                if not self._is_asked(number, device):
                    continue
                if self.strict_cel:
                    raise selected
                self.live.warnings[str(selected)] = None
            elif selected and eligibility.admits(alternative, device):
                charge = eligibility.charge(alternative, device)
                if charge is not None:
                    profile.append((number, Charge(charge.capacity, charge.counters)))
        return tuple(profile), failed

    def _is_asked(self, type_: int, device: int) -> bool:
        """Whether something of the type may go where the device is."""
        return any(
            nodes is None or not nodes.isdisjoint(self.live.homes[device])
            for nodes in {self.wants.node_sets[need.nodes] for need in self.wants.needs if _asks_for(need, type_)}
        )

    def _number(self, profile: Profile) -> int:
        if not profile:
            return -1
        if profile not in self.numbers:
            self.numbers[profile] = len(self.numbers)
            self.live.profiles.append(profile)
            self.charges.append(any(charge.capacity or charge.counters for _, charge in profile))
        return self.numbers[profile]

    def _with_attributes(self, number: int, device: int) -> int:
        attributes = self.problem.devices[device].attributes
        key = number, tuple(attributes)
        if key not in self.narrowed:
            profile = self.live.profiles[number]
            kept = tuple(offer for offer in profile if self.types[offer[0]].attributes <= attributes.keys())
            self.narrowed[key] = self._number(kept)
        return self.narrowed[key]

    def _with_room(self, number: int, device: int) -> int:
        profile, view = self.live.profiles[number], self.problem.devices[device]
        kept = tuple(offer for offer in profile if self.ledger.fits(view, offer[1]))
        return number if len(kept) == len(profile) else self._number(kept)


def _asks_for(need: Need, type_: int) -> bool:
    return any(ask.type == type_ for ask in need.asks)
