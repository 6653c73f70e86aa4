"""The kinds of objects that are read, and the models that they are read by."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from dralloc.objects.api.base import ApiObject, PartialObject, ResourceObject
from dralloc.objects.api.claims import ResourceClaim, ResourceClaimTemplate
from dralloc.objects.api.nodes import Namespace, Node, ResourceQuota
from dralloc.objects.api.owners import OWNERS
from dralloc.objects.api.slices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceSlice,
)
from dralloc.objects.api.versions import CONVERSIONS, Json
from dralloc.objects.api.workloads import (
    POD_GROUP_VERSIONS,
    CompositePodGroup,
    Pod,
    PodGroup,
    PriorityClass,
    Workload,
)

__all__ = ["DRA_GROUP", "MODELS", "RESOURCE_KINDS", "model_of"]

DRA_GROUP: Final = "resource.k8s.io"
"""The API group of claims, classes and slices."""
RESOURCE_KINDS: Final[Mapping[str, type[ResourceObject]]] = {
    model.kind: model
    for model in (
        DeviceClass,
        DeviceTaintRule,
        ResourceClaim,
        ResourceClaimTemplate,
        ResourceSlice,
    )
}
_OTHER_KINDS: Final[Mapping[tuple[str, str], type[PartialObject]]] = {
    (model.api_version, model.kind): model
    for model in (Namespace, Node, Pod, PriorityClass, ResourceQuota, Workload)
} | {
    (f"scheduling.k8s.io/{version}", model.kind): model
    for model in (PodGroup, CompositePodGroup)
    for version in POD_GROUP_VERSIONS
}
MODELS: Final[tuple[type[ApiObject], ...]] = (
    *RESOURCE_KINDS.values(),
    *dict.fromkeys(_OTHER_KINDS.values()),
    *OWNERS.values(),
)
"""The models of all kinds that are read."""


def model_of(raw: Json) -> type[ApiObject] | None:
    """Return the model by which an object is read; None for one of a kind or version that is not read."""
    return _model(str(raw.get("kind")), str(raw.get("apiVersion")))


@lru_cache
def _model(kind: str, api_version: str) -> type[ApiObject] | None:
    group, _, version = api_version.partition("/")
    if group == DRA_GROUP:
        return RESOURCE_KINDS.get(kind) if version in CONVERSIONS else None
    return OWNERS.get((group if version else "", kind)) or _OTHER_KINDS.get(
        (api_version, kind)
    )
