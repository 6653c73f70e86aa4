"""Who holds what: a ledger that knows the claim behind each entry, so that claims can be taken out or put in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Self, assert_never

from dralloc.objects.names import ClaimKey
from dralloc.problem.indices import CounterIndex, SlotIndex, grouped, summed
from dralloc.problem.ledger import (
    Holding,
    Ledger,
    Scarcity,
    Shortage,
    counter_consumption,
)
from dralloc.problem.problem import Problem
from dralloc.problem.requests import Charge
from dralloc.problem.supply import Device

__all__ = ["ClaimLedger"]


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
