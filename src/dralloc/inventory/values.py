"""Attribute values as constraints compare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dralloc.api import AttributeValue, Device, Unset, Version
from dralloc.features import Features
from dralloc.problem import Scalar

__all__ = ["comparable", "compared_values"]

_NAMES: dict[type, str] = {bool: "bool", int: "int", str: "string", Version: "version"}


def comparable(value: AttributeValue, features: Features) -> frozenset[Scalar]:
    """The scalars that an attribute stands for: one, or all of a list (KEP-5491).

    Empty if the value cannot be compared: it has none, or is a list and the feature is off.
    """
    if isinstance(value, Unset) or (isinstance(value, tuple) and not features.ListTypeAttributes):
        return frozenset()
    items = value if isinstance(value, tuple) else (value,)
    return frozenset((_NAMES[type(item)], str(item) if isinstance(item, str) else item) for item in items)


def compared_values(
    device: Device, driver: str, names: Iterable[str], features: Features
) -> Mapping[str, frozenset[Scalar]]:
    """The attributes of a device that constraints name, by the qualified name; those that it lacks are left out."""
    found = ((name, _look_up(name, device, driver)) for name in names)
    return {name: comparable(value, features) for name, value in found if value is not None}


def _look_up(attribute: str, device: Device, driver: str) -> AttributeValue | None:
    """The device's attribute of that name; the driver's domain may be left out on either side (KEP-4381)."""
    value = device.attributes.get(attribute)
    if value is None:
        domain, _, name = attribute.rpartition("/")
        if domain == driver:
            value = device.attributes.get(name)
        elif not domain:
            value = device.attributes.get(f"{driver}/{attribute}")
    return value
