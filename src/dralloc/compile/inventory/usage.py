"""Usage: the holdings of allocated claims, and where the newest slices contradict them.

Usage is always derived from ``status.allocation``, never guessed.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from dralloc.objects.api import (
    CounterSet,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceSlice,
)
from dralloc.objects.api import Device as ApiDevice
from dralloc.objects.api.slice_reader import named
from dralloc.objects.features import Features
from dralloc.objects.names import DeviceID, PoolID
from dralloc.objects.quantity import Quantity
from dralloc.problem import (
    Counter,
    CounterIndex,
    Device,
    DeviceIndex,
    Numbered,
    SlotIndex,
    Usage,
)
from dralloc.problem.ledger import Holding

__all__ = [
    "Drift",
    "find_drift",
    "held_results",
    "left_of_counters",
    "usage_of",
]


def held_results(
    claims: Iterable[ResourceClaim],
) -> Iterator[tuple[ResourceClaim, DeviceRequestAllocationResult]]:
    """Return the allocation results of claims, each with its claim, without admin access."""
    return (
        (claim, result)
        for claim in claims
        for result in claim.results
        if not result.admin_access
    )


def usage_of(holdings: Iterable[Holding]) -> Usage:
    """The holdings as plain sums."""
    held: set[SlotIndex] = set()
    shares: Tally[SlotIndex] = Tally()
    consumed: dict[SlotIndex, Tally[str]] = defaultdict(Tally)
    for holding in holdings:
        if holding.share:
            shares[holding.slot] += 1
        else:
            held.add(holding.slot)
        for name, amount in holding.charge.capacity:
            consumed[holding.slot][name] += amount
    return Usage(
        frozenset(held),
        dict(shares),
        {slot: dict(amounts) for slot, amounts in consumed.items()},
    )


def left_of_counters(
    counters: Sequence[Counter],
    devices: Numbered[DeviceIndex, Device],
    holdings: Iterable[Holding],
    versions_of: Callable[[SlotIndex], Iterable[DeviceIndex]],
) -> tuple[Counter, ...]:
    """The counters with what the holdings leave of them.

    A device in use charges its fixed amounts once, in every generation that publishes it (KEP-4815), and each of its
    allocations what it recorded for counters that are consumed by request (KEP-5941).

    Parameters
    ----------
    versions_of
        Tells the devices behind a slot.
    """
    charged: Tally[CounterIndex] = Tally()
    opened: set[int] = set()
    for holding in holdings:
        for index, amount in holding.charge.counters:
            charged[index] += amount
        if holding.slot not in opened:
            opened.add(holding.slot)
            for version in versions_of(holding.slot):
                for index, amount in devices[version].consumes:
                    charged[index] += amount
    remaining = list(counters)
    for index, amount in charged.items():
        counter = remaining[index]
        remaining[index] = Counter(
            counter.id, counter.total, counter.total - amount, counter.group
        )
    return tuple(remaining)


# ----------------------------------------------------------------------------
# Where allocated claims and the newest slices contradict each other.
#
# What an allocated device consumes of counters is written in slices only, and slices
# change: a driver may publish a pool again without a device that is in use, or with
# other counters for it. Nobody can tell then what is left of the counters
# (kubernetes/kubernetes#140802), and more may be allocated than there is.


class Drift(NamedTuple):
    """One contradiction: the claim, the field path in it, what is wrong, the pool that it is about."""

    claim: ResourceClaim
    path: str
    rule: str
    pool: PoolID


def find_drift(
    slices: Sequence[ResourceSlice],
    claims: Iterable[ResourceClaim],
    features: Features,
) -> Iterator[Drift]:
    """Compare what the claims hold with what is published. Admin access holds nothing and is not looked at."""
    held = [
        (claim, result_index, result)
        for claim in claims
        for result_index, result in enumerate(claim.results)
        if not result.admin_access
    ]
    published = _Published.of(
        slices, {result.device_id for _, _, result in held}, features
    )
    consumed: dict[tuple[DeviceID, str], int] = defaultdict(int)
    for claim, result_index, result in held:
        for name, rule in _contradictions(
            result, published, consumed, features
        ):
            path = f"status.allocation.devices.results[{result_index}].{name}"
            yield Drift(claim, path, rule, result.device_id.pool_id)


@dataclass
class _Published:
    """The published facts about held devices, now and in earlier generations, and about their pools."""

    newest: dict[PoolID, int] = field(default_factory=dict)
    devices: dict[DeviceID, ApiDevice] = field(default_factory=dict)
    earlier: dict[DeviceID, list[tuple[int, ApiDevice]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    sets: dict[tuple[PoolID, str], CounterSet] = field(default_factory=dict)
    by_request: bool = True

    @classmethod
    def of(
        cls,
        slices: Sequence[ResourceSlice],
        held: Iterable[DeviceID],
        features: Features,
    ) -> _Published:
        published = cls(by_request=features.SharedConsumableCapacity)
        names: dict[PoolID, set[str]] = defaultdict(set)
        for id_ in held:
            names[id_.pool_id].add(id_.device)
        if not names:
            return published
        relevant = [slice_ for slice_ in slices if slice_.pool_id in names]
        # The newest generation of each pool must be known before a device can be called earlier.
        for slice_ in relevant:
            generation = slice_.spec.pool.generation
            published.newest[slice_.pool_id] = max(
                generation, published.newest.get(slice_.pool_id, generation)
            )
        for slice_ in relevant:
            published._enter(slice_, names[slice_.pool_id])
        return published

    def _enter(self, slice_: ResourceSlice, names: Set[str]) -> None:
        pool, generation = slice_.pool_id, slice_.spec.pool.generation
        newest = generation == self.newest[pool]
        for device in named(slice_.spec.devices, names):
            if newest:
                self.devices[DeviceID(*pool, device.name)] = device
            else:
                self.earlier[DeviceID(*pool, device.name)].append(
                    (generation, device)
                )
        for counter_set in slice_.spec.shared_counters if newest else ():
            self.sets[pool, counter_set.name] = counter_set

    def requested(self, id_: DeviceID) -> Mapping[str, list[Quantity]]:
        """The counters that the device consumes by request, by capacity key (KEP-5941)."""
        totals: dict[str, list[Quantity]] = defaultdict(list)
        for consumption in (
            self.devices[id_].consumes_counters if self.by_request else ()
        ):
            published = self.sets.get((id_.pool_id, consumption.counter_set))
            counters = published.counters if published else {}
            for name, consumed in consumption.counters.items():
                total = counters.get(name)
                if consumed.value_from is not None and total is not None:
                    totals[consumed.value_from.capacity_key].append(total.value)
        return totals


def _contradictions(
    result: DeviceRequestAllocationResult,
    published: _Published,
    consumed: dict[tuple[DeviceID, str], int],
    features: Features,
) -> Iterator[tuple[str, str]]:
    """Yield the faults of one result: pairs of field and rule. Adds shares' consumption up in ``consumed``."""
    id_ = result.device_id
    device = published.devices.get(id_)
    if id_.pool_id not in published.newest:
        yield (
            "pool",
            f"{id_.pool_id} is not published; what device {id_} takes of counters is unknown",
        )
    elif device is None:
        newest = published.newest[id_.pool_id]
        yield (
            "device",
            f"{id_} is not in generation {newest} of its pool any more; what it takes of counters is unknown",
        )
    else:
        yield from _changes(id_, device, published)
        # With the gate off, a share counts as the device as a whole.
        if features.ConsumableCapacity:
            if (
                result.share_id is not None
                and not device.allow_multiple_allocations
            ):
                yield (
                    "shareID",
                    f"device {id_} does not allow multiple allocations any more",
                )
            if result.share_id is None and device.allow_multiple_allocations:
                yield (
                    "device",
                    f"{id_} allows multiple allocations now, but this claim holds all of it",
                )
            yield from _consumption(result, device, published, consumed)


def _changes(
    id_: DeviceID, device: ApiDevice, published: _Published
) -> Iterator[tuple[str, str]]:
    newest = published.newest[id_.pool_id]
    for generation, earlier in published.earlier.get(id_, ()):
        if earlier.consumes_counters != device.consumes_counters:
            yield (
                "device",
                f"{id_} consumes other counters in generation {newest} than in generation {generation}",
            )
        if earlier.capacity != device.capacity:
            yield (
                "device",
                f"{id_} has other capacity in generation {newest} than in generation {generation}",
            )


def _consumption(
    result: DeviceRequestAllocationResult,
    device: ApiDevice,
    published: _Published,
    consumed: dict[tuple[DeviceID, str], int],
) -> Iterator[tuple[str, str]]:
    """Whether the recorded ``consumedCapacity`` is what the device makes an allocation consume."""
    id_ = result.device_id
    by_request = published.requested(id_)
    for name, amount in result.consumed_capacity.items():
        path = f"consumedCapacity[{name}]"
        capacity = device.capacity.get(name)
        if capacity is None and name not in by_request:
            yield path, f"device {id_} has no such capacity any more"
        elif capacity is not None:
            # Claims are looked at one after the other: whoever takes more than is left
            # is the one to be told.
            consumed[id_, name] += amount.nanos
            if consumed[id_, name] > capacity.value.nanos:
                together = (
                    ""
                    if consumed[id_, name] == amount.nanos
                    else " together with other claims"
                )
                total = Quantity(consumed[id_, name], amount.format)
                yield (
                    path,
                    f"{total}{together} is more than the {capacity.value} of device {id_}",
                )
        for total in by_request.get(name, ()):
            if amount > total:
                yield (
                    path,
                    f"{amount} is more than the {total} of the counter that device {id_} consumes",
                )
    shared = device.capacity.items() if result.share_id is not None else ()
    consumable = [name for name, entry in shared if entry.consumable]
    for name in dict.fromkeys((*consumable, *by_request)):
        if name not in result.consumed_capacity:
            yield (
                "consumedCapacity",
                f"does not say how much of {name} is consumed of device {id_}",
            )
