"""The names that buyers of devices call them by: a product, and what part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dralloc.compile.inventory.catalog import PublishedDevice
from dralloc.objects.api import AttributeValue, Unset
from dralloc.objects.api import Device as ApiDevice

__all__ = ["product_name", "product_names"]

PRODUCTS: Final = ("productName", "model", "product", "deviceName")
"""Attributes that name a product, in the domain of the driver: the first that a device has counts."""

PARTS: Final = ("profile", "partitionProfile", "partitionType")
"""Attributes that say which part of a product a device is; the first that it has is added to the product."""


def product_name(
    device: ApiDevice, driver: str, names: Sequence[str] = ()
) -> str:
    """Return the product name of a device.

    Parameters
    ----------
    names
        The attributes that tell, all of which count; without any, the first of `PRODUCTS` and of `PARTS` does.

    Returns
    -------
    str
        Values with a slash between them; empty if the device has none of the attributes.
    """
    if names:
        return " / ".join(_values(device, driver, names))
    product = next(_values(device, driver, PRODUCTS), "")
    part = next(_values(device, driver, PARTS), "")
    return " / ".join(filter(None, (product, part)))


def product_names(
    sources: Iterable[PublishedDevice], names: Sequence[str] = ()
) -> list[str]:
    """Return the same for published devices. Equal attributes are one object after loading, and are read once."""
    names_by_attributes: dict[tuple[str, int], str] = {}
    published_names = []
    for source in sources:
        driver = source.slice.spec.driver
        key = driver, id(source.device.attributes)
        if key not in names_by_attributes:
            names_by_attributes[key] = product_name(
                source.device, driver, names
            )
        published_names.append(names_by_attributes[key])
    return published_names


def _values(
    device: ApiDevice, driver: str, names: Iterable[str]
) -> Iterator[str]:
    return (
        _text(value)
        for name in names
        if (value := device.attribute(name, driver)) is not None
    )


def _text(value: AttributeValue) -> str:
    match value:
        case Unset():
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(_text, value))
    return str(value)
