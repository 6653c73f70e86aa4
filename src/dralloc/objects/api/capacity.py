"""Capacities of devices and counters of pools (KEP-5075, KEP-4815, KEP-5941).

A cluster has a million of these, so they are slotted dataclasses which pydantic validates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

from pydantic import Field, StrictBool, model_validator

from dralloc.objects.api.base import EMPTY, QuantityField, WireData, WireModel
from dralloc.objects.api.disclosure import AttributeName, CounterName
from dralloc.objects.quantity import Quantity

__all__ = [
    "NOT_CONSUMABLE",
    "CapacityRequestPolicy",
    "CapacityRequestPolicyRange",
    "CapacityRequirements",
    "ConsumedCounter",
    "Counter",
    "CounterSet",
    "CounterSource",
    "DeviceCapacity",
    "DeviceCounterConsumption",
]

_ZERO = Quantity(0)
"""What the API server keeps for an amount that is left out."""

NOT_CONSUMABLE = "~consumable"
"""Key by which the alpha spelling of KEP-5075 marks a capacity; no field of the API can be called so."""


@dataclass(frozen=True, slots=True)
class CapacityRequestPolicyRange(WireData):
    """Valid requests: ``min``, ``min + step``, and so on up to ``max``; any amount in between without a step."""

    min: QuantityField
    max: QuantityField | None = None
    step: QuantityField | None = None


@dataclass(frozen=True, slots=True)
class CapacityRequestPolicy(WireData):
    """How requests consume a capacity or a counter: what none means, and which amounts are valid."""

    default: QuantityField | None = None
    valid_values: tuple[QuantityField, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


@dataclass(frozen=True, slots=True)
class DeviceCapacity(WireData):
    """How much of something a device has.

    Parameters
    ----------
    value
        The whole amount.
    request_policy
        How it is consumed when the device allows multiple allocations.
    consumable
        False only for the alpha spelling of KEP-5075, where a capacity without policy is never consumed and a request
        for it is a ``>=`` filter. It has no v1 wire form and is not written.
    """

    value: QuantityField = _ZERO
    request_policy: CapacityRequestPolicy | None = None
    consumable: Annotated[StrictBool, Field(alias=NOT_CONSUMABLE, exclude=True)] = True


@dataclass(frozen=True, slots=True)
class Counter(WireData):
    """How much of something the devices of a pool share, and how requests consume it (KEP-5941)."""

    value: QuantityField = _ZERO
    request_policy: CapacityRequestPolicy | None = None


@dataclass(frozen=True, slots=True)
class CounterSet(WireData):
    """Counters under a common name that is unique in the pool."""

    name: CounterName
    counters: Mapping[CounterName, Counter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CounterSource(WireData):
    """The entry of a request's capacity that says how much of a counter is consumed (KEP-5941)."""

    capacity_key: AttributeName


@dataclass(frozen=True, slots=True)
class ConsumedCounter(WireData):
    """How much of a counter a device consumes: ``value`` always, ``value_from`` as requested (KEP-5941)."""

    value: QuantityField | None = None
    value_from: CounterSource | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        return (
            replace(self, value=_ZERO)
            if self.value is None and self.value_from is None
            else self
        )


@dataclass(frozen=True, slots=True)
class DeviceCounterConsumption(WireData):
    """What a device consumes of one counter set; groups that may be in use together (KEP-5963)."""

    counter_set: CounterName
    counters: Mapping[CounterName, ConsumedCounter] = field(default_factory=dict)
    compatibility_groups: tuple[CounterName, ...] = ()


class CapacityRequirements(WireModel):
    """How much of each capacity a request needs from every one of its devices."""

    requests: Mapping[AttributeName, QuantityField] = EMPTY
