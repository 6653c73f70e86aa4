"""Objects that are in order, and a short way to break them."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from wire import (
    Json,
    claim,
    consumes,
    counters,
    device,
    device_class,
    first_available,
    request,
    resource_slice,
    sub,
)

__all__ = ["ABSENT", "Broken", "Edit", "attributes", "edited", "many"]

ABSENT: Final = object()
"""As a value of an edit: take the field away."""

Edit = Mapping[str, Any]
"""New values by path. The last step may be a new key, or the index behind the last item of a list."""

UID: Final = "7f1c2a9e-3b4d-4e5f-8a6b-0c1d2e3f4a5b"
OTHER_UID: Final = "0e9d8c7b-6a5f-4e4d-9c3b-2a1f0e9d8c7b"

_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


class Broken(NamedTuple):
    """A rule, and an edit that breaks it and no other.

    Parameters
    ----------
    what
        In words.
    base
        An object that is in order.
    edit
        What makes it break the rule.
    rule
        The only rule that is broken.
    path
        Where.
    fine
        An edit that is as close to breaking it as can be; None if that is the object as it is.
    """

    what: str
    base: Json
    edit: Edit
    rule: str
    path: str
    fine: Edit | None = None


def edited(base: Json, edit: Edit) -> Json:
    """A changed copy."""
    document = copy.deepcopy(base)
    for path, value in edit.items():
        *way, last = [key or name for key, name in _STEP.findall(path)]
        part: Any = document
        for step in way:
            part = (
                part[int(step)]
                if isinstance(part, list)
                else part.setdefault(step, {})
            )
        if isinstance(part, list):
            part[int(last) : int(last) + 1] = [] if value is ABSENT else [value]
        elif value is ABSENT:
            del part[last]
        else:
            part[last] = value
    return document


def many(count: int, item: Any, *, key: str = "name") -> list[Any]:
    """Copies of an item; in each ``{}`` stands for its number, in its key or in the item itself."""
    if isinstance(item, str):
        return [item.format(index) for index in range(count)]
    return [
        {**item, key: str(item[key]).format(index)} for index in range(count)
    ]


def attributes(count: int) -> Json:
    """That many attributes."""
    return {f"a{index}": {"int": index} for index in range(count)}


def status(**fields: Any) -> Json:
    """The status of a claim that has gpu-0."""
    result = {
        "request": "gpu",
        "driver": "gpu.example.com",
        "pool": "pool-0",
        "device": "gpu-0",
    }
    return {"allocation": {"devices": {"results": [result]}}, **fields}


def condition(**fields: Any) -> Json:
    """A condition of a device."""
    time = "2026-05-01T00:00:00Z"
    return {
        "type": "Ready",
        "status": "True",
        "reason": "Prepared",
        "message": "",
        "lastTransitionTime": time,
        **fields,
    }


POLICY: Final[Json] = {
    "default": "2Gi",
    "validRange": {"min": "1Gi", "max": "9Gi", "step": "1Gi"},
}
VALUES: Final[Json] = {"default": "2Gi", "validValues": ["1Gi", "2Gi", "4Gi"]}

SLICE: Final = resource_slice(
    [
        device("gpu-0", {"model": "x"}, capacity={"memory": {"value": "40Gi"}}),
        device("gpu-1", {"model": "x"}, capacity={"memory": {"value": "40Gi"}}),
    ]
)
SHARED: Final = resource_slice(
    [
        device(
            "gpu-0",
            allowMultipleAllocations=True,
            capacity={"memory": {"value": "10Gi", "requestPolicy": POLICY}},
        )
    ]
)
DISCRETE: Final = edited(
    SHARED, {"spec.devices[0].capacity[memory].requestPolicy": VALUES}
)
COUNTERS: Final = resource_slice(
    sharedCounters=[counters("set-0", memory="40Gi", cores="8")]
)
PARTITIONS: Final = resource_slice(
    [
        device(
            f"part-{part_index}",
            {"profile": "half"},
            consumesCounters=consumes("set-0", memory="20Gi"),
        )
        for part_index in (0, 1)
    ]
)
PER_DEVICE: Final = resource_slice(
    [device("gpu-0", nodeName="node-0")], perDeviceNodeSelection=True
)
SELECTED: Final = resource_slice(
    [device("gpu-0")],
    nodeSelector={
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["a"]}
                ],
                "matchFields": [
                    {
                        "key": "metadata.name",
                        "operator": "In",
                        "values": ["node-0"],
                    }
                ],
            }
        ]
    },
)
CLASS: Final = device_class("gpu", "device.driver == 'gpu.example.com'")
CONFIG: Final[Json] = {
    "opaque": {"driver": "gpu.example.com", "parameters": {"kind": "Config"}}
}
CONFIGURED: Final = device_class("gpu", config=[CONFIG])
CLAIM: Final = claim("c", request("gpu", "device.driver == 'gpu.example.com'"))
ALTERNATIVES: Final = claim(
    "c", first_available("gpu", sub("large"), sub("small"))
)
CONSTRAINED: Final = claim(
    "c",
    request("gpu"),
    first_available("nic", sub("fast"), sub("slow")),
    constraints=[
        {"requests": ["gpu", "nic/fast"], "matchAttribute": "example.com/numa"}
    ],
    config=[{"requests": ["gpu", "nic"], **CONFIG}],
)
DERIVED: Final = claim(
    "c",
    request(
        "gpu",
        derivedAttributes=[
            {
                "name": "derived/numa",
                "expression": "device.attributes['a'].numa",
            }
        ],
    ),
    constraints=[{"matchAttribute": "derived/numa"}],
)
TEMPLATE: Final[Json] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "t", "namespace": "default"},
    "spec": {"metadata": {"labels": {"app": "x"}}, "spec": CLAIM["spec"]},
}
ALLOCATED: Final = claim("c", request("gpu"), status=status())
REPORTED: Final = claim(
    "c",
    request("gpu"),
    status=status(
        devices=[
            {
                "driver": "gpu.example.com",
                "pool": "pool-0",
                "device": "gpu-0",
                "conditions": [condition()],
                "data": {"a": 1},
                "networkData": {
                    "interfaceName": "eth0",
                    "ips": ["10.0.0.1/24", "2001:db8::1/64"],
                },
            }
        ],
        reservedFor=[{"resource": "pods", "name": "p", "uid": UID}],
    ),
)
