"""What allocated claims hold. Always derived from their ``status.allocation``, never guessed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dralloc.api import DeviceRequestAllocationResult, ResourceClaim
from dralloc.features import Features
from dralloc.names import DeviceID
from dralloc.problem import Counter, Device, Usage
from dralloc.quantity import Quantity

__all__ = ["Holdings", "allocated_devices", "counters_left", "held_results", "read_holdings"]


@dataclass
class Holdings:
    """Usage by slot, with the amounts that results recorded as ``consumedCapacity``."""

    held: set[int] = field(default_factory=set)
    shares: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    recorded: list[tuple[int, Mapping[str, Quantity]]] = field(default_factory=list)

    def in_use(self, devices: Sequence[Device]) -> dict[int, Device]:
        """The devices in use by index, in each generation that publishes them."""
        slots = self.held.union(self.shares)
        return {index: device for index, device in enumerate(devices) if device.slot in slots}

    def usage(self) -> Usage:
        """The holdings as plain sums."""
        consumed: dict[int, dict[str, int]] = {}
        for slot, amounts in self.recorded:
            sums = consumed.setdefault(slot, {})
            for name, amount in amounts.items():
                sums[name] = sums.get(name, 0) + amount.nanos
        return Usage(frozenset(self.held), dict(self.shares), consumed)


def read_holdings(claims: Iterable[ResourceClaim], slots: Mapping[DeviceID, int], features: Features) -> Holdings:
    """Read what the claims hold of the known devices.

    Results with admin access hold nothing (KEP-5018). Those with a share ID hold a share and what it consumes, all
    others the whole device (KEP-5075).
    """
    holdings = Holdings()
    for result in held_results(claims):
        slot = slots.get(result.device_id)
        if slot is None:
            continue
        if result.share_id is not None and features.ConsumableCapacity:
            holdings.shares[slot] += 1
        else:
            holdings.held.add(slot)
        if result.consumed_capacity:
            holdings.recorded.append((slot, result.consumed_capacity))
    return holdings


def allocated_devices(claims: Iterable[ResourceClaim]) -> frozenset[DeviceID]:
    """The devices that claims hold, alone or with others, whether or not they are published."""
    return frozenset(result.device_id for result in held_results(claims))


def held_results(claims: Iterable[ResourceClaim]) -> Iterator[DeviceRequestAllocationResult]:
    """What allocated claims hold: everything but what they have by admin access."""
    for claim in claims:
        if claim.status.allocation is not None:
            yield from (result for result in claim.status.allocation.devices.results if not result.admin_access)


def counters_left(
    counters: Sequence[Counter],
    in_use: Mapping[int, Device],
    holdings: Holdings,
    requested: Callable[[int, Mapping[str, Quantity]], Iterable[tuple[int, int]]],
) -> tuple[Counter, ...]:
    """The counters with what the holdings leave of them.

    A device in use charges its fixed amounts once (KEP-4815), and each of its allocations what it recorded for counters
    that are consumed by request (KEP-5941), in every generation that publishes the device.

    Parameters
    ----------
    in_use
        The devices in use, by index.
    requested
        Maps the index of a device and recorded amounts to what they charge: pairs of counter and nanos.
    """
    taken: dict[int, int] = defaultdict(int)
    recorded = defaultdict(list)
    for slot, amounts in holdings.recorded:
        recorded[slot].append(amounts)
    for number, device in in_use.items():
        for index, amount in device.consumes:
            taken[index] += amount
        for amounts in recorded.get(device.slot, ()):
            for index, amount in requested(number, amounts):
                taken[index] += amount
    left = list(counters)
    for index, amount in taken.items():
        left[index] = replace(left[index], free=left[index].total - amount)
    return tuple(left)
