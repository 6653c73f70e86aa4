"""What one allocation of a device takes (KEP-5075 "Scheduler", KEP-5941 "Allocation behavior").

Request policies are upstream's: values are compared exactly, steps are counted in whole units. A step that is not above
zero, which the API server refuses and upstream's allocator divides by, makes no amount valid but the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dralloc.compile.inventory.catalog import PublishedDevice
from dralloc.objects.api import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)
from dralloc.objects.api import Counter as ApiCounter
from dralloc.objects.quantity import NANOS, Format, Quantity
from dralloc.problem import Charge

Counters = Sequence[ApiCounter] | Mapping[int, ApiCounter]

__all__ = ["amount_taken", "charge_for", "counters_charged"]


def charge_for(
    requested: Mapping[str, Quantity],
    source: PublishedDevice,
    counters: Counters,
    *,
    shareable: bool,
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
    if not requested.keys() <= capacity.keys() | keys:
        return None
    capacity_amounts = _capacity_taken(requested, capacity)
    if capacity_amounts is None:
        return None
    recorded = capacity_amounts if shareable else {}
    if keys:
        by_request = _recorded_by_request({**requested, **recorded}, source, counters)
        if by_request is None:
            return None
        recorded = {**by_request, **recorded}
    return Charge(
        capacity=tuple(
            (name, amount.nanos) for name, amount in capacity_amounts.items()
        )
        if shareable
        else (),
        counters=tuple(counters_charged(recorded, source, counters)),
        recorded=tuple(recorded.items()),
    )


def _capacity_taken(
    requested: Mapping[str, Quantity], capacity: Mapping[str, DeviceCapacity]
) -> dict[str, Quantity] | None:
    """The amount of each consumable capacity; None if one of them is short or its policy says no."""
    amounts = {}
    for name, entry in capacity.items():
        if entry.consumable:
            amount = amount_taken(
                requested.get(name), entry.value, entry.request_policy
            )
        else:
            amount = requested.get(name, entry.value)
        if amount is None or amount > entry.value:
            return None
        if entry.consumable:
            amounts[name] = amount
    return amounts


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
            amount = (
                amount_taken(recorded[key], counter.value, counter.request_policy)
                or recorded[key]
            )
            yield index, amount.nanos


def amount_taken(
    requested: Quantity | None, total: Quantity, policy: CapacityRequestPolicy | None
) -> Quantity | None:
    """The amount that is consumed of something with that total value and request policy (KEP-5075, "Request policy").

    Parameters
    ----------
    requested
        What the request asks for; None if it does not mention it: then the policy's default, without one everything.

    Returns
    -------
    Quantity or None
        None if the policy forbids the amount. Whether it is still available is not looked at.
    """
    if requested is None:
        amount = (
            policy.default
            if policy is not None and policy.default is not None
            else total
        )
    elif policy is None:
        return requested
    # The amount is rounded up to one that the policy allows. What no rounding can help is not allowed in the end.
    elif policy.valid_range is not None:
        amount = _rounded_into(policy.valid_range, requested)
    else:
        amount = next(
            (value for value in policy.valid_values if requested <= value), requested
        )
    return (
        amount
        if policy is None or amount == policy.default or _allowed(policy, amount)
        else None
    )


def _whole(quantity: Quantity) -> int:
    """The value in whole units, rounded up."""
    return -(-quantity.nanos // NANOS)


def _rounded_into(valid: CapacityRequestPolicyRange, requested: Quantity) -> Quantity:
    if requested < valid.min:
        return valid.min
    if valid.step is None or _whole(valid.step) <= 0:
        return requested
    lowest, step = _whole(valid.min), _whole(valid.step)
    # Up to the next step above the lowest amount.
    steps = -(-(_whole(requested) - lowest) // step)
    return Quantity((lowest + steps * step) * NANOS, Format.BINARY)


def _allowed(policy: CapacityRequestPolicy, amount: Quantity) -> bool:
    valid = policy.valid_range
    if valid is None:
        return not policy.valid_values or amount in policy.valid_values
    if valid.max is not None and amount > valid.max:
        return False
    step = None if valid.step is None else _whole(valid.step)
    return step is None or (
        step > 0 and (_whole(amount) - _whole(valid.min)) % step == 0
    )
