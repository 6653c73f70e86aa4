"""Rules about amounts: counters, request policies, and what devices take of their node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from dralloc.lint.validate.checks import (
    at_most,
    distinct,
    dns_label,
    form,
    keys,
    limit,
    named,
    node_resource_name,
    required,
    told,
    unique,
)
from dralloc.lint.validate.rule import (
    CONSUMPTIONS,
    COUNTER_SETS,
    DEVICES,
    SLICES,
    Check,
    Issue,
    RulePart,
    ValidationContext,
    errors,
    nothing,
)
from dralloc.objects.api import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
)
from dralloc.objects.api.nodes import NodeAllocatableMapping
from dralloc.objects.errors import did_you_mean
from dralloc.objects.quantity import NANOS, Quantity

__all__ = ["ALLOCATABLE_RULES", "COUNTER_RULES"]

# ----------------------------------------------------------------------------
# Rules about counters, and about request policies.
#
# Counters are in the sets that slices share and in what devices consume of them
# (KEP-4815, KEP-5963). A policy says what may be asked of a capacity or a counter
# (KEP-5075, KEP-5941).

MAX_COUNTERS: Final = 32
MAX_VALUES: Final = 10
_MILLI: Final = NANOS // 1000
_INT64: Final = (2**63 - 1) * NANOS
_INT64_MILLI: Final = (2**63 - 1) * _MILLI
_COUNTER_ORIGIN: Final = (
    "resource.k8s.io validation, validateRequestPolicy; KEP-5075"
)
_GROUPS: Final = "compatibilityGroups"


@dataclass(frozen=True, slots=True)
class _Policy:
    """A policy beside the whole amount that it is about."""

    total: Quantity
    policy: CapacityRequestPolicy


@dataclass(frozen=True, slots=True)
class _Range:
    """A range beside the whole amount and the default of its policy."""

    total: Quantity
    default: Quantity
    range: CapacityRequestPolicyRange

    @property
    def bounds(self) -> dict[str, Quantity]:
        """The amounts that are given, by field."""
        fields = {
            "default": self.default,
            "min": self.range.min,
            "max": self.range.max,
            "step": self.range.step,
        }
        return {
            field: value for field, value in fields.items() if value is not None
        }

    @property
    def fractional(self) -> bool:
        """Whether anything is not a whole number: then steps are counted in thousandths."""
        return any(value.nanos % NANOS for value in self.bounds.values())


def _policies(context: ValidationContext) -> Iterator[RulePart[_Policy]]:
    """Yield the request policies of counters, and of the capacities of devices that may have any."""
    for places, field in ((DEVICES, "capacity"), (COUNTER_SETS, "counters")):
        for owner, path, holder in places(context):
            for name, amount in getattr(holder, field).items():
                if amount.request_policy is not None and getattr(
                    holder, "allow_multiple_allocations", True
                ):
                    policy = _Policy(amount.value, amount.request_policy)
                    yield RulePart(
                        owner, f"{path}.{field}[{name}].requestPolicy", policy
                    )


def _ranges(context: ValidationContext) -> Iterator[RulePart[_Range]]:
    for owner, path, amount in _policies(context):
        policy = amount.policy
        if (
            policy.valid_range is not None
            and policy.default is not None
            and not policy.valid_values
        ):
            yield RulePart(
                owner,
                f"{path}.validRange",
                _Range(amount.total, policy.default, policy.valid_range),
            )


def _shareable(device: Device, at: str) -> Iterator[Issue]:
    for name, capacity in device.capacity.items():
        if (
            capacity.request_policy is not None
            and not device.allow_multiple_allocations
        ):
            yield Issue(
                f"{at}.capacity[{name}].requestPolicy",
                "is only allowed with allowMultipleAllocations",
            )


def _one_form_of_policy(amount: _Policy, at: str) -> Iterator[Issue]:
    if amount.policy.valid_values and amount.policy.valid_range is not None:
        yield Issue(at, "only one of validValues and validRange is allowed")


def _default(amount: _Policy, at: str) -> Iterator[Issue]:
    values, valid_range = amount.policy.valid_values, amount.policy.valid_range
    if amount.policy.default is None and bool(values) is not (
        valid_range is not None
    ):
        yield Issue(
            f"{at}.default",
            f"is required with {'validValues' if values else 'validRange'}",
        )


def _value_limit(amount: _Policy, at: str) -> Iterator[Issue]:
    yield from at_most(
        MAX_VALUES, amount.policy.valid_values, f"{at}.validValues", "values"
    )


def _value_order(amount: _Policy, at: str) -> Iterator[Issue]:
    values = amount.policy.valid_values
    for index in range(1, len(values)):
        if values[index] < values[index - 1]:
            yield Issue(
                f"{at}.validValues[{index}]",
                f"{values[index]} is less than {values[index - 1]} before it",
            )


def _value_unique(amount: _Policy, at: str) -> Iterator[Issue]:
    # Too many values are an issue of their own.
    if len(amount.policy.valid_values) <= MAX_VALUES:
        yield from unique(amount.policy.valid_values, f"{at}.validValues")


def _value_whole(amount: _Policy, at: str) -> Iterator[Issue]:
    """Values differ where they are rounded up to whole numbers."""
    values = amount.policy.valid_values
    if len(values) <= MAX_VALUES:
        yield from unique(map(_whole, values), f"{at}.validValues")


def _value_size(amount: _Policy, at: str) -> Iterator[Issue]:
    for index, value in enumerate(amount.policy.valid_values):
        if value > amount.total:
            yield Issue(
                f"{at}.validValues[{index}]",
                f"{value} is more than the whole value {amount.total}",
            )


def _value_default(amount: _Policy, at: str) -> Iterator[Issue]:
    policy = amount.policy
    if (
        policy.valid_values
        and policy.default is not None
        and policy.default not in policy.valid_values
    ):
        yield Issue(
            f"{at}.validValues", f"does not have the default {policy.default}"
        )


def _ordered(small: str, large: str, field: str, words: str) -> Check:
    """One amount is at most another; else there is an issue with a field, in words about both."""

    def check(bounded: _Range, at: str) -> Iterator[Issue]:
        amounts = {**bounded.bounds, "total": bounded.total}
        if {small, large} <= amounts.keys() and amounts[small] > amounts[large]:
            yield Issue(f"{at}.{field}", words.format(**amounts))

    return check


_MIN_MAX: Final = _ordered("min", "max", "max", "{max} is less than min {min}")


def _default_inside(below: str, above: str) -> Check:
    """The default is in the range; else the issue is with the fields of these names."""
    low = _ordered(
        "min", "default", below, "the default {default} is less than min {min}"
    )
    high = _ordered(
        "default", "max", above, "the default {default} is more than max {max}"
    )
    return lambda bounded, at: (
        ()
        if any(_MIN_MAX(bounded, at))
        else (*low(bounded, at), *high(bounded, at))
    )


def _precision(bounded: _Range, at: str) -> Iterator[Issue]:
    for field, value in bounded.bounds.items():
        if value.nanos % _MILLI:
            yield Issue(f"{at}.{field}", f"{value} is finer than a thousandth")
        elif bounded.fractional and abs(value.nanos) > _INT64_MILLI:
            text = "is too large beside fractions: thousandths of it have more than 64 bits"
            yield Issue(f"{at}.{field}", f"{value} {text}")


def _bounds(bounded: _Range, at: str) -> Iterator[Issue]:
    # Steps are counted in int64; without a step amounts are only compared.
    if bounded.fractional or bounded.range.step is None:
        return
    for field, value in bounded.bounds.items():
        if field != "step" and value.nanos < 0:
            yield Issue(f"{at}.{field}", f"{value} is negative")
        elif value.nanos > _INT64:
            yield Issue(
                f"{at}.{field}", f"{value} is more than 9223372036854775807"
            )


def _step_positive(bounded: _Range, at: str) -> Iterator[Issue]:
    if bounded.range.step is not None and bounded.range.step.nanos <= 0:
        yield Issue(
            f"{at}.step", f"{bounded.range.step} is not greater than zero"
        )


def _step_zero(bounded: _Range, at: str) -> Iterator[Issue]:
    if bounded.range.step is not None and not bounded.range.step.nanos:
        yield Issue(
            f"{at}.step",
            "is zero, which makes API servers before Kubernetes 1.37 panic",
        )


def _step_size(bounded: _Range, at: str) -> Iterator[Issue]:
    step = bounded.range.step
    if (
        step is not None
        and step.nanos > 0
        and bounded.range.min + step > bounded.total
    ):
        yield Issue(
            f"{at}.step",
            f"min and one step, {bounded.range.min + step}, are more than the whole value {bounded.total}",
        )


def _step_multiple(amount: Callable[[Quantity], int]) -> Check:
    """Default and maximum are whole steps from the minimum, in amounts that count so."""

    def check(bounded: _Range, at: str) -> Iterator[Issue]:
        step = bounded.range.step
        if step is None or step.nanos <= 0:
            return
        for field in ("default", "max"):
            value = bounded.bounds.get(field)
            if value is not None and (
                amount(value) - amount(bounded.range.min)
            ) % amount(step):
                yield Issue(
                    f"{at}.step",
                    f"{field} {value} is not min {bounded.range.min} and a multiple of step {step}",
                )

    return check


def _whole(quantity: Quantity) -> int:
    """Return a quantity as an integer, rounded up, as upstream's `Quantity.Value` does."""
    return -(-quantity.nanos // NANOS)


COUNTER_RULES: Final = (
    *errors(
        SLICES,
        (
            "counter-set-limit",
            limit(8, "sharedCounters", "counter sets"),
            "A slice has at most 8 counter sets.",
        ),
        (
            "counter-set-unique",
            distinct("sharedCounters", "name"),
            "The names of a slice's counter sets differ.",
        ),
    ),
    *errors(
        COUNTER_SETS,
        (
            "counter-set-name",
            form("name", dns_label),
            "A counter set's name is a DNS label.",
        ),
        (
            "counter-set-empty",
            required("counters"),
            "A counter set has counters.",
        ),
        (
            "counter-limit",
            limit(MAX_COUNTERS, "counters", "counters"),
            "A counter set has at most 32 counters.",
        ),
        (
            "counter-name",
            keys("counters", dns_label),
            "A counter's name is a DNS label.",
        ),
    ),
    *errors(
        DEVICES,
        (
            "consumption-limit",
            limit(2, "consumesCounters", "counter sets"),
            "A device consumes counters of at most 2 sets.",
        ),
        (
            "consumption-unique",
            distinct("consumesCounters", "counter_set"),
            "A device names each counter set once.",
        ),
    ),
    *errors(
        CONSUMPTIONS,
        (
            "consumption-set",
            form("counterSet", dns_label),
            "A counter set's name is a DNS label.",
        ),
        (
            "consumption-empty",
            required("counters"),
            "A consumption names counters.",
        ),
        (
            "consumption-counter-limit",
            limit(MAX_COUNTERS, "counters", "counters"),
            "A consumption names at most 32 counters.",
        ),
        (
            "consumption-counter-name",
            keys("counters", dns_label),
            "A counter's name is a DNS label.",
        ),
        (
            "compatibility-group-limit",
            limit(2, _GROUPS, "groups"),
            "A consumption has at most 2 groups.",
        ),
        (
            "compatibility-group-unique",
            distinct(_GROUPS),
            "A consumption lists each group once.",
        ),
        (
            "compatibility-group-name",
            form(f"{_GROUPS}[]", dns_label),
            "A group's name is a DNS label.",
        ),
    ),
    *errors(
        DEVICES,
        (
            "policy-shareable",
            _shareable,
            "Only a device with allowMultipleAllocations has policies.",
        ),
        origin=_COUNTER_ORIGIN,
    ),
    *errors(
        _policies,
        (
            "policy-one-of",
            _one_form_of_policy,
            "A policy has validValues or validRange.",
        ),
        (
            "policy-default",
            _default,
            "A policy with values or a range has a default.",
        ),
        (
            "policy-value-limit",
            _value_limit,
            "A policy has at most 10 valid values.",
        ),
        ("policy-value-order", _value_order, "Valid values ascend."),
        (
            "policy-value-unique",
            _value_unique,
            "Valid values differ.",
            _value_whole,
        ),
        (
            "policy-value-size",
            _value_size,
            "Valid values are at most the whole value.",
        ),
        (
            "policy-value-default",
            _value_default,
            "The default is a valid value.",
        ),
        origin=_COUNTER_ORIGIN,
    ),
    *errors(
        _ranges,
        (
            "policy-min-size",
            _ordered(
                "min",
                "total",
                "min",
                "{min} is more than the whole value {total}",
            ),
            "The minimum is at most the whole value.",
        ),
        (
            "policy-max-size",
            _ordered(
                "max",
                "total",
                "max",
                "{max} is more than the whole value {total}",
            ),
            "The maximum is at most the whole value.",
        ),
        ("policy-min-max", _MIN_MAX, "The minimum is at most the maximum."),
        (
            "policy-range-default",
            _default_inside("default", "default"),
            "The default is in the range.",
            _default_inside("min", "max"),
        ),
        (
            "policy-precision",
            _precision,
            "Amounts have at most three decimal places, and beside such 64 bits in thousandths.",
            nothing,
        ),
        (
            "policy-bounds",
            _bounds,
            "With a step, amounts are from 0 to 2^63 - 1.",
            nothing,
        ),
        (
            "policy-step-positive",
            _step_positive,
            "The step is greater than zero; zero makes API servers before Kubernetes 1.37 panic.",
            _step_zero,
        ),
        (
            "policy-step-size",
            _step_size,
            "The minimum and one step are at most the whole value.",
        ),
        (
            "policy-step-multiple",
            _step_multiple(attrgetter("nanos")),
            "Default and maximum are whole steps from min.",
            _step_multiple(_whole),
        ),
        origin=_COUNTER_ORIGIN,
    ),
)


# ----------------------------------------------------------------------------
# Rules about resources of the node that a device stands for or needs besides
# (KEP-5517).

_ALLOCATABLE_ORIGIN: Final = (
    "resource.k8s.io validation, validateNodeAllocatableResources; KEP-5517"
)
_ENTRIES: Final = DEVICES / "nodeAllocatableResources[]"


def _name(device: Device, at: str) -> Iterator[Issue]:
    for name in device.node_allocatable_resources:
        yield from named(
            name, f"{at}.nodeAllocatableResources[{name}]", node_resource_name
        )


def _capacity_key(device: Device, at: str) -> Iterator[Issue]:
    for name, entry in device.node_allocatable_resources.items():
        key = entry.mapping.capacity_key if entry.mapping else None
        if key is not None and key not in device.capacity:
            path = f"{at}.nodeAllocatableResources[{name}].mapping.capacityKey"
            meant = did_you_mean(key, device.capacity)
            yield Issue(path, f'"{key}" is no capacity of the device{meant}')


def _together(mapping: NodeAllocatableMapping, at: str) -> Iterator[Issue]:
    key, multiplier = mapping.capacity_key, mapping.capacity_multiplier
    if key is not None and multiplier is None:
        yield Issue(f"{at}.capacityMultiplier", "is required with capacityKey")
    if multiplier is not None and key is None:
        yield Issue(f"{at}.capacityKey", "is required with capacityMultiplier")


def _one_multiplier(
    mapping: NodeAllocatableMapping, at: str
) -> Iterator[Issue]:
    fields = {
        "capacityKey": mapping.capacity_key,
        "deviceMultiplier": mapping.device_multiplier,
    }
    set_fields = [field for field, value in fields.items() if value is not None]
    if len(set_fields) != 1 and mapping.capacity_multiplier is None:
        yield Issue(
            at,
            f"exactly one of capacityKey and deviceMultiplier is required, not {' and '.join(set_fields) or 'none'}",
        )


ALLOCATABLE_RULES: Final = (
    *errors(
        DEVICES,
        (
            "node-resource-name",
            _name,
            "Resources are cpu, memory or hugepages-<size>.",
        ),
        (
            "node-resource-capacity",
            _capacity_key,
            "capacityKey is a capacity of the device.",
        ),
        origin=_ALLOCATABLE_ORIGIN,
    ),
    *errors(
        _ENTRIES,
        (
            "node-resource-empty",
            told(
                "",
                lambda entry: entry.mapping is entry.overhead is None,
                "needs mapping or overhead",
            ),
            "A resource has a mapping or an overhead.",
        ),
        origin=_ALLOCATABLE_ORIGIN,
    ),
    *errors(
        _ENTRIES / "mapping",
        (
            "node-resource-pair",
            _together,
            "capacityKey and capacityMultiplier come together.",
        ),
        (
            "node-resource-one-of",
            _one_multiplier,
            "A mapping follows a capacity or the devices.",
        ),
        (
            "node-resource-multiplier",
            told(
                "capacityMultiplier|deviceMultiplier",
                lambda multiplier: multiplier.nanos <= 0,
                "must be a quantity greater than zero",
            ),
            "Multipliers are above zero.",
        ),
        origin=_ALLOCATABLE_ORIGIN,
    ),
    *errors(
        _ENTRIES / "overhead",
        (
            "node-overhead-empty",
            told(
                "",
                lambda overhead: (
                    overhead.per_pod is overhead.per_container is None
                ),
                "needs perPod or perContainer",
            ),
            "An overhead is per pod or per container.",
        ),
        (
            "node-overhead-negative",
            told(
                "perPod|perContainer",
                lambda amount: amount.nanos < 0,
                "must be a quantity that is not negative",
            ),
            "Overheads are not negative.",
        ),
        origin=_ALLOCATABLE_ORIGIN,
    ),
)
