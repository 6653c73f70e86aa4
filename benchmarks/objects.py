"""Kubernetes objects in wire form, as a cluster's API server gives them out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

__all__ = [
    "DRIVER",
    "NAMESPACE",
    "Json",
    "allocated_claim",
    "amounts",
    "claim",
    "claim_spec",
    "consumes",
    "device",
    "device_class",
    "exactly",
    "first_available",
    "held_claim",
    "node",
    "pod",
    "pod_group",
    "resource_slice",
    "selectors",
    "template",
]

Json = dict[str, Any]

API: Final = "resource.k8s.io/v1"
DRIVER: Final = "gpu.example.com"
NAMESPACE: Final = "default"

_KINDS: Final = {bool: "bool", int: "int", str: "string", list: "strings"}


def node(name: str) -> Json:
    """A node."""
    labels = {"kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
    }


def device(name: str, attributes: Mapping[str, Any], **fields: Any) -> Json:
    """A device; attributes by value, the other fields in wire form."""
    wire = {
        key: {_KINDS[type(value)]: value} for key, value in attributes.items()
    }
    return {"name": name, "attributes": wire, **fields}


def amounts(**values: str) -> Json:
    """Quantities as capacities or counters have them; underscores in names stand for dashes."""
    return {
        name.replace("_", "-"): {"value": value}
        for name, value in values.items()
    }


def consumes(counter_set: str, counters: Json) -> list[Json]:
    """What a device consumes of one counter set."""
    return [{"counterSet": counter_set, "counters": counters}]


def resource_slice(
    name: str,
    node_name: str,
    devices: Sequence[Json] = (),
    *,
    pool: str = "",
    slices: int = 1,
    **spec: Any,
) -> Json:
    """A slice for one node, of a pool that is called like the node unless it says otherwise."""
    identity = {
        "name": pool or node_name,
        "generation": 1,
        "resourceSliceCount": slices,
    }
    content = {"devices": list(devices)} if devices else {}
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "nodeName": node_name,
            "pool": identity,
            **content,
            **spec,
        },
    }


def selectors(*expressions: str) -> list[Json]:
    """CEL selectors."""
    return [{"cel": {"expression": expression}} for expression in expressions]


def device_class(name: str, *expressions: str) -> Json:
    """A class."""
    spec = {"selectors": selectors(*expressions)}
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def exactly(
    name: str, class_name: str, *expressions: str, **fields: Any
) -> Json:
    """A request; also an entry of a prioritized list, which has the fields at its top."""
    return {"name": name, "exactly": _details(class_name, expressions, fields)}


def first_available(
    name: str, *entries: tuple[str, str, Sequence[str], Json]
) -> Json:
    """A prioritized list of (name, class, selectors, other fields)."""
    subs = [
        {"name": sub, **_details(class_name, exprs, fields)}
        for sub, class_name, exprs, fields in entries
    ]
    return {"name": name, "firstAvailable": subs}


def _details(class_name: str, expressions: Iterable[str], fields: Json) -> Json:
    chosen = selectors(*expressions)
    return {
        "deviceClassName": class_name,
        **({"selectors": chosen} if chosen else {}),
        **fields,
    }


def claim_spec(*requests: Json, **devices: Any) -> Json:
    """What a claim asks for."""
    return {"devices": {"requests": list(requests), **devices}}


def template(name: str, spec: Json) -> Json:
    """A template of claims."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": spec},
    }


def claim(name: str, spec: Json) -> Json:
    """A claim that is not allocated."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": spec,
    }


def allocated_claim(
    name: str,
    class_name: str,
    node_name: str,
    devices: Iterable[str],
    pool: str = "",
) -> Json:
    """A claim that holds devices of a node."""
    results = [
        {
            "request": "gpu",
            "driver": DRIVER,
            "pool": pool or node_name,
            "device": device_name,
        }
        for device_name in devices
    ]
    return held_claim(
        name,
        claim_spec(exactly("gpu", class_name, count=len(results))),
        node_name,
        results,
    )


def held_claim(
    name: str, spec: Json, node_name: str, results: Sequence[Json]
) -> Json:
    """A claim that is allocated to a node, with these results."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node_name]}]
    selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
    status = {
        "allocation": {
            "devices": {"results": list(results)},
            "nodeSelector": selector,
        }
    }
    return {**claim(name, spec), "status": status}


def pod_group(name: str, members: int, topology: str = "") -> Json:
    """A gang of so many pods (KEP-4671), on nodes with one value of a label if that is given (KEP-5732)."""
    metadata = {"name": name, "namespace": NAMESPACE}
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": members}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
    }


def pod(
    name: str,
    *,
    templates: Sequence[str] = (),
    claims: Sequence[str] = (),
    group: str = "",
) -> Json:
    """A pending pod with claims from templates, or with claims that exist, alone or in a group."""
    entries = [
        *(
            {"name": f"t{index}", "resourceClaimTemplateName": template_name}
            for index, template_name in enumerate(templates)
        ),
        *(
            {"name": f"c{index}", "resourceClaimName": claim_name}
            for index, claim_name in enumerate(claims)
        ),
    ]
    metadata = {"name": name, "namespace": NAMESPACE}
    together = {"schedulingGroup": {"podGroupName": group}} if group else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"resourceClaims": entries, **together},
    }
