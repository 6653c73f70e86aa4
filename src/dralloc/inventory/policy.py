"""How much a request takes of a capacity or counter: defaults, rounding, limits (KEP-5075, "Request policy").

The rules are upstream's: values are compared exactly, steps are counted in whole units. A step that is not above zero,
which the API server refuses and upstream's allocator divides by, makes no amount valid but the default.
"""

from __future__ import annotations

from dralloc.api import CapacityRequestPolicy, CapacityRequestPolicyRange
from dralloc.quantity import NANOS, Format, Quantity

__all__ = ["amount_taken"]


def amount_taken(requested: Quantity | None, total: Quantity, policy: CapacityRequestPolicy | None) -> Quantity | None:
    """The amount that is consumed of something with that total value and request policy.

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
        amount = policy.default if policy is not None and policy.default is not None else total
    elif policy is None:
        return requested
    elif policy.valid_range is not None:
        amount = _rounded_into(policy.valid_range, requested)
    else:
        amount = next((value for value in policy.valid_values if requested <= value), requested)
    return amount if policy is None or _allowed(policy, amount) else None


def _whole(quantity: Quantity) -> int:
    """The value in whole units, rounded up."""
    return -(-quantity.nanos // NANOS)


def _rounded_into(valid: CapacityRequestPolicyRange, requested: Quantity) -> Quantity:
    if requested < valid.min:
        return valid.min
    if valid.step is None or _whole(valid.step) <= 0:
        return requested
    lowest, step = _whole(valid.min), _whole(valid.step)
    steps = -(-(_whole(requested) - lowest) // step)
    return Quantity((lowest + steps * step) * NANOS, Format.BINARY)


def _allowed(policy: CapacityRequestPolicy, amount: Quantity) -> bool:
    if policy.default is not None and amount == policy.default:
        return True
    if policy.valid_range is not None:
        return _in_range(policy.valid_range, amount)
    return not policy.valid_values or amount in policy.valid_values


def _in_range(valid: CapacityRequestPolicyRange, amount: Quantity) -> bool:
    if valid.max is not None and amount > valid.max:
        return False
    if valid.step is None:
        return True
    step = _whole(valid.step)
    return step > 0 and (_whole(amount) - _whole(valid.min)) % step == 0
