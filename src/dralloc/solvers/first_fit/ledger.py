"""What is free and what is taken, with every entry revocable.

Entries are made with `Ledger.take` and revoked in reverse order with `Ledger.give_back`; `Ledger.settle` makes those of
a demand permanent, so that later demands find them in use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

from dralloc.problem import Alternative, Charge, Device, Problem, counter_draws

__all__ = ["Ledger"]


class Ledger:
    """The books of one first-fit run. It starts with what allocated claims hold."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._several = problem.several_versions
        self._held = set(problem.usage.held)
        self._shares = defaultdict(int, problem.usage.shares)
        self._consumed = {slot: dict(amounts) for slot, amounts in problem.usage.consumed.items()}
        self._free = [counter.free for counter in problem.counters]
        self._together = {number: [groups] for number, groups in problem.usage.compatibility.items()}
        self._overdrawn: dict[int, int] = defaultdict(int)
        for counter in problem.counters:
            self._overdrawn[counter.group] += counter.free < 0
        # Devices that the current demand took for itself, with the claims that did; admin access takes them, too.
        self._taking: dict[int, list[int]] = defaultdict(list)
        self._entries: list[tuple[int, int, bool, Charge]] = []

    def in_use(self, device: Device, alternative: Alternative, claim: int) -> bool:
        """Whether the device is taken as far as this request of the current demand's claim is concerned.

        Admin access only minds what its own claim took (KEP-5018); everybody else minds what any claim has.
        """
        taking = self._taking.get(device.slot, ())
        if alternative.admin:
            return claim in taking
        if device.slot in self._held or taking:
            return True
        return not device.shareable and self._shares.get(device.slot, 0) > 0

    def has_capacity(self, device: Device, charge: Charge) -> bool:
        """Whether what is left of the device's capacities covers the charge."""
        if not charge.capacity:
            return True
        consumed = self._consumed.get(device.slot, {})
        return all(consumed.get(name, 0) + amount <= device.capacity[name].total for name, amount in charge.capacity)

    def has_counters(self, device: Device, alternative: Alternative, charge: Charge) -> bool:
        """Whether the counters cover the device and the charge, and who draws on them is compatible with it.

        Admin access does not ask for any.
        """
        if alternative.admin:
            return True
        if not device.consumes and not charge.counters and not device.compatibility:
            return True
        opening = not self._shares.get(device.slot, 0)
        if opening and device.consumes and self._overdrawn[device.group]:
            return False
        if opening and device.compatibility and not self._is_compatible(device):
            return False
        free = self._free
        for index, amount in counter_draws(device, charge, opening=opening):  # noqa: SIM110 - asked for every device
            if amount > free[index]:
                return False
        return True

    def _is_compatible(self, device: Device) -> bool:
        """Whether everything in use on its counter sets has a group in common with the device (KEP-5963)."""
        return all(groups.intersection(*self._together.get(number, ())) for number, groups in device.compatibility)

    def is_in_use_before(self, device: Device) -> bool:
        """Whether the device was taken before the current demand, for somebody without admin access."""
        return device.slot in self._held or (not device.shareable and self._shares.get(device.slot, 0) > 0)

    def is_open(self, device: Device) -> bool:
        """Whether a shareable device has been charged to its counters."""
        return self._shares.get(device.slot, 0) > 0

    def counter_left(self, index: int) -> int:
        """What is left of a counter; negative if it is overdrawn."""
        return self._free[index]

    def is_overdrawn(self, group: int) -> bool:
        """Whether more is charged to some counter of a group than there is."""
        return self._overdrawn.get(group, 0) > 0

    def capacity_left(self, device: Device, name: str) -> int:
        """What is left of a capacity of a shareable device."""
        return device.capacity[name].total - self._consumed.get(device.slot, {}).get(name, 0)

    def state(self, device: Device) -> Hashable:
        """Everything about the device that depends on what was taken."""
        slot = device.slot
        consumed = frozenset(self._consumed.get(slot, {}).items())
        return slot in self._held, self._shares.get(slot, 0) > 0, tuple(self._taking.get(slot, ())), consumed

    def take(self, number: int, alternative: Alternative, claim: int, charge: Charge) -> None:
        """Enter that the claim of the current demand takes the device with that number."""
        device = self._problem.devices[number]
        self._entries.append((number, claim, alternative.admin, charge))
        if not device.shareable:
            self._taking[device.slot].append(claim)
        self._consume(device, charge, 1)
        if not alternative.admin:
            self._use(device, charge, 1)

    def give_back(self) -> None:
        """Revoke the newest entry of the current demand."""
        number, _, admin, charge = self._entries.pop()
        device = self._problem.devices[number]
        if not admin:
            self._use(device, charge, -1)
        self._consume(device, charge, -1)
        if not device.shareable:
            taking = self._taking[device.slot]
            taking.pop()
            if not taking:
                del self._taking[device.slot]

    def revert(self) -> None:
        """Revoke all entries of the current demand."""
        while self._entries:
            self.give_back()

    def settle(self) -> None:
        """Close the current demand: what it took is in use from now on. Admin access leaves nothing behind."""
        for number, _, admin, charge in self._entries:
            device = self._problem.devices[number]
            if admin:
                self._consume(device, charge, -1)
            elif not device.shareable:
                self._held.add(device.slot)
        self._entries.clear()
        self._taking.clear()

    def release(self, number: int, alternative: Alternative) -> None:
        """Give back what a demand has settled for. With admin access that is nothing."""
        device = self._problem.devices[number]
        charge = self._problem.eligibility.charge(alternative.index, number)
        if charge is None or alternative.admin:
            return
        self._use(device, charge, -1)
        self._consume(device, charge, -1)
        if not device.shareable:
            self._held.discard(device.slot)

    def _consume(self, device: Device, charge: Charge, sign: int) -> None:
        if charge.capacity:
            consumed = self._consumed.setdefault(device.slot, {})
            for name, amount in charge.capacity:
                consumed[name] = consumed.get(name, 0) + sign * amount

    def _use(self, device: Device, charge: Charge, sign: int) -> None:
        """Enter or revoke one use: the first use of a device charges its counters in every generation of its pool."""
        first = True
        if device.shareable:
            self._shares[device.slot] += sign
            first = self._shares[device.slot] == (1 if sign > 0 else 0)
        if first:
            if device.slot in self._several:
                for version in self._problem.versions[device.slot]:
                    self._draw(self._problem.devices[version], sign)
            else:
                self._draw(device, sign)
        self._charge(charge.counters, sign)

    def _draw(self, device: Device, sign: int) -> None:
        """Enter or revoke that a device is in use on its counter sets."""
        self._charge(device.consumes, sign)
        for number, groups in device.compatibility:
            members = self._together.setdefault(number, [])
            if sign > 0:
                members.append(groups)
            else:
                members.remove(groups)

    def _charge(self, amounts: Iterable[tuple[int, int]], sign: int) -> None:
        for index, amount in amounts:
            before = self._free[index]
            after = self._free[index] = before - sign * amount
            if (before < 0) != (after < 0):
                self._overdrawn[self._problem.counters[index].group] += sign
