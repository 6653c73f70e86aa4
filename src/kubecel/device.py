"""A device as selectors see it: converted once from what a driver publishes, matched often."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubecel.kubernetes_types.attribute_values import (
    UNSET,
    AttributeValue,
    Version,
)
from kubecel.kubernetes_types.quantities import Quantity, parse_quantity
from kubecel.kubernetes_types.semantic_versions import parse_semver
from kubecel.values import INT_MAX, INT_MIN, DomainMap, TextMap, Value

__all__ = [
    "CelDevice",
    "convert_device",
    "device_from_wire",
    "with_own_quantities",
]

_FIELDS: Final[Mapping[str, Callable[[Any], AttributeValue]]] = {
    **dict.fromkeys(("ints", "bools", "strings"), tuple),
    "versions": lambda texts: tuple(map(Version, texts)),
    **dict.fromkeys(("int", "bool", "string"), lambda scalar: scalar),
    "version": Version,
}
"""What attributes have in the wire form, and what it becomes."""


@dataclass(frozen=True, slots=True)
class CelDevice:
    """A converted device. Convert once, match often; it is never changed and may be shared by threads.

    Parameters
    ----------
    variables
        The fields of the CEL variable ``device``.
    error
        Why every selector fails on this device; empty if they do not.
    """

    variables: dict[str, Value]
    error: str = ""


def with_own_quantities(device: CelDevice) -> dict[str, Value]:
    """The device's fields with capacities that only this evaluation sees, so that it may change how they are held.

    Comparing a quantity with a big one makes upstream hold it as a big one, too, and from then on it is no integer.
    """
    capacities = DomainMap()
    for domain, quantities in device.variables["capacity"].items():
        capacities[domain] = TextMap(
            (
                name,
                Quantity(shared.nanos, shared.format, shared.scale, own=True),
            )
            for name, shared in quantities.items()
        )
    return {**device.variables, "capacity": capacities}


def convert_device(
    driver: str,
    attributes: Mapping[str, AttributeValue],
    capacity: Mapping[str, Quantity],
    allow_multiple_allocations: bool = False,
) -> CelDevice:
    """Convert a device for matching.

    Features do not matter: upstream shows what a device has in any case, and only the checking of new expressions
    looks at them.

    Parameters
    ----------
    driver
        The driver's name: the domain of every attribute and capacity whose name has none.
    attributes, capacity
        By name, with or without a domain (``domain/name``).
    allow_multiple_allocations
        The device's ``allowMultipleAllocations``; absent means false.
    """
    domains, capacities = DomainMap(), DomainMap()
    try:
        for name, value in attributes.items():
            _put(domains, driver, name, _attribute(name, value))
    except ValueError as error:
        return CelDevice({}, str(error))
    for name, quantity in capacity.items():
        _put(capacities, driver, name, quantity)
    return CelDevice(
        {
            "driver": driver,
            "allowMultipleAllocations": allow_multiple_allocations,
            "attributes": domains,
            "capacity": capacities,
        }
    )


def _put(domains: DomainMap, driver: str, name: str, value: Value) -> None:
    domain, slash, identifier = name.partition("/")
    if not slash:
        domain, identifier = driver, name
    domains.setdefault(domain, TextMap())[identifier] = value


def _attribute(name: str, value: AttributeValue) -> Value:
    if isinstance(value, tuple):
        return tuple(_attribute(name, item) for item in value)
    if isinstance(value, Version):
        try:
            return parse_semver(str(value))
        except ValueError as error:
            raise ValueError(
                f"attribute {name}: parse semantic version: {error}"
            ) from error
    if isinstance(value, str):
        value.encode()  # text that is not Unicode could not be searched later
        return value
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and INT_MIN <= value <= INT_MAX:
        return value
    raise ValueError(f"attribute {name}: unsupported attribute value")


def device_from_wire(driver: str, device: Mapping[str, Any]) -> CelDevice:
    """Convert a device in the wire form of ``resource.k8s.io/v1``.

    Parameters
    ----------
    driver
        The driver's name.
    device
        Attributes like ``{"int": 3}``, ``{"version": "1.0.0"}`` or ``{"strings": [...]}``; capacity like
        ``{"value": "80Gi"}``.

    Raises
    ------
    QuantitySyntaxError
        A capacity is not a quantity.
    """
    wire_attributes = device.get("attributes") or {}
    wire_capacity = device.get("capacity") or {}
    attributes = {
        name: _wire_attribute(value) for name, value in wire_attributes.items()
    }
    capacity = {
        name: parse_quantity(str(value["value"]))
        for name, value in wire_capacity.items()
    }
    shareable = bool(device.get("allowMultipleAllocations"))
    return convert_device(driver, attributes, capacity, shareable)


def _wire_attribute(value: Mapping[str, Any]) -> AttributeValue:
    """Lists win over scalars, as upstream looks for them first."""
    for key, read in _FIELDS.items():
        if value.get(key) is not None:
            return read(value[key])
    return UNSET
