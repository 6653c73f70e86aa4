"""Rules about resources of the node that a device stands for or needs besides (KEP-5517)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dralloc.api import Device
from dralloc.errors import QuantityError
from dralloc.quantity import parse_quantity
from dralloc.validate.checks import named
from dralloc.validate.names import node_resource_name
from dralloc.validate.places import DEVICES, Places
from dralloc.validate.rule import Issue, Parts, errors

__all__ = ["RULES"]

_ORIGIN: Final = "resource.k8s.io validation, validateNodeAllocatableResources; KEP-5517"
_Fields = Mapping[str, Any]
_ENTRIES: Final = DEVICES / "nodeAllocatableResources[]"


def _objects(places: Places) -> Parts:
    """The JSON at some places, which is kept as it was written, where it is an object."""
    return lambda context: (part for part in places(context) if isinstance(part.value, dict))


_MAPPINGS: Final = _objects(_ENTRIES / "mapping")
_OVERHEADS: Final = _objects(_ENTRIES / "overhead")


def _name(device: Device, at: str) -> Iterator[Issue]:
    for name in device.node_allocatable_resources or {}:
        yield from named(name, f"{at}.nodeAllocatableResources[{name}]", node_resource_name)


def _says_something(entry: Any, at: str) -> Iterator[Issue]:
    if not isinstance(entry, dict) or (entry.get("mapping") is None and entry.get("overhead") is None):
        yield Issue(at, "needs mapping or overhead")


def _capacity_key(device: Device, at: str) -> Iterator[Issue]:
    for name, entry in (device.node_allocatable_resources or {}).items():
        mapping = entry.get("mapping") if isinstance(entry, dict) else None
        key = mapping.get("capacityKey") if isinstance(mapping, dict) else None
        if key is not None and key not in device.capacity:
            path = f"{at}.nodeAllocatableResources[{name}].mapping.capacityKey"
            yield Issue(path, f'"{key}" is no capacity of the device')


def _together(mapping: _Fields, at: str) -> Iterator[Issue]:
    key, multiplier = mapping.get("capacityKey"), mapping.get("capacityMultiplier")
    if key is not None and multiplier is None:
        yield Issue(f"{at}.capacityMultiplier", "is required with capacityKey")
    if multiplier is not None and key is None:
        yield Issue(f"{at}.capacityKey", "is required with capacityMultiplier")


def _one_of(mapping: _Fields, at: str) -> Iterator[Issue]:
    given = [field for field in ("capacityKey", "deviceMultiplier") if mapping.get(field) is not None]
    if len(given) != 1 and "capacityMultiplier" not in mapping:
        yield Issue(
            at, f"exactly one of capacityKey and deviceMultiplier is required, not {' and '.join(given) or 'none'}"
        )


def _amounts(fields: _Fields, names: tuple[str, ...], at: str) -> Iterator[tuple[str, int | None]]:
    """Amounts in nanos; None for what is no quantity."""
    for name in names:
        if fields.get(name) is not None:
            try:
                yield f"{at}.{name}", parse_quantity(str(fields[name])).nanos
            except QuantityError:
                yield f"{at}.{name}", None


def _positive(mapping: _Fields, at: str) -> Iterator[Issue]:
    for path, nanos in _amounts(mapping, ("capacityMultiplier", "deviceMultiplier"), at):
        if nanos is None or nanos <= 0:
            yield Issue(path, "must be a quantity greater than zero")


def _overhead(overhead: _Fields, at: str) -> Iterator[Issue]:
    if overhead.get("perPod") is None and overhead.get("perContainer") is None:
        yield Issue(at, "needs perPod or perContainer")


def _not_negative(overhead: _Fields, at: str) -> Iterator[Issue]:
    for path, nanos in _amounts(overhead, ("perPod", "perContainer"), at):
        if nanos is None or nanos < 0:
            yield Issue(path, "must be a quantity that is not negative")


RULES: Final = (
    *errors(
        DEVICES,
        ("node-resource-name", _name, "Resources are cpu, memory or hugepages-<size>."),
        ("node-resource-capacity", _capacity_key, "capacityKey is a capacity of the device."),
        origin=_ORIGIN,
    ),
    *errors(
        _ENTRIES, ("node-resource-empty", _says_something, "A resource has a mapping or an overhead."), origin=_ORIGIN
    ),
    *errors(
        _MAPPINGS,
        ("node-resource-pair", _together, "capacityKey and capacityMultiplier come together."),
        ("node-resource-one-of", _one_of, "A mapping follows a capacity or the devices."),
        ("node-resource-multiplier", _positive, "Multipliers are greater than zero."),
        origin=_ORIGIN,
    ),
    *errors(
        _OVERHEADS,
        ("node-overhead-empty", _overhead, "An overhead is per pod or per container."),
        ("node-overhead-negative", _not_negative, "Overheads are not negative."),
        origin=_ORIGIN,
    ),
)
