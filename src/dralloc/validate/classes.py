"""Rules about classes beside their selectors and configurations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from dralloc.api import DeviceClass
from dralloc.validate.names import extended_resource_name
from dralloc.validate.rule import Issue, Part, Scene, at_most, error, named, warning
from dralloc.validate.walk import classes

__all__ = ["RULES"]

MAX_CONFIGS: Final = 32


class _Shared(NamedTuple):
    """An extended resource and the classes that stand for it."""

    resource: str
    classes: list[str]


def _resources(scene: Scene) -> Iterator[Part[_Shared]]:
    by_name: dict[str, list[DeviceClass]] = defaultdict(list)
    for _, _, one in classes(scene):
        if one.spec.extended_resource_name:
            by_name[one.spec.extended_resource_name].append(one)
    for name, found in by_name.items():
        yield Part(found[-1], "spec.extendedResourceName", _Shared(name, [one.name for one in found]))


def _config_limit(one: DeviceClass, _at: str) -> Iterator[Issue]:
    yield from at_most(MAX_CONFIGS, one.spec.config, "spec.config", "configurations")


def _extended_resource(one: DeviceClass, _at: str) -> Iterator[Issue]:
    if one.spec.extended_resource_name is not None:
        yield from named(one.spec.extended_resource_name, "spec.extendedResourceName", extended_resource_name)


def _unique_resource(one: _Shared, at: str) -> Iterator[Issue]:
    if len(one.classes) > 1:
        yield Issue(at, f'"{one.resource}" stands for several classes, one of which is used: {", ".join(one.classes)}')


RULES: Final = (
    error("class-config-limit", classes, _config_limit, "A class has at most 32 configurations."),
    error(
        "class-extended-resource",
        classes,
        _extended_resource,
        "extendedResourceName is an extended resource's name.",
        "resource.k8s.io validation, validateDeviceClassSpec; KEP-5004",
    ),
    warning(
        "class-extended-resource-unique",
        _resources,
        _unique_resource,
        "An extended resource stands for one class; of several, the newest is used.",
        "resource.k8s.io types, DeviceClassSpec; KEP-5004",
    ),
)
