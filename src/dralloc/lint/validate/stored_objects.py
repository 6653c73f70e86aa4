"""What an API server keeps of objects: it drops fields that its version does not know, or whose gate is off.

Its validation sees the rest. Source: ``pkg/registry/resource/*/strategy.go``, dropDisabledFields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from dralloc.lint.validate.rule import (
    CLASSES,
    CONSUMPTIONS,
    COUNTER_SETS,
    DETAILS,
    DEVICES,
    EXACT,
    RESULTS,
    SLICES,
    Issue,
    Place,
    Places,
)
from dralloc.objects.api import UNSET, ApiObject
from dralloc.objects.cluster import Cluster
from dralloc.objects.features import Features

__all__ = ["Stored"]


class _Gated(NamedTuple):
    """Fields and the gate that they need; without one here, the minor version since when they are on by default.

    ``named``: the minor version since when they have their names. A server before that does not read what is in them.
    """

    fields: Places
    gate: str = ""
    since: float = float("inf")
    named: int = 0

    def is_kept(self, features: Features, minor: int | None) -> bool:
        """Return whether an API server keeps them."""
        if self.gate:
            return bool(getattr(features, self.gate))
        return minor is None or minor >= self.since

    def is_unread(self, path: str, minor: int | None) -> bool:
        """Return whether a path leads to what an API server does not even read."""
        return (
            minor is not None
            and minor < self.named
            and self.fields.lead_to(path)
        )

    def __str__(self) -> str:
        return (
            f"the feature {self.gate} is off"
            if self.gate
            else "this version does not have it, or not by default"
        )


_BINDING: Final = "bindingConditions|bindingFailureConditions"
_OPERATIONS: Final = "skipNodeOperations"

_GATED: Final = (
    _Gated(
        DEVICES / "taints" | (DETAILS | RESULTS) / "tolerations", "DeviceTaints"
    ),
    _Gated(
        SLICES / "sharedCounters|perDeviceNodeSelection", "PartitionableDevices"
    ),
    _Gated(
        DEVICES / "consumesCounters|nodeName|nodeSelector|allNodes",
        "PartitionableDevices",
    ),
    _Gated(
        DEVICES / f"{_BINDING}|bindsToNode" | RESULTS / _BINDING,
        "DeviceBindingAndStatus",
    ),
    _Gated(
        DEVICES / "allowMultipleAllocations"
        | DEVICES / "capacity[].requestPolicy",
        "ConsumableCapacity",
    ),
    _Gated(
        DETAILS / "capacity" | RESULTS / "shareID|consumedCapacity",
        "ConsumableCapacity",
    ),
    _Gated(DEVICES / "attributes[]", "ListTypeAttributes"),
    _Gated((EXACT | RESULTS) / "adminAccess", "AdminAccess"),
    _Gated(CLASSES / "spec.extendedResourceName", "ExtendedResource"),
    _Gated(
        COUNTER_SETS / "counters[].requestPolicy"
        | CONSUMPTIONS / "counters[].valueFrom",
        "SharedConsumableCapacity",
    ),
    _Gated(CONSUMPTIONS / "compatibilityGroups", "DeviceCompatibilityGroups"),
    _Gated(SLICES / "partitionTypeAttribute", since=37, named=37),
    _Gated(
        DEVICES / "nodeAllocatableResources",
        "NodeAllocatableResources",
        named=37,
    ),
    _Gated(DETAILS / "derivedAttributes" | (SLICES | RESULTS) / _OPERATIONS),
)


@dataclass
class Stored:
    """Objects as an API server with some gates, of some minor version, keeps them.

    ``dropped`` says for each object which fields it loses, once for all fields that go for one reason.
    """

    features: Features
    minor: int | None
    dropped: list[tuple[ApiObject, Issue]] = field(default_factory=list)

    def cluster(self, cluster: Cluster) -> Cluster:
        """Return the cluster without the fields that are dropped."""
        off = [
            gated
            for gated in _GATED
            if not gated.is_kept(self.features, self.minor)
        ]
        if not off:
            return cluster
        return replace(
            cluster,
            slices=tuple(
                self._object("slices", object_, off)
                for object_ in cluster.slices
            ),
            classes={
                name: self._object("classes", object_, off)
                for name, object_ in cluster.classes.items()
            },
            claims=tuple(
                self._object("claims", object_, off)
                for object_ in cluster.claims
            ),
            templates=tuple(
                self._object("templates", object_, off)
                for object_ in cluster.templates
            ),
        )

    def has_no(self, path: str) -> bool:
        """Return whether a path is in a field of a name that this version does not know: dropped, whatever is in it."""
        return any(gated.is_unread(path, self.minor) for gated in _GATED)

    def _object(self, kind: str, object_: Any, off: list[_Gated]) -> Any:
        for gated in off:
            paths: list[str] = []
            for steps in gated.fields.of(kind):
                object_ = _without(object_, steps, "", paths)
            if paths:
                further = (
                    f" and {len(paths) - 1} more" if len(paths) > 1 else ""
                )
                self.dropped.append(
                    (
                        object_,
                        Issue(
                            paths[0],
                            f"the API server drops it{further}, as {gated}",
                        ),
                    )
                )
        return object_


def _without(value: Any, steps: Place, at: str, paths: list[str]) -> Any:
    """Return a copy with the fields at a place emptied, and collect their paths; the value itself if there are none."""
    fields, steps_below = steps[0], steps[1:]
    for step in fields:
        below, path, before = (
            getattr(value, step.python),
            f"{at}.{step.wire}".removeprefix("."),
            len(paths),
        )
        # A field with its default says nothing, so that nothing is lost with it.
        absent = _default(value, step.python)
        if below is None or below == absent:
            continue
        if step.repeated:
            below = _each(below, partial(_item, steps_below, path, paths))
        elif steps_below:
            below = _without(below, steps_below, path, paths)
        else:
            paths.append(path)
            below = absent
        # Only what lost something is copied, with all that is around it.
        if len(paths) > before:
            value = _with(value, step.python, below, is_set=below is not absent)
    return value


def _each(items: Any, change: Callable[[object, Any], Any]) -> Any:
    if isinstance(items, Mapping):
        return {key: change(key, item) for key, item in items.items()}
    return tuple(change(index, item) for index, item in enumerate(items))


def _item(
    steps_below: Place, path: str, paths: list[str], key: object, item: Any
) -> Any:
    """Change an item of a list or map; where a path ends with an item, it is about the lists among the values there."""
    if steps_below:
        return _without(item, steps_below, f"{path}[{key}]", paths)
    if isinstance(item, tuple):
        paths.append(f"{path}[{key}]")
        return UNSET
    return item


def _default(value: Any, python: str) -> Any:
    fields = (
        type(value).model_fields
        if isinstance(value, BaseModel)
        else type(value).__dataclass_fields__
    )
    return fields[python].default


def _with(value: Any, python: str, new: Any, *, is_set: bool) -> Any:
    if not isinstance(value, BaseModel):
        return replace(value, **{python: new})
    copy = value.model_copy(update={python: new})
    if not is_set:
        copy.model_fields_set.discard(python)
    return copy
