"""The ledger: holdings, what they leave, and their holders; the one place where allocations are entered and revoked.

The rules, which every search and every explanation reads here:

- a dedicated device has one holder; a shareable one that somebody holds as a whole cannot be shared (KEP-5075);
- a device in use charges its counters once, with its first allocation, in every generation of its pool (KEP-4815);
  as long as a counter is overdrawn, nothing that consumes counters of its group is opened (upstream behaviour);
- each allocation of a shareable device consumes capacity (KEP-5075), and some charge counters by request (KEP-5941);
  a device that is opened needs what it charges once and what it charges by request together;
- whatever is in use on a counter set has a compatibility group in common (KEP-5963);
- admin access consumes capacity and nothing else, and nothing else stands in its way (KEP-5018).

`Ledger` enters, revokes and asks; `Holdings` knows the claim behind each entry; limits name what a ledger runs out of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from copy import copy
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Self, assert_never

from dralloc.objects.names import ClaimKey
from dralloc.problem.indices import (
    CounterIndex,
    SlotIndex,
    grouped,
    summed,
)
from dralloc.problem.problem import Problem
from dralloc.problem.requests import Charge
from dralloc.problem.supply import Device, Usage

__all__ = [
    "ClaimLedger",
    "Holding",
    "Ledger",
    "LedgerNote",
    "Limit",
    "Scarcity",
    "Shortage",
    "counter_consumption",
    "limit_behind",
    "limits_of",
    "users_of",
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
        """Count as in use what is so now or was so before, and of amounts the larger ones."""
        self.held.update(slot for slot, held in before.held.items() if held)
        for slot, share_count in before.shares.items():
            if share_count > self.shares.get(slot, 0):
                self.shares[slot] = share_count
        for slot, amounts in before.consumed.items():
            consumed = self.consumed.setdefault(slot, {})
            for name, amount in amounts.items():
                consumed[name] = max(consumed.get(name, 0), amount)
        for counter, free in before.free.items():
            self._leave(counter, min(self.free[counter], free))
        for set_number, members in before.grouped.items():
            here = self._grouped.setdefault(set_number, [])
            here += [groups for groups in members if groups not in here]

    def restore(self, before: LedgerNote) -> None:
        """Take back whatever was entered and revoked of these holdings since then."""
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
        opening = device.slot not in self.shares
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
        if device.slot not in self._several:
            self._consume(device.consumes, sign)
            self._join(device, sign)
            return
        # Allocations made under one version of the slices stand when the driver
        # publishes the next: both generations are charged (KEP-4815).
        for version in self.problem.versions[device.slot]:
            self._consume(self.problem.devices[version].consumes, sign)
            self._join(self.problem.devices[version], sign)

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


# ----------------------------------------------------------------------------
# Who holds what: a ledger that knows the claim behind each entry, so that claims can
# be taken out or put in.


@dataclass(frozen=True, slots=True)
class Holding:
    """A claim's hold on one device: the device itself, or a share of it, and the charge beside that."""

    claim: ClaimKey
    slot: SlotIndex
    share: bool
    charge: Charge


class ClaimLedger(Ledger):
    """A ledger by claim.

    Parameters
    ----------
    holdings
        What of the problem's usage is known by claim; the rest has no name and cannot be released.
    """

    def __init__(
        self, problem: Problem, holdings: Iterable[Holding] = ()
    ) -> None:
        super().__init__(problem)
        self.by_claim: dict[ClaimKey, list[Holding]] = defaultdict(list)
        self.by_slot: dict[SlotIndex, list[Holding]] = defaultdict(list)
        self._consumers: dict[int, Mapping[ClaimKey, int]] | None = None
        for holding in holdings:
            self._note(holding)

    def copy(self) -> Self:
        """A ledger that can be changed apart from this one."""
        ledger = super().copy()
        ledger.by_claim = defaultdict(
            list, {key: list(entries) for key, entries in self.by_claim.items()}
        )
        ledger.by_slot = defaultdict(
            list,
            {slot: list(entries) for slot, entries in self.by_slot.items()},
        )
        return ledger

    # Entries.

    def hold(self, holdings: Iterable[Holding]) -> None:
        """Enter what claims take."""
        for holding in holdings:
            self.enter(
                self._device(holding.slot), holding.charge, share=holding.share
            )
            self._note(holding)

    def release(self, claims: Iterable[ClaimKey]) -> None:
        """Give back what the claims hold."""
        self._consumers = None
        for claim in claims:
            for holding in self.by_claim.pop(claim, ()):
                entries = self.by_slot[holding.slot]
                entries.remove(holding)
                if not holding.share and any(
                    not entry.share for entry in entries
                ):
                    # Two claims hold one dedicated device: it stays in use.
                    self.consume(self._device(holding.slot), holding.charge, -1)
                else:
                    self.revoke(
                        self._device(holding.slot),
                        holding.charge,
                        share=holding.share,
                    )

    def _note(self, holding: Holding) -> None:
        self._consumers = None
        self.by_claim[holding.claim].append(holding)
        self.by_slot[holding.slot].append(holding)

    def _device(self, slot: SlotIndex) -> Device:
        return self.problem.devices[self.problem.versions[slot][0]]

    # Holders.

    def holders(
        self, device: Device, shortage: Shortage
    ) -> Mapping[ClaimKey, int]:
        """The claims because of which something is short, with what they hold of it: nanos, or number of shares."""
        match shortage.scarcity:
            case Scarcity.CAPACITY:
                name = str(shortage.subject)
                return self.holders_of_capacity(device.slot, name)
            case Scarcity.GROUPS:
                counter_set = int(shortage.subject)
                wanted_groups = device.groups_on(counter_set)
                users = self.users_of_set(counter_set)
                excluding = [
                    claim
                    for claim, groups in users.items()
                    if not wanted_groups & groups
                ]
                # Each of them can have a group in common with the device, but not all one and the
                # same: then all together exclude it.
                return dict.fromkeys(excluding or users, 1)
            case Scarcity.COUNTER:
                counter = CounterIndex(int(shortage.subject))
                return self.holders_of_counter(counter)
            case Scarcity.DEVICE:
                return self.holders_of_device(device.slot)
            case _:
                assert_never(shortage.scarcity)

    def holders_of_device(self, slot: SlotIndex) -> Mapping[ClaimKey, int]:
        """The claims that hold a device or shares of it, with how many."""
        return summed(
            (holding.claim, 1) for holding in self.by_slot.get(slot, ())
        )

    def holders_of_capacity(
        self, slot: SlotIndex, name: str
    ) -> Mapping[ClaimKey, int]:
        """The claims that consume a capacity of a device, with the amounts."""
        return summed(
            (holding.claim, amount)
            for holding in self.by_slot.get(slot, ())
            for charged, amount in holding.charge.capacity
            if charged == name and amount
        )

    def holders_of_counter(
        self, counter: CounterIndex
    ) -> Mapping[ClaimKey, int]:
        """The claims that consume a counter, with the amounts; a shared device itself is charged to its first user."""
        if self._consumers is None:
            by_counter = grouped(self._consumption())
            self._consumers = {
                counter_index: summed(amounts)
                for counter_index, amounts in by_counter.items()
            }
        return self._consumers.get(counter, {})

    def _consumption(self) -> Iterator[tuple[int, tuple[ClaimKey, int]]]:
        """Yield the consumers of each counter with their amounts."""
        for slot, holdings in self.by_slot.items():
            # The first holder of a slot in use is charged what the device charges once.
            versions = [
                self.problem.devices[version]
                for version in self.problem.versions[slot]
            ]
            for holding_index, holding in enumerate(holdings):
                fixed = (
                    (
                        amount
                        for version in versions
                        for amount in version.consumes
                    )
                    if holding_index == 0
                    else ()
                )
                for counter, amount in (*holding.charge.counters, *fixed):
                    yield counter, (holding.claim, amount)

    def neighbours(self, device: Device, charge: Charge) -> frozenset[ClaimKey]:
        """The claims that share a device with one that is charged this, or a counter or counter set behind it."""
        users: list[Iterable[ClaimKey]] = [self.holders_of_device(device.slot)]
        users += (
            self.holders_of_counter(counter)
            for counter, _ in counter_consumption(device, charge, opening=True)
        )
        users += (
            self.users_of_set(counter_set)
            for counter_set, _ in device.compatibility
        )
        return frozenset().union(*users)

    def users_of_set(
        self, counter_set: int
    ) -> Mapping[ClaimKey, frozenset[str]]:
        """The claims that hold devices on a counter set, with the compatibility groups of these."""
        groups_by_claim: dict[ClaimKey, frozenset[str]] = {}
        for slot, holdings in self.by_slot.items():
            for version in self.problem.versions[slot]:
                for device_set, groups in self.problem.devices[
                    version
                ].compatibility:
                    for holding in (
                        holdings if device_set == counter_set else ()
                    ):
                        groups_by_claim[holding.claim] = (
                            groups_by_claim.get(holding.claim, groups) & groups
                        )
        return groups_by_claim


# ----------------------------------------------------------------------------
# What is limited for all devices of a driver by one name, so that it can be named,
# lifted and accounted for.


class Limit(NamedTuple):
    """A driver's counters of one name (KEP-4815), capacities of one name (KEP-5075), or groups that exclude each other.

    ``name`` is empty for groups (KEP-5963).
    """

    scarcity: Scarcity
    driver: str
    name: str = ""

    def __str__(self) -> str:
        name = self.name or "of devices"
        return f"{self.scarcity.value} {name} of {self.driver}"


def limits_of(problem: Problem) -> Iterator[Limit]:
    """Every limit that a problem has."""
    counters = (
        Limit(Scarcity.COUNTER, *name) for name in problem.counters_by_name
    )
    capacities = (
        Limit(Scarcity.CAPACITY, device.id.driver, name)
        for device in problem.devices
        if device.shareable
        for name in device.capacity
    )
    groups = (
        Limit(Scarcity.GROUPS, device.id.driver)
        for device in problem.devices
        if not device.is_additive
    )
    yield from dict.fromkeys((*counters, *capacities, *groups))


def limit_behind(problem: Problem, device: Device, shortage: Shortage) -> Limit:
    """The limit that a shortage of a device is about; one of no problem if the device itself is short."""
    if (
        isinstance(shortage.subject, int)
        and shortage.scarcity is Scarcity.COUNTER
    ):
        id_ = problem.counters[CounterIndex(shortage.subject)].id
        return Limit(Scarcity.COUNTER, id_.driver, id_.counter)
    name = shortage.subject if isinstance(shortage.subject, str) else ""
    return Limit(shortage.scarcity, device.id.driver, name)


def users_of(ledger: ClaimLedger, limit: Limit) -> Mapping[ClaimKey, int]:
    """The claims that draw on the counters, or consume the capacities, of a name, with the sums in nanos."""
    problem = ledger.problem
    if limit.scarcity is Scarcity.COUNTER:
        counters = problem.counters_by_name[limit.driver, limit.name]
        return summed(
            pair
            for counter in counters
            for pair in ledger.holders_of_counter(counter).items()
        )
    slots = (
        slot
        for slot in ledger.by_slot
        if problem.devices[problem.versions[slot][0]].id.driver == limit.driver
    )
    return summed(
        pair
        for slot in slots
        for pair in ledger.holders_of_capacity(slot, limit.name).items()
    )
