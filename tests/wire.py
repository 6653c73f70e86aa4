"""Short ways to write clusters in tests: plain data in wire form, then a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dralloc.objects.cluster import Cluster
from dralloc.objects.load import load_documents

Json = dict[str, Any]

VERSION = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"

_NODE_SELECTION = {
    "nodeName",
    "nodeSelector",
    "allNodes",
    "perDeviceNodeSelection",
}


def node(name: str = "node-0", **labels: str) -> Json:
    """A node; underscores in label names stand for dashes."""
    metadata = {
        "name": name,
        "labels": {
            key.replace("_", "-"): value for key, value in labels.items()
        },
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


def device(
    name: str, attributes: Mapping[str, Any] | None = None, **fields: Any
) -> Json:
    """A device; attributes by value, everything else in wire form."""
    names = {bool: "bool", int: "int", str: "string", list: "strings"}
    wire = {
        key: {names[type(value)]: value}
        for key, value in (attributes or {}).items()
    }
    return {"name": name, "attributes": wire, **fields}


def gpus(count: int, **fields: Any) -> list[Json]:
    """Devices gpu-0, gpu-1, ... with their index as attribute."""
    return [
        device(f"gpu-{index}", {"index": index}, **fields)
        for index in range(count)
    ]


def resource_slice(
    devices: Sequence[Json] = (),
    *,
    name: str = "slice-0",
    pool: str = "pool-0",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    **spec: Any,
) -> Json:
    """A slice; for node-0 unless it says otherwise."""
    where: Json = (
        {} if spec.keys() & _NODE_SELECTION else {"nodeName": "node-0"}
    )
    if "sharedCounters" in spec and where:
        where = {"allNodes": True}
    content: Json = {"devices": list(devices)} if devices else {}
    identity = {
        "name": pool,
        "generation": generation,
        "resourceSliceCount": count,
    }
    return {
        "apiVersion": VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": identity,
            **where,
            **content,
            **spec,
        },
    }


def counters(name: str, **amounts: str) -> Json:
    """A counter set."""
    return {
        "name": name,
        "counters": {key: {"value": value} for key, value in amounts.items()},
    }


def consumes(counter_set: str, **amounts: str) -> list[Json]:
    """What a device consumes of one counter set."""
    return [
        {
            "counterSet": counter_set,
            "counters": {
                key: {"value": value} for key, value in amounts.items()
            },
        }
    ]


def device_class(
    name: str = "gpu", *expressions: str, config: Sequence[Json] = ()
) -> Json:
    """A class with CEL selectors."""
    selectors = [
        {"cel": {"expression": expression}} for expression in expressions
    ]
    spec = {"selectors": selectors, "config": list(config)}
    return {
        "apiVersion": VERSION,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def request(
    name: str = "gpu",
    *expressions: str,
    device_class: str = "gpu",
    **fields: Any,
) -> Json:
    """An ``exactly`` request with CEL selectors."""
    selectors = [
        {"cel": {"expression": expression}} for expression in expressions
    ]
    return {
        "name": name,
        "exactly": {
            "deviceClassName": device_class,
            "selectors": selectors,
            **fields,
        },
    }


def sub(
    name: str, *expressions: str, device_class: str = "gpu", **fields: Any
) -> Json:
    """An entry of ``firstAvailable``."""
    selectors = [
        {"cel": {"expression": expression}} for expression in expressions
    ]
    return {
        "name": name,
        "deviceClassName": device_class,
        "selectors": selectors,
        **fields,
    }


def first_available(name: str, *subs: Json) -> Json:
    """A prioritized list."""
    return {"name": name, "firstAvailable": list(subs)}


def claim(
    name: str, *requests: Json, status: Json | None = None, **devices: Any
) -> Json:
    """A claim in the default namespace."""
    wire = {
        "apiVersion": VERSION,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }
    return {**wire, "status": status} if status else wire


def allocated(name: str, *results: Json) -> Json:
    """A claim that holds devices; each result needs at least ``device``."""
    full = [
        {"request": "gpu", "driver": DRIVER, "pool": "pool-0", **result}
        for result in results
    ]
    return claim(
        name, request(), status={"allocation": {"devices": {"results": full}}}
    )


def pod(name: str, *claims: str, **spec: Any) -> Json:
    """A pod that uses the claims."""
    entries = [
        {"name": f"c{index}", "resourceClaimName": claim_name}
        for index, claim_name in enumerate(claims)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"resourceClaims": entries, **spec},
    }


def cluster(*objects: Json | Sequence[Json]) -> Cluster:
    """A cluster of objects; lists of objects are taken apart."""
    flat: list[Json] = []
    for item in objects:
        flat.extend([item] if isinstance(item, dict) else item)
    return load_documents(flat, source="test")
