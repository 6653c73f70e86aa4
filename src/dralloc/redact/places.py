"""Where in which object names, free text and secrets are. Fields that are not listed are kept as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

__all__ = ["DROPPED", "NAMES", "Place", "Schema", "rebuilt", "schema_of"]


class Place(Enum):
    """What a field holds. The value of a name is the word that its replacement starts with."""

    NODE = "node"
    POOL = "pool"
    DEVICE = "device"
    NAMESPACE = "namespace"
    CLAIM = "claim"
    TEMPLATE = "template"
    POD = "pod"
    OWNER = "owner"
    GROUP = "group"
    HOST = "host"
    QUOTA = "quota"
    RULE = "rule"
    SLICE = "slice"
    CONTAINER = "container"
    GANG = "label"
    """Value of a label of a pod: pods with equal ones may be a gang."""

    TEXT = 1
    """Text or a list of texts that may be a name or hold an identifier."""
    CEL = 2
    UID = 3
    EMPTY = 4
    """Becomes an empty object."""
    DROP = 5
    ATTRIBUTES = 6
    """Attributes of a device."""
    WORDS = 7
    """A text, or the keys of an object, that CEL may name and that stay as they are."""
    LABELS = 8
    """Labels of a node that some selector asks for."""
    NODE_LABELS = 9
    NAMESPACE_LABELS = 10
    REQUIREMENT = 11
    """A condition of a node selector."""
    POD_LABELS = 12
    REFERENCE = 13
    """An owner reference."""


NAMES: Final = tuple(place for place in Place if isinstance(place.value, str))
"""Places of names. A name that occurs in several is replaced with the word of the first of them."""

Schema = Place | Mapping[str, "Schema"]
"""A place, or what is in the fields of an object; lists are passed through, ``*`` is any other field."""

DROPPED: Final = object()
"""What a place turns into that leaves no trace."""

_SELECTOR: Final[Schema] = {
    "nodeSelectorTerms": {"matchExpressions": Place.REQUIREMENT, "matchFields": Place.REQUIREMENT}
}
_CEL: Final[Schema] = {"cel": {"expression": Place.CEL}}
_CONFIG: Final[Schema] = {"opaque": {"parameters": Place.EMPTY}}
_TAINT: Final[Schema] = {"value": Place.TEXT}


def _metadata(name: Place | None, labels: Place = Place.DROP) -> Schema:
    """Metadata of a namespaced object; None for a name that is kept."""
    common: Mapping[str, Schema] = {
        "namespace": Place.NAMESPACE,
        "uid": Place.UID,
        "labels": labels,
        "ownerReferences": Place.REFERENCE,
    }
    return common if name is None else {**common, "name": name}


_DEVICE: Final[Mapping[str, Schema]] = {
    "name": Place.DEVICE,
    "attributes": Place.ATTRIBUTES,
    "capacity": Place.WORDS,
    "nodeName": Place.NODE,
    "nodeSelector": _SELECTOR,
    "taints": _TAINT,
}
_SLICE_SPEC: Final[Schema] = {
    "driver": Place.WORDS,
    "pool": {"name": Place.POOL},
    "nodeName": Place.NODE,
    "nodeSelector": _SELECTOR,
    "devices": {**_DEVICE, "basic": _DEVICE},
}
_EXACT: Final[Mapping[str, Schema]] = {
    "selectors": _CEL,
    "tolerations": _TAINT,
    "derivedAttributes": {"expression": Place.CEL},
}
_CLAIM_SPEC: Final[Schema] = {
    "devices": {"requests": {**_EXACT, "exactly": _EXACT, "firstAvailable": _EXACT}, "config": _CONFIG}
}
_DEVICE_USE: Final[Mapping[str, Schema]] = {"pool": Place.POOL, "device": Place.DEVICE, "shareID": Place.UID}
_CLAIM_STATUS: Final[Schema] = {
    "allocation": {
        "devices": {"results": {**_DEVICE_USE, "tolerations": _TAINT}, "config": _CONFIG},
        "nodeSelector": _SELECTOR,
    },
    "reservedFor": {"name": Place.POD, "uid": Place.UID},
    "devices": {**_DEVICE_USE, "conditions": Place.DROP, "data": Place.DROP, "networkData": Place.DROP},
}
_POD_CLAIMS: Final[Schema] = {"resourceClaimName": Place.CLAIM, "resourceClaimTemplateName": Place.TEMPLATE}
_CONTAINER: Final[Schema] = {"name": Place.CONTAINER}
_POD_SPEC: Final[Schema] = {
    "nodeName": Place.NODE,
    "nodeSelector": Place.LABELS,
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": _SELECTOR,
            "preferredDuringSchedulingIgnoredDuringExecution": Place.DROP,
        }
    },
    "resourceClaims": _POD_CLAIMS,
    "schedulingGroup": {"podGroupName": Place.GROUP},
    "workloadRef": {"name": Place.GROUP, "podGroup": Place.GROUP, "podGroupReplicaKey": Place.GROUP},
    "initContainers": _CONTAINER,
    "containers": _CONTAINER,
}
_POD_STATUS: Final[Schema] = {
    "resourceClaimStatuses": _POD_CLAIMS,
    "extendedResourceClaimStatus": {
        "resourceClaimName": Place.CLAIM,
        "requestMappings": {"containerName": Place.CONTAINER},
    },
}
_OWNER: Final[Schema] = {
    "metadata": _metadata(Place.OWNER),
    "spec": {"template": {"metadata": _metadata(Place.POD, Place.POD_LABELS), "spec": _POD_SPEC}},
}
_GROUP: Final[Schema] = {
    "metadata": _metadata(Place.GROUP),
    "spec": {
        "controllerRef": Place.DROP,
        "podGroupTemplateRef": Place.DROP,
        "podGroups": {"name": Place.GROUP},
        "podGroupTemplates": Place.DROP,
        "resourceClaims": _POD_CLAIMS,
    },
    "status": {"resourceClaimStatuses": _POD_CLAIMS},
}
_SCHEMAS: Final[Mapping[str, Schema]] = {
    "Deployment": _OWNER,
    "DeviceClass": {
        "metadata": _metadata(None),
        "spec": {"selectors": _CEL, "config": _CONFIG, "suitableNodes": _SELECTOR},
    },
    "DeviceTaintRule": {
        "metadata": _metadata(Place.RULE),
        "spec": {
            "deviceSelector": {"pool": Place.POOL, "device": Place.DEVICE, "selectors": _CEL},
            "taint": _TAINT,
        },
        "status": Place.DROP,
    },
    "Job": _OWNER,
    "Namespace": {"metadata": _metadata(Place.NAMESPACE, Place.NAMESPACE_LABELS)},
    "Node": {"metadata": _metadata(Place.NODE, Place.NODE_LABELS)},
    "Pod": {"metadata": _metadata(Place.POD, Place.POD_LABELS), "spec": _POD_SPEC, "status": _POD_STATUS},
    "PodGroup": _GROUP,
    "PriorityClass": {"metadata": _metadata(None)},
    "ReplicaSet": _OWNER,
    "ResourceClaim": {"metadata": _metadata(Place.CLAIM), "spec": _CLAIM_SPEC, "status": _CLAIM_STATUS},
    "ResourceClaimTemplate": {
        "metadata": _metadata(Place.TEMPLATE),
        "spec": {"metadata": Place.DROP, "spec": _CLAIM_SPEC},
    },
    "ResourceQuota": {"metadata": _metadata(Place.QUOTA)},
    "ResourceSlice": {"metadata": _metadata(Place.SLICE), "spec": _SLICE_SPEC},
    "StatefulSet": _OWNER,
    "Workload": _GROUP,
}


def schema_of(kind: str) -> Schema:
    """Where things are in objects of a kind that dralloc reads."""
    return _SCHEMAS[kind]


def rebuilt(value: Any, schema: Schema, leaf: Callable[[Place, Any], Any]) -> Any:
    """A copy in which everything that has a place is what `leaf` makes of it, visited in the order of the object."""
    if isinstance(value, list):
        return [rebuilt(item, schema, leaf) for item in value]
    if isinstance(schema, Place):
        return leaf(schema, value)
    if not isinstance(value, dict):
        return value
    found = {}
    for key, part in value.items():
        inner = schema.get(key)
        new = part if inner is None or part is None else rebuilt(part, inner, leaf)
        if new is not DROPPED:
            found[key] = new
    return found
