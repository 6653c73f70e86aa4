"""Attribute values as constraints compare them."""

from __future__ import annotations

from dralloc.api import AttributeValue, Unset, Version
from dralloc.features import Features
from dralloc.problem import Scalar

__all__ = ["comparable"]

_NAMES: dict[type, str] = {bool: "bool", int: "int", str: "string", Version: "version"}


def comparable(value: AttributeValue, features: Features) -> frozenset[Scalar]:
    """The scalars that an attribute stands for: one, or all of a list (KEP-5491).

    Empty if the value cannot be compared: it has none, or is a list and the feature is off.
    """
    if isinstance(value, Unset) or (isinstance(value, tuple) and not features.ListTypeAttributes):
        return frozenset()
    items = value if isinstance(value, tuple) else (value,)
    return frozenset((_NAMES[type(item)], str(item) if isinstance(item, str) else item) for item in items)
