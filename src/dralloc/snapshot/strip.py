"""Trims objects to what dralloc reads of them: no images, no environment, no managed fields.

Objects of ``resource.k8s.io`` stay whole but for their metadata; of the others only what is listed here stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from dralloc.api.expansion import POD_CLAIM_ANNOTATION
from dralloc.compiler.extended import EXTENDED_RESOURCE_ANNOTATION
from dralloc.snapshot.server import Json

__all__ = ["is_needed", "trimmed"]

_ALL: Final = None
_Fields = Mapping[str, Any]
"""Fields that stay: each either whole (`_ALL`) or with these fields of its own."""

_NO_LABELS: Final[_Fields] = {
    "name": _ALL,
    "namespace": _ALL,
    "uid": _ALL,
    "annotations": {POD_CLAIM_ANNOTATION: _ALL, EXTENDED_RESOURCE_ANNOTATION: _ALL},
    "creationTimestamp": _ALL,
    "deletionTimestamp": _ALL,
    "ownerReferences": _ALL,
}
_METADATA: Final[_Fields] = {**_NO_LABELS, "labels": _ALL}
_CONTAINER: Final[_Fields] = {"name": _ALL, "resources": _ALL, "restartPolicy": _ALL}
_POD_SPEC: Final[_Fields] = {
    "nodeName": _ALL,
    "nodeSelector": _ALL,
    "affinity": {"nodeAffinity": _ALL},
    "priority": _ALL,
    "priorityClassName": _ALL,
    "schedulingGates": _ALL,
    "schedulingGroup": _ALL,
    "workloadRef": _ALL,
    "resourceClaims": _ALL,
    "resources": _ALL,
    "overhead": _ALL,
    "initContainers": _CONTAINER,
    "containers": _CONTAINER,
}
_POD_STATUS: Final = {"phase": _ALL, "resourceClaimStatuses": _ALL, "extendedResourceClaimStatus": _ALL}
_OWNER: Final[_Fields] = {
    "metadata": _NO_LABELS,
    "spec": {
        "replicas": _ALL,
        "parallelism": _ALL,
        "completions": _ALL,
        "suspend": _ALL,
        "template": {"metadata": _METADATA, "spec": _POD_SPEC},
    },
}
_GROUP: Final[_Fields] = {"metadata": _NO_LABELS, "spec": _ALL, "status": {"resourceClaimStatuses": _ALL}}
_OTHERS: Final[Mapping[tuple[str, str], _Fields]] = {
    ("", "Namespace"): {"metadata": _METADATA},
    ("", "Node"): {
        "metadata": _METADATA,
        "spec": {"unschedulable": _ALL},
        "status": {"capacity": _ALL, "allocatable": _ALL},
    },
    ("", "Pod"): {"metadata": _METADATA, "spec": _POD_SPEC, "status": _POD_STATUS},
    ("", "ResourceQuota"): {"metadata": _NO_LABELS, "spec": _ALL},
    ("apps", "Deployment"): _OWNER,
    ("apps", "ReplicaSet"): _OWNER,
    ("apps", "StatefulSet"): _OWNER,
    ("batch", "Job"): _OWNER,
    ("scheduling.k8s.io", "PodGroup"): _GROUP,
    ("scheduling.k8s.io", "PriorityClass"): {"metadata": _NO_LABELS, "value": _ALL, "globalDefault": _ALL},
    ("scheduling.k8s.io", "Workload"): _GROUP,
}


def is_needed(one: Json) -> bool:
    """Whether an object of a live cluster matters: a pod does if it uses devices or belongs to a group."""
    if one.get("kind") != "Pod":
        return True
    spec, status = _mapping(one.get("spec")), _mapping(one.get("status"))
    if any(spec.get(field) for field in ("resourceClaims", "schedulingGroup", "workloadRef")):
        return True
    return bool(status.get("extendedResourceClaimStatus")) or any("/" in name for name in _resources(spec))


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
    identity = _identity(one)
    fields = _OTHERS.get(identity) or {**dict.fromkeys(one, _ALL), "metadata": _METADATA}
    head: Json = {key: one[key] for key in ("apiVersion", "kind") if key in one}
    return {**head, **cast(Json, _kept(one, fields))}


def _kept(value: Any, fields: _Fields | None) -> Any:
    if fields is None or value is None:
        return value
    if isinstance(value, list):
        return [_kept(item, fields) for item in value]
    if not isinstance(value, dict):
        return None
    found = {key: _kept(part, fields[key]) for key, part in value.items() if key in fields}
    return {key: part for key, part in found.items() if part or fields[key] is None}


def _identity(one: Json) -> tuple[str, str]:
    group, slash, _ = str(one.get("apiVersion") or "").partition("/")
    return group if slash else "", str(one.get("kind") or "")
