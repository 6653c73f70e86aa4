"""The ledger: holdings, and what they leave; the one place where allocations are entered and revoked.

The rules, which every search and every explanation reads here:

- a dedicated device has one holder; a shareable one that somebody holds as a whole cannot be shared (KEP-5075);
- a device in use charges its counters once, with its first allocation, in every generation of its pool (KEP-4815);
  as long as a counter is overdrawn, nothing that consumes counters of its group is opened (upstream behaviour);
- each allocation of a shareable device consumes capacity (KEP-5075), and some charge counters by request (KEP-5941);
  a device that is opened needs what it charges once and what it charges by request together;
- whatever is in use on a counter set has a compatibility group in common (KEP-5963);
- admin access consumes capacity and nothing else, and nothing else stands in its way (KEP-5018).

`Ledger` enters, revokes and asks; `dralloc.problem.claim_ledger` knows the claim behind each entry;
`dralloc.problem.named_limits` names what a ledger runs out of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from typing import NamedTuple, Self

from dralloc.objects.names import ClaimKey
from dralloc.problem.indices import CounterIndex, SlotIndex
from dralloc.problem.problem import Problem
from dralloc.problem.requests import Charge
from dralloc.problem.supply import Device, Usage

__all__ = [
    "Holding",
    "Ledger",
    "LedgerNote",
    "Scarcity",
    "Shortage",
    "counter_consumption",
]

Amounts = Iterable[tuple[CounterIndex, int]]
"""Counters by index, with amounts in nanos."""


class Scarcity(StrEnum):
    """The kinds of shortage, in the order in which a search looks at them.

    A counter that is overdrawn closes the device's group, and is short for whatever consumes counters there.
    """

    DEVICE = "device"
    COUNTER = "counter"
    GROUPS = "compatibility groups"
    CAPACITY = "capacity"


class _State(Enum):
    """The states that count together after `Ledger.tighten`."""

    BEFORE = auto()
    NOW = auto()


class Shortage(NamedTuple):
    """A reason why an allocation does not fit.

    ``subject``: the index of the counter or of the counter set, or the name of the capacity. ``requested`` and
    ``available`` are in nanos; of what is overdrawn, less than nothing is available.
    """

    scarcity: Scarcity
    subject: int | str = ""
    requested: int = 0
    available: int = 0


def counter_consumption(
    device: Device, charge: Charge, *, opening: bool
) -> Amounts:
    """Return an allocation's consumption of each counter: by request, and the device's own if this opens the device."""
    fixed = device.consumes if opening else ()
    if not charge.counters:
        return fixed
    amounts: dict[CounterIndex, int] = defaultdict(int)
    for counter, amount in (*fixed, *charge.counters):
        amounts[counter] += amount
    return amounts.items()


@dataclass(frozen=True, slots=True)
class Holding:
    """A claim's hold on one device: the device itself, or a share of it, and the charge beside that."""

    claim: ClaimKey
    slot: SlotIndex
    share: bool
    charge: Charge


@dataclass(frozen=True, slots=True)
class LedgerNote:
    """A note of the ledger's state for some devices, counters and counter sets, to go back to it.

    Parameters
    ----------
    held, shares, consumed
        By slot: whether somebody has it for itself, the number of shares, and nanos by capacity.
    free
        Nanos that are left, by counter.
    grouped
        By counter set, the groups of each member in use.
    """

    held: Mapping[SlotIndex, bool]
    shares: Mapping[SlotIndex, int]
    consumed: Mapping[SlotIndex, dict[str, int]]
    free: Mapping[CounterIndex, int]
    grouped: Mapping[int, list[frozenset[str]]]


class Ledger:
    """The usage of a problem as it grows. Starts with the problem's usage; entries can be revoked in any order.

    Attributes
    ----------
    held
        Slots of the devices that somebody has for itself.
    shares
        Number of allocations by slot, of shared devices.
    consumed
        Nanos by slot and capacity.
    free
        Nanos that are left of each counter; negative if it is overdrawn.
    """

    def __init__(self, problem: Problem) -> None:
        usage = problem.usage
        self.problem = problem
        self.held = set(usage.held)
        self.shares = dict(usage.shares)
        self.consumed = {
            slot: dict(amounts) for slot, amounts in usage.consumed.items()
        }
        self.free = [counter.free for counter in problem.counters]
        self._several = problem.several_versions
        self._overdrawn: dict[int, int] = defaultdict(int)
        for counter in problem.counters:
            if counter.free < 0:
                self._overdrawn[counter.group] += 1
        # What has to have a group in common, by counter set.
        self._grouped = {
            counter_set: list(groups)
            for counter_set, groups in problem.groups_in_use.items()
        }
        # Between `tighten` and `restore`: shareable devices that are open in one state alone, with the other state.
        self._closed_in: dict[SlotIndex, _State] = {}
        # By counter, what each of the two states has in addition to what is free of it in both.
        self._spare: dict[CounterIndex, dict[_State, int]] = {}

    def copy(self) -> Self:
        """A ledger that can be changed apart from this one."""
        ledger = copy(self)
        ledger.held, ledger.shares, ledger.free = (
            set(self.held),
            dict(self.shares),
            list(self.free),
        )
        ledger.consumed = {
            slot: dict(amounts) for slot, amounts in self.consumed.items()
        }
        ledger._overdrawn = self._overdrawn.copy()
        ledger._closed_in = self._closed_in.copy()
        ledger._spare = {
            counter: dict(spare) for counter, spare in self._spare.items()
        }
        ledger._grouped = {
            counter_set: list(members)
            for counter_set, members in self._grouped.items()
        }
        return ledger

    def note(self, holdings: Iterable[Holding]) -> LedgerNote:
        """Note the state of everything that entering or revoking some holdings can change."""
        slots = {holding.slot for holding in holdings}
        devices = [
            self.problem.devices[version]
            for slot in slots
            for version in self.problem.versions[slot]
        ]
        counters = {
            counter for device in devices for counter, _ in device.consumes
        }
        for holding in holdings:
            counters.update(counter for counter, _ in holding.charge.counters)
        sets = {
            counter_set
            for device in devices
            for counter_set, _ in device.compatibility
        }
        return LedgerNote(
            held={slot: slot in self.held for slot in slots},
            shares={slot: self.shares.get(slot, 0) for slot in slots},
            consumed={
                slot: dict(self.consumed.get(slot, {})) for slot in slots
            },
            free={counter: self.free[counter] for counter in counters},
            grouped={
                counter_set: list(self._grouped.get(counter_set, ()))
                for counter_set in sets
            },
        )

    def tighten(self, before: LedgerNote) -> None:
        """Count as in use what is so now or was so before, and of amounts the larger ones.

        What fits then, fits in both states. A shareable device that is open in one of them has to be opened in the
        other, and asks for counters there alone.
        """
        self.held.update(slot for slot, held in before.held.items() if held)
        for slot, share_count in before.shares.items():
            shares_now = self.shares.get(slot, 0)
            if slot not in self.held and bool(shares_now) != bool(share_count):
                self._close(slot, _State.NOW if share_count else _State.BEFORE)
            elif share_count > shares_now:
                self.shares[slot] = share_count
        for slot, amounts in before.consumed.items():
            consumed = self.consumed.setdefault(slot, {})
            for name, amount in amounts.items():
                consumed[name] = max(consumed.get(name, 0), amount)
        for counter, free in before.free.items():
            now = self.free[counter]
            least = min(now, free)
            self._spare[counter] = {
                _State.BEFORE: free - least,
                _State.NOW: now - least,
            }
            self._leave(counter, least)
        for set_number, members in before.grouped.items():
            here = self._grouped.setdefault(set_number, [])
            here += [groups for groups in members if groups not in here]

    def _close(self, slot: SlotIndex, state: _State) -> None:
        """Count a device as not open that is open in the other state than this one."""
        versions = self.problem.versions[slot]
        self.shares.pop(slot, None)
        if all(self.problem.devices[version].shareable for version in versions):
            self._closed_in[slot] = state
        else:
            # For a version that cannot be shared it is in use. Few are, so nobody gets it for the time being.
            self.held.add(slot)

    def restore(self, before: LedgerNote) -> None:
        """Take back whatever was entered and revoked of these holdings since then."""
        self._closed_in.clear()
        self._spare.clear()
        for slot, held in before.held.items():
            if held:
                self.held.add(slot)
            else:
                self.held.discard(slot)
        for slot, share_count in before.shares.items():
            if share_count:
                self.shares[slot] = share_count
            else:
                self.shares.pop(slot, None)
        self.consumed.update(before.consumed)
        for counter, free in before.free.items():
            self._leave(counter, free)
        self._grouped.update(before.grouped)

    def _leave(self, counter: CounterIndex, free: int) -> None:
        """Charge a counter so that this is free of it."""
        self._consume(((counter, self.free[counter] - free),), 1)

    # Questions.

    @property
    def is_about_two_states(self) -> bool:
        """Whether some device is open in one of two states that count, so that amounts do not say all (`tighten`)."""
        return bool(self._closed_in)

    def is_in_use(self, device: Device) -> bool:
        """Whether anybody has the device or a share of it."""
        return device.slot in self.held or device.slot in self.shares

    def is_free(self, device: Device) -> bool:
        """Whether the device can be had as far as its holders are concerned."""
        return device.slot not in self.held and (
            device.shareable or device.slot not in self.shares
        )

    def is_open(self, device: Device) -> bool:
        """Whether a shareable device has been charged to its counters."""
        return device.slot in self.shares

    def has_capacity(self, device: Device, charge: Charge) -> bool:
        """Whether what is left of the device's capacities covers the charge."""
        if not charge.capacity:
            return True
        consumed = self.consumed.get(device.slot, {})
        return all(
            consumed.get(name, 0) + amount <= device.capacity[name].total
            for name, amount in charge.capacity
        )

    def has_counters(self, device: Device, charge: Charge) -> bool:
        """Whether the counters cover the device and the charge, and what is in use of them is compatible with it."""
        if (
            not device.consumes
            and not charge.counters
            and not device.compatibility
        ):
            return True
        # What opens a shared device was charged with the first share, whichever version that was of: further shares ask
        # only for what is charged by request.
        opening = device.slot not in self.shares
        if opening and device.slot in self._closed_in:
            return self._may_be_opened(device, charge)
        if opening and device.consumes and self._overdrawn.get(device.group):
            return False
        if (
            opening
            and device.compatibility
            and next(self._excluding(device), None) is not None
        ):
            return False
        free = self.free
        consumption = counter_consumption(device, charge, opening=opening)
        for counter, amount in consumption:  # noqa: SIM110 - asked for every device
            if amount > free[counter]:
                return False
        return True

    def _may_be_opened(self, device: Device, charge: Charge) -> bool:
        """As `has_counters`, for a device that is open in one of two states: what opens it counts in the other."""
        state = self._closed_in[device.slot]

        def free(counter: CounterIndex) -> int:
            spare = self._spare.get(counter)
            return self.free[counter] + (spare[state] if spare else 0)

        if any(
            amount > self.free[counter] for counter, amount in charge.counters
        ):
            return False
        if next(self._excluding(device), None) is not None:
            return False
        if device.consumes and any(
            free(counter) < 0
            for counter in self.problem.counters_of[device.group]
        ):
            return False
        return all(
            amount <= free(counter)
            for counter, amount in counter_consumption(
                device, charge, opening=True
            )
        )

    def fits(
        self, device: Device, charge: Charge, *, admin: bool = False
    ) -> bool:
        """Whether one more allocation fits, for any claim."""
        if admin:
            return self.has_capacity(device, charge)
        return (
            self.is_free(device)
            and self.has_counters(device, charge)
            and self.has_capacity(device, charge)
        )

    def may_fit(
        self, device: Device, charge: Charge, *, admin: bool = False
    ) -> bool:
        """Whether one more allocation fits, now or as soon as a share of another version has opened the device."""
        if self.fits(device, charge, admin=admin):
            return True
        # Once a share of another version has opened the slot, this version's counters
        # and groups are not looked at any more (upstream behaviour).
        opened = device.shareable and device.slot in self.problem.opened_freely
        return (
            opened
            and self.is_free(device)
            and self.has_capacity(device, charge)
        )

    def shortages(
        self, device: Device, charge: Charge, *, admin: bool = False
    ) -> Iterator[Shortage]:
        """Yield every reason why an allocation does not fit; nothing if it does (see `fits`)."""
        if not admin:
            if not self.is_free(device):
                yield Shortage(Scarcity.DEVICE)
            yield from self._shortages_of_counters(device, charge)
        for name, amount in charge.capacity:
            available = self.capacity_left(device, name)
            if amount > available:
                yield Shortage(Scarcity.CAPACITY, name, amount, available)

    def _shortages_of_counters(
        self, device: Device, charge: Charge
    ) -> Iterator[Shortage]:
        opening = device.slot not in self.shares
        amounts = counter_consumption(device, charge, opening=opening)
        if opening and device.consumes and self._overdrawn.get(device.group):
            amounts = (
                dict.fromkeys(self.overdrawn(device.group), 0) | dict(amounts)
            ).items()
        for counter, amount in amounts:
            available = self.free[counter]
            if amount > available:
                yield Shortage(Scarcity.COUNTER, counter, amount, available)
        yield from (
            Shortage(Scarcity.GROUPS, counter_set)
            for counter_set in self._excluding(device)
            if opening
        )

    def _excluding(self, device: Device) -> Iterator[int]:
        """The counter sets on which what is in use has no group in common with the device."""
        for counter_set, groups in device.compatibility:
            if not groups.intersection(*self._grouped.get(counter_set, ())):
                yield counter_set

    def capacity_left(self, device: Device, name: str) -> int:
        """Return the free amount of a capacity of a shareable device."""
        return device.capacity[name].total - self.consumed.get(
            device.slot, {}
        ).get(name, 0)

    def is_overdrawn(self, group: int) -> bool:
        """Whether more is charged to some counter of a group than there is."""
        return self._overdrawn.get(group, 0) > 0

    def overdrawn(self, group: int) -> tuple[CounterIndex, ...]:
        """The counters of a group of which more is charged than there is."""
        if not self.is_overdrawn(group):
            return ()
        return tuple(
            counter
            for counter in self.problem.counters_of[group]
            if self.free[counter] < 0
        )

    def common_groups_on(self, counter_set: int) -> frozenset[str] | None:
        """Return the compatibility groups that everything in use on a set has in common; None if nothing is."""
        members = self._grouped.get(counter_set)
        return frozenset.intersection(*members) if members else None

    def common_groups(self) -> dict[int, frozenset[str]]:
        """Return, by counter set in use, the compatibility groups that everything there has in common."""
        return {
            counter_set: frozenset.intersection(*members)
            for counter_set, members in self._grouped.items()
            if members
        }

    def usage_of(self, slots: Set[SlotIndex]) -> Usage:
        """Return the present usage of these slots, for a part of the problem with the devices behind them."""
        return Usage(
            frozenset(slots & self.held),
            {slot: self.shares[slot] for slot in self.shares.keys() & slots},
            {
                slot: dict(self.consumed[slot])
                for slot in self.consumed.keys() & slots
            },
            self.common_groups(),
        )

    def applied(self) -> Problem:
        """The problem with what is in use now."""
        counters = tuple(
            counter if counter.free == free else replace(counter, free=free)
            for counter, free in zip(
                self.problem.counters, self.free, strict=True
            )
        )
        consumed = {
            slot: dict(amounts) for slot, amounts in self.consumed.items()
        }
        usage = Usage(
            frozenset(self.held),
            dict(self.shares),
            consumed,
            self.problem.usage.compatibility,
        )
        return replace(self.problem, usage=usage, counters=counters)

    # Entries.

    def enter(self, device: Device, charge: Charge, *, share: bool) -> None:
        """Enter an allocation without admin access: of a share, or of the device as a whole."""
        slot = device.slot
        if slot not in self.shares and slot not in self.held:
            self._open(device, 1)
        if share:
            self.shares[slot] = self.shares.get(slot, 0) + 1
        else:
            self.held.add(slot)
        self.consume(device, charge, 1)

    def revoke(self, device: Device, charge: Charge, *, share: bool) -> None:
        """Revoke an allocation that was entered."""
        slot = device.slot
        if not share:
            self.held.discard(slot)
        elif self.shares[slot] > 1:
            self.shares[slot] -= 1
        else:
            del self.shares[slot]
        if slot not in self.shares and slot not in self.held:
            self._open(device, -1)
        self.consume(device, charge, -1)

    def consume(self, device: Device, charge: Charge, sign: int) -> None:
        """Enter (1) or revoke (-1) what an allocation takes beside the device itself."""
        if charge.capacity:
            consumed = self.consumed.setdefault(device.slot, {})
            for name, amount in charge.capacity:
                consumed[name] = consumed.get(name, 0) + sign * amount
        if charge.counters:
            self._consume(charge.counters, sign)

    def _open(self, device: Device, sign: int) -> None:
        """Enter or revoke that a device is in use, in every generation of its pool."""
        if device.slot in self._closed_in:
            self._open_in(self._closed_in[device.slot], device.slot, sign)
            return
        if device.slot not in self._several:
            self._consume(device.consumes, sign)
            self._join(device, sign)
            return
        # Allocations made under one version of the slices stand when the driver
        # publishes the next: both generations are charged (KEP-4815).
        for version in self.problem.versions[device.slot]:
            self._consume(self.problem.devices[version].consumes, sign)
            self._join(self.problem.devices[version], sign)

    def _open_in(self, state: _State, slot: SlotIndex, sign: int) -> None:
        """The same in one of two states; in the other it is open, and its groups are known."""
        for version in self.problem.versions[slot]:
            for counter, amount in self.problem.devices[version].consumes:
                spare = self._spare[counter]
                spare[state] -= sign * amount
                # What is free is what both states have.
                both = min(spare.values())
                for either in spare:
                    spare[either] -= both
                self._consume(((counter, both),), -1)

    def _consume(self, amounts: Amounts, sign: int) -> None:
        for counter, amount in amounts:
            before = self.free[counter]
            after = self.free[counter] = before - sign * amount
            # Groups are closed by the number of their counters that are overdrawn, so
            # that asking costs nothing.
            if (before < 0) != (after < 0):
                group = self.problem.counters[counter].group
                self._overdrawn[group] += 1 if after < 0 else -1

    def _join(self, device: Device, sign: int) -> None:
        for counter_set, groups in device.compatibility:
            members = self._grouped.setdefault(counter_set, [])
            if sign > 0:
                members.append(groups)
            else:
                # One of several equal entries, whichever: they exclude the same.
                members.remove(groups)
