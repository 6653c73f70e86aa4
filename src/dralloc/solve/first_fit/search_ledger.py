"""The ledger of a search: what the current demand takes is revoked in reverse order, or settled.

A device that a demand takes for itself is remembered with the claim that does, because for admin access only what its
own claim took is in use (KEP-5018), and because it stands in the way of later requests of the same demand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from dralloc.problem import Alternative, Charge, Device, DeviceIndex, Problem
from dralloc.problem.ledger import Ledger

__all__ = ["SearchLedger"]


class SearchLedger(Ledger):
    """The ledger of one first-fit run. It starts with what allocated claims hold."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._taking: dict[int, list[int]] = defaultdict(list)
        self._entries: list[tuple[Device, int, bool, Charge]] = []

    def in_use(
        self, device: Device, alternative: Alternative, claim: int
    ) -> bool:
        """Whether the device is taken as far as this request of the current demand's claim is concerned."""
        if alternative.admin:
            return claim in self._taking.get(device.slot, ())
        slot = device.slot
        return (
            slot in self.held
            or slot in self._taking
            or (not device.shareable and slot in self.shares)
        )

    def is_in_use_before(self, device: Device) -> bool:
        """Whether the device was taken before the current demand, without admin access."""
        if self.is_free(device):
            return False
        taken_now = (
            entered.slot for entered, _, admin, _ in self._entries if not admin
        )
        return device.slot not in taken_now

    def state(self, device: Device) -> Hashable:
        """Return everything about the device that depends on what was taken."""
        slot = device.slot
        consumed = frozenset(self.consumed.get(slot, {}).items())
        return (
            slot in self.held,
            slot in self.shares,
            tuple(self._taking.get(slot, ())),
            consumed,
        )

    def covers(
        self, device: Device, alternative: Alternative, charge: Charge
    ) -> bool:
        """Whether the counters allow the allocation. Admin access does not ask for any."""
        return alternative.admin or self.has_counters(device, charge)

    def take(
        self,
        device_index: DeviceIndex,
        alternative: Alternative,
        claim: int,
        charge: Charge,
    ) -> None:
        """Enter that the claim of the current demand takes the device with that number."""
        device = self.problem.devices[device_index]
        self._entries.append((device, claim, alternative.admin, charge))
        if not device.shareable:
            self._taking[device.slot].append(claim)
        # Admin access consumes capacity while it lasts, and holds nothing else.
        if alternative.admin:
            self.consume(device, charge, 1)
            return
        self.enter(device, charge, share=device.shareable)

    def give_back(self) -> None:
        """Revoke the newest entry of the current demand."""
        device, _, admin, charge = self._entries.pop()
        if admin:
            self.consume(device, charge, -1)
        else:
            self.revoke(device, charge, share=device.shareable)
        if not device.shareable:
            taking = self._taking[device.slot]
            taking.pop()
            if not taking:
                del self._taking[device.slot]

    def reserve(self, device: Device, sign: int = 1) -> None:
        """Keep, or free again, the counters of a device that is not allocated."""
        self._consume(device.consumes, sign)

    def revert(self) -> None:
        """Revoke all entries of the current demand."""
        while self._entries:
            self.give_back()

    def settle(self) -> None:
        """Close the current demand: what it took is in use from now on. Admin access leaves nothing behind."""
        for device, _, admin, charge in self._entries:
            if admin:
                self.consume(device, charge, -1)
        self._entries.clear()
        self._taking.clear()

    def release(
        self, device_index: DeviceIndex, alternative: Alternative
    ) -> None:
        """Give back what a demand has settled for. With admin access that is nothing."""
        charge = self.problem.eligibility.charge(
            alternative.index, device_index
        )
        if charge is not None and not alternative.admin:
            device = self.problem.devices[device_index]
            self.revoke(device, charge, share=device.shareable)
