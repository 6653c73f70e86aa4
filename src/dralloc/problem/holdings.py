"""Who holds what: a ledger that knows the claim behind each entry, so that claims can be taken out or put in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass

from dralloc.objects.names import ClaimKey
from dralloc.problem.grouping import grouped, summed
from dralloc.problem.ledger import Ledger, Scarcity, Shortage, counter_consumption
from dralloc.problem.problem import Problem
from dralloc.problem.requests import Charge
from dralloc.problem.supply import Device

__all__ = ["ClaimLedger", "Holding"]


@dataclass(frozen=True, slots=True)
class Holding:
    """What a claim holds of one device: the device, or a share of it, and what it is charged beside that."""

    claim: ClaimKey
    slot: int
    share: bool
    charge: Charge


class ClaimLedger(Ledger):
    """A ledger by claim.

    Parameters
    ----------
    known
        What of the problem's usage is known by claim; the rest has no name and cannot be released.
    """

    def __init__(self, problem: Problem, known: Iterable[Holding] = ()) -> None:
        super().__init__(problem)
        self.by_claim: dict[ClaimKey, list[Holding]] = defaultdict(list)
        self.by_slot: dict[int, list[Holding]] = defaultdict(list)
        self._consumers: dict[int, Mapping[ClaimKey, int]] | None = None
        for holding in known:
            self._note(holding)

    def copy(self) -> ClaimLedger:
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
            number: list(members) for number, members in self._grouped.items()
        }
        ledger.by_claim = defaultdict(
            list, {key: list(entries) for key, entries in self.by_claim.items()}
        )
        ledger.by_slot = defaultdict(
            list, {slot: list(entries) for slot, entries in self.by_slot.items()}
        )
        return ledger

    # Entries.

    def hold(self, holdings: Iterable[Holding]) -> None:
        """Enter what claims take."""
        for holding in holdings:
            self.enter(self._device(holding.slot), holding.charge, share=holding.share)
            self._note(holding)

    def release(self, claims: Iterable[ClaimKey]) -> None:
        """Give back what the claims hold."""
        self._consumers = None
        for claim in claims:
            for holding in self.by_claim.pop(claim, ()):
                others = self.by_slot[holding.slot]
                others.remove(holding)
                if not holding.share and any(not other.share for other in others):
                    # Two claims hold one dedicated device: it stays in use.
                    self.consume(self._device(holding.slot), holding.charge, -1)
                else:
                    self.revoke(
                        self._device(holding.slot), holding.charge, share=holding.share
                    )

    def _note(self, holding: Holding) -> None:
        self._consumers = None
        self.by_claim[holding.claim].append(holding)
        self.by_slot[holding.slot].append(holding)

    def _device(self, slot: int) -> Device:
        return self.problem.devices[self.problem.versions[slot][0]]

    # Holders.

    def holders(self, device: Device, shortage: Shortage) -> Mapping[ClaimKey, int]:
        """The claims because of which something is short, with what they hold of it: nanos, or number of shares."""
        match shortage.scarcity, shortage.what:
            case Scarcity.CAPACITY, str(name):
                return self.holders_of_capacity(device.slot, name)
            case Scarcity.GROUPS, int(number):
                own, users = device.groups_on(number), self.users_of_set(number)
                return dict.fromkeys(
                    [claim for claim, theirs in users.items() if not own & theirs]
                    or users,
                    1,
                )
            case Scarcity.COUNTER, int(counter):
                return self.holders_of_counter(counter)
            case _:
                return self.holders_of_device(device.slot)

    def holders_of_device(self, slot: int) -> Mapping[ClaimKey, int]:
        """The claims that hold a device or shares of it, with how many."""
        return summed((holding.claim, 1) for holding in self.by_slot.get(slot, ()))

    def holders_of_capacity(self, slot: int, name: str) -> Mapping[ClaimKey, int]:
        """The claims that consume a capacity of a device, with the amounts."""
        return summed(
            (holding.claim, amount)
            for holding in self.by_slot.get(slot, ())
            for charged, amount in holding.charge.capacity
            if charged == name and amount
        )

    def holders_of_counter(self, counter: int) -> Mapping[ClaimKey, int]:
        """The claims that consume a counter, with the amounts; a shared device itself is charged to its first user."""
        if self._consumers is None:
            self._consumers = {
                each: summed(amounts)
                for each, amounts in grouped(self._consumption()).items()
            }
        return self._consumers.get(counter, {})

    def _consumption(self) -> Iterator[tuple[int, tuple[ClaimKey, int]]]:
        """By counter: who consumes how much of it."""
        for slot, holdings in self.by_slot.items():
            versions = [
                self.problem.devices[version] for version in self.problem.versions[slot]
            ]
            for place, holding in enumerate(holdings):
                fixed = (
                    (amount for version in versions for amount in version.consumes)
                    if place == 0
                    else ()
                )
                for counter, amount in (*holding.charge.counters, *fixed):
                    yield counter, (holding.claim, amount)

    def neighbours(self, device: Device, charge: Charge) -> frozenset[ClaimKey]:
        """The claims that share a device with whoever is charged this, or a counter or counter set behind it."""
        users: list[Iterable[ClaimKey]] = [self.holders_of_device(device.slot)]
        users += (
            self.holders_of_counter(counter)
            for counter, _ in counter_consumption(device, charge, opening=True)
        )
        users += (self.users_of_set(number) for number, _ in device.compatibility)
        return frozenset().union(*users)

    def users_of_set(self, number: int) -> Mapping[ClaimKey, frozenset[str]]:
        """The claims that hold devices on a counter set, with the compatibility groups of these."""
        found: dict[ClaimKey, frozenset[str]] = {}
        for slot, holdings in self.by_slot.items():
            for version in self.problem.versions[slot]:
                for counter_set, groups in self.problem.devices[version].compatibility:
                    for holding in holdings if counter_set == number else ():
                        found[holding.claim] = found.get(holding.claim, groups) & groups
        return found
