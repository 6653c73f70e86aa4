"""Rules about classes beside their selectors and configurations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from dralloc.api import DeviceClass
from dralloc.validate.checks import form, limit
from dralloc.validate.names import extended_resource_name
from dralloc.validate.places import CLASSES
from dralloc.validate.rule import Issue, Part, ValidationContext, errors, warnings

__all__ = ["RULES"]


class _Shared(NamedTuple):
    """An extended resource and the classes that stand for it."""

    resource: str
    classes: list[str]


def _resources(context: ValidationContext) -> Iterator[Part[_Shared]]:
    by_name: dict[str, list[DeviceClass]] = defaultdict(list)
    for one in context.cluster.classes.values():
        if one.spec.extended_resource_name:
            by_name[one.spec.extended_resource_name].append(one)
    for name, found in by_name.items():
        yield Part(found[-1], "spec.extendedResourceName", _Shared(name, [one.name for one in found]))


def _unique_resource(one: _Shared, at: str) -> Iterator[Issue]:
    if len(one.classes) > 1:
        yield Issue(at, f'"{one.resource}" stands for several classes, one of which is used: {", ".join(one.classes)}')


RULES: Final = (
    *errors(
        CLASSES,
        ("class-config-limit", limit(32, "spec.config", "configurations"), "A class has at most 32 configurations."),
    ),
    *errors(
        CLASSES,
        (
            "class-extended-resource",
            form("spec.extendedResourceName", extended_resource_name),
            "extendedResourceName is an extended resource's name.",
        ),
        origin="resource.k8s.io validation, validateDeviceClassSpec; KEP-5004",
    ),
    *warnings(
        _resources,
        (
            "class-extended-resource-unique",
            _unique_resource,
            "An extended resource stands for one class; of several, the newest is used.",
        ),
        origin="resource.k8s.io types, DeviceClassSpec; KEP-5004",
    ),
)
