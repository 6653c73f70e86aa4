"""Attribute values as constraints compare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dralloc.objects.api import AttributeValue, Unset
from dralloc.objects.api import Device as ApiDevice
from dralloc.objects.api.slices import TYPE_NAMES
from dralloc.objects.features import Features
from dralloc.problem import Scalar

__all__ = ["comparable", "compared_values"]


def comparable(value: AttributeValue, features: Features) -> frozenset[Scalar]:
    """The scalars that an attribute stands for: one, or all of a list (KEP-5491).

    Empty if the value cannot be compared: it has none, or is a list and the feature is off.
    """
    if isinstance(value, Unset) or (
        isinstance(value, tuple) and not features.ListTypeAttributes
    ):
        return frozenset()
    items = value if isinstance(value, tuple) else (value,)
    return frozenset(
        # A subclass of str, such as a version, is compared by its text.
        (TYPE_NAMES[type(item)], str(item) if isinstance(item, str) else item)
        for item in items
    )


def compared_values(
    device: ApiDevice, driver: str, names: Iterable[str], features: Features
) -> Mapping[str, frozenset[Scalar]]:
    """The attributes of a device that constraints name, by the qualified name; those that it lacks are left out."""
    attributes = ((name, device.attribute(name, driver)) for name in names)
    return {
        name: comparable(value, features)
        for name, value in attributes
        if value is not None
    }
