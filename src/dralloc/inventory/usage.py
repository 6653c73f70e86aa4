"""What allocated claims hold. Always derived from their ``status.allocation``, never guessed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dralloc.api import Counter as ApiCounter
from dralloc.api import DeviceRequestAllocationResult, ResourceClaim
from dralloc.features import Features
from dralloc.inventory.catalog import PublishedDevice
from dralloc.inventory.charges import counters_charged
from dralloc.names import ClaimKey, DeviceID
from dralloc.problem import Charge, Counter, Device, Usage
from dralloc.problem.holdings import Holding

__all__ = ["HoldingReader", "allocated_devices", "counters_left", "held_results", "usage_of"]


class HoldingReader:
    """Reads what claims hold of the devices that are published.

    Parameters
    ----------
    slots
        The slot of each published device.
    devices, sources
        The devices, in every generation of their pools, and where they were published.
    published
        The counters, as they were published.
    """

    def __init__(
        self,
        slots: Mapping[DeviceID, int],
        devices: Sequence[Device],
        sources: Sequence[PublishedDevice],
        published: Sequence[ApiCounter],
        features: Features,
    ) -> None:
        self._slots = slots
        self._sources = sources
        self._published = published
        self._shares = features.ConsumableCapacity
        self._versions: dict[int, list[int]] | None = None
        if len(slots) < len(devices):
            self._versions = defaultdict(list)
            for index, device in enumerate(devices):
                self._versions[device.slot].append(index)

    def versions(self, slot: int) -> Sequence[int]:
        """The devices behind a slot. Where each device is published once, slots are numbered as devices are."""
        return (slot,) if self._versions is None else self._versions[slot]

    def read(self, claims: Iterable[ResourceClaim]) -> Iterator[Holding]:
        """What the claims hold.

        Results with admin access hold nothing (KEP-5018). Those with a share ID hold a share and what it consumes, all
        others the whole device (KEP-5075). What a result recorded for counters that are consumed by request is charged
        in every generation that publishes the device (KEP-5941).
        """
        for claim, result in _results(claims):
            slot = self._slots.get(result.device_id)
            if slot is not None:
                recorded = result.consumed_capacity
                capacity = tuple([(name, amount.nanos) for name, amount in recorded.items()])
                counters = [
                    charged
                    for version in (self.versions(slot) if recorded else ())
                    for charged in counters_charged(recorded, self._sources[version], self._published)
                ]
                share = result.share_id is not None and self._shares
                yield Holding(claim, slot, share, Charge(capacity, tuple(counters)))


def _results(claims: Iterable[ResourceClaim]) -> Iterator[tuple[ClaimKey, DeviceRequestAllocationResult]]:
    for claim in claims:
        yield from ((claim.key, result) for result in claim.results if not result.admin_access)


def held_results(claims: Iterable[ResourceClaim]) -> Iterator[DeviceRequestAllocationResult]:
    """What allocated claims hold: everything but what they have by admin access."""
    return (result for _, result in _results(claims))


def allocated_devices(claims: Iterable[ResourceClaim]) -> frozenset[DeviceID]:
    """The devices that claims hold, alone or with others, whether or not they are published."""
    return frozenset(result.device_id for result in held_results(claims))


def usage_of(holdings: Iterable[Holding]) -> Usage:
    """The holdings as plain sums."""
    held: set[int] = set()
    shares: dict[int, int] = defaultdict(int)
    consumed: dict[int, dict[str, int]] = {}
    for holding in holdings:
        if holding.share:
            shares[holding.slot] += 1
        else:
            held.add(holding.slot)
        for name, amount in holding.charge.capacity:
            sums = consumed.setdefault(holding.slot, {})
            sums[name] = sums.get(name, 0) + amount
    return Usage(frozenset(held), dict(shares), consumed)


def counters_left(
    counters: Sequence[Counter], devices: Sequence[Device], holdings: Iterable[Holding], reader: HoldingReader
) -> tuple[Counter, ...]:
    """The counters with what the holdings leave of them.

    A device in use charges its fixed amounts once, in every generation that publishes it (KEP-4815), and each of its
    allocations what it recorded for counters that are consumed by request (KEP-5941).
    """
    taken: dict[int, int] = defaultdict(int)
    opened: set[int] = set()
    for holding in holdings:
        for index, amount in holding.charge.counters:
            taken[index] += amount
        if holding.slot not in opened:
            opened.add(holding.slot)
            for version in reader.versions(holding.slot):
                for index, amount in devices[version].consumes:
                    taken[index] += amount
    left = list(counters)
    for index, amount in taken.items():
        one = left[index]
        left[index] = Counter(one.id, one.total, one.total - amount, one.group)
    return tuple(left)
