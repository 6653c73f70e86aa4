"""Rules about resources of the node that a device stands for or needs besides (KEP-5517)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.lint.validate.checks import named, told
from dralloc.lint.validate.names import node_resource_name
from dralloc.lint.validate.places import DEVICES
from dralloc.lint.validate.rule import Issue, errors
from dralloc.objects.api import Device
from dralloc.objects.api.node_allocatable import NodeAllocatableMapping

__all__ = ["ALLOCATABLE_RULES"]

_ORIGIN: Final = (
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
        key = entry.mapping and entry.mapping.capacity_key
        if key is not None and key not in device.capacity:
            path = f"{at}.nodeAllocatableResources[{name}].mapping.capacityKey"
            yield Issue(path, f'"{key}" is no capacity of the device')


def _together(mapping: NodeAllocatableMapping, at: str) -> Iterator[Issue]:
    key, multiplier = mapping.capacity_key, mapping.capacity_multiplier
    if key is not None and multiplier is None:
        yield Issue(f"{at}.capacityMultiplier", "is required with capacityKey")
    if multiplier is not None and key is None:
        yield Issue(f"{at}.capacityKey", "is required with capacityMultiplier")


def _one_of(mapping: NodeAllocatableMapping, at: str) -> Iterator[Issue]:
    ways = {
        "capacityKey": mapping.capacity_key,
        "deviceMultiplier": mapping.device_multiplier,
    }
    given = [field for field, value in ways.items() if value is not None]
    if len(given) != 1 and mapping.capacity_multiplier is None:
        yield Issue(
            at,
            f"exactly one of capacityKey and deviceMultiplier is required, not {' and '.join(given) or 'none'}",
        )


ALLOCATABLE_RULES: Final = (
    *errors(
        DEVICES,
        ("node-resource-name", _name, "Resources are cpu, memory or hugepages-<size>."),
        (
            "node-resource-capacity",
            _capacity_key,
            "capacityKey is a capacity of the device.",
        ),
        origin=_ORIGIN,
    ),
    *errors(
        _ENTRIES,
        (
            "node-resource-empty",
            told(
                "",
                lambda one: one.mapping is one.overhead is None,
                "needs mapping or overhead",
            ),
            "A resource has a mapping or an overhead.",
        ),
        origin=_ORIGIN,
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
            _one_of,
            "A mapping follows a capacity or the devices.",
        ),
        (
            "node-resource-multiplier",
            told(
                "capacityMultiplier|deviceMultiplier",
                lambda one: one.nanos <= 0,
                "must be a quantity greater than zero",
            ),
            "Multipliers are above zero.",
        ),
        origin=_ORIGIN,
    ),
    *errors(
        _ENTRIES / "overhead",
        (
            "node-overhead-empty",
            told(
                "",
                lambda one: one.per_pod is one.per_container is None,
                "needs perPod or perContainer",
            ),
            "An overhead is per pod or per container.",
        ),
        (
            "node-overhead-negative",
            told(
                "perPod|perContainer",
                lambda one: one.nanos < 0,
                "must be a quantity that is not negative",
            ),
            "Overheads are not negative.",
        ),
        origin=_ORIGIN,
    ),
)
