"""Trims objects to what dralloc reads of them: no environment, no commands, no managed fields.

LiveObjects of ``resource.k8s.io`` stay whole but for their metadata; of the others only what their models know stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dralloc.live.snapshot.server import Json
from dralloc.objects.api import ResourceObject
from dralloc.objects.api.reading import model_of
from dralloc.objects.api.schema import rebuilt, wire_schema

__all__ = ["is_needed", "trimmed"]


def is_needed(one: Json) -> bool:
    """Whether an object of a live cluster matters.

    A pod does if it uses devices, belongs to a group, or takes something of a node: until it has come to its end.
    """
    if one.get("kind") != "Pod":
        return True
    spec, status = _mapping(one.get("spec")), _mapping(one.get("status"))
    if any(
        spec.get(field)
        for field in ("resourceClaims", "schedulingGroup", "workloadRef")
    ):
        return True
    if spec.get("nodeName") and status.get("phase") not in ("Succeeded", "Failed"):
        return True
    return bool(status.get("extendedResourceClaimStatus")) or any(
        "/" in name for name in _resources(spec)
    )


def _resources(spec: Json) -> Iterator[str]:
    """The resources that the containers of a pod name; those with a domain are extended resources."""
    for field in ("initContainers", "containers"):
        containers = spec.get(field)
        for container in containers if isinstance(containers, list) else ():
            for amounts in _mapping(_mapping(container).get("resources")).values():
                yield from _mapping(amounts)


def _mapping(value: Any) -> Json:
    """The value, or nothing where a server gives something else: whoever loads the object says what is wrong."""
    return value if isinstance(value, dict) else {}


def trimmed(one: Json) -> Json:
    """The object without what dralloc does not read; of a kind that it reads. The given one is not changed."""
    model = model_of(one)
    if model is None:
        return {}
    read: Json = rebuilt(one, wire_schema(model), lambda _, text: text)
    if issubclass(model, ResourceObject):
        read = {**one, "metadata": read.get("metadata", {})}
    return {**{key: one[key] for key in ("apiVersion", "kind")}, **read}
