"""What one allocation of a device takes (KEP-5075 "Scheduler", KEP-5941 "Allocation behavior")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dralloc.api import Counter, DeviceCapacity
from dralloc.inventory.catalog import PublishedDevice
from dralloc.inventory.policy import amount_taken
from dralloc.problem import Charge
from dralloc.quantity import Quantity

Counters = Sequence[Counter] | Mapping[int, Counter]

__all__ = ["charge_for", "counters_charged"]


def charge_for(
    requested: Mapping[str, Quantity], source: PublishedDevice, counters: Counters, *, shareable: bool
) -> Charge | None:
    """What an allocation of the device takes when a request asks for these amounts.

    Parameters
    ----------
    requested
        Amounts by capacity name, exactly as the request spells the names.
    counters
        The counters as they were published, by their index.

    Returns
    -------
    Charge or None
        None if the device lacks a requested capacity, has less than is asked for, or a policy forbids the amount.
    """
    capacity = source.device.capacity
    keys = {key for _, key in source.requested_counters}
    if any(name not in capacity and name not in keys for name in requested):
        return None
    taken = _capacity_taken(requested, capacity)
    if taken is None:
        return None
    recorded = taken if shareable else {}
    if keys:
        by_request = _recorded_by_request({**requested, **recorded}, source, counters)
        if by_request is None:
            return None
        recorded = {**by_request, **recorded}
    return Charge(
        capacity=tuple((name, amount.nanos) for name, amount in taken.items()) if shareable else (),
        counters=tuple(counters_charged(recorded, source, counters)),
        recorded=tuple(recorded.items()),
    )


def _capacity_taken(
    requested: Mapping[str, Quantity], capacity: Mapping[str, DeviceCapacity]
) -> dict[str, Quantity] | None:
    """The amount of each consumable capacity; None if one of them is short or its policy says no."""
    taken = {}
    for name, entry in capacity.items():
        if entry.consumable:
            amount = amount_taken(requested.get(name), entry.value, entry.request_policy)
        else:
            amount = requested.get(name, entry.value)
        if amount is None or amount > entry.value:
            return None
        if entry.consumable:
            taken[name] = amount
    return taken


def _recorded_by_request(
    requested: Mapping[str, Quantity], source: PublishedDevice, counters: Counters
) -> dict[str, Quantity] | None:
    """The amounts to record for counters that are consumed by request, by capacity key.

    Several counters may follow one key with policies of their own: the largest amount is recorded, and each counter is
    charged what its policy makes of the recorded amount, so that the charge can be rebuilt from the record.
    """
    recorded: dict[str, Quantity] = {}
    for index, key in source.requested_counters:
        counter = counters[index]
        amount = amount_taken(requested.get(key), counter.value, counter.request_policy)
        if amount is None:
            return None
        recorded[key] = max(recorded.get(key, amount), amount)
    return recorded


def counters_charged(
    recorded: Mapping[str, Quantity], source: PublishedDevice, counters: Counters
) -> Iterator[tuple[int, int]]:
    """What an allocation with that ``consumedCapacity`` charges to counters by request: pairs of counter and nanos."""
    for index, key in source.requested_counters:
        if key in recorded:
            counter = counters[index]
            amount = amount_taken(recorded[key], counter.value, counter.request_policy) or recorded[key]
            yield index, amount.nanos
