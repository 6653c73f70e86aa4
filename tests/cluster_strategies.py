"""Hypothesis strategies for small clusters as users write them: data in wire form, with all features in the mix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from inventory_strategies import rarely
from wire import (
    Json,
    claim,
    consumes,
    counters,
    device,
    device_class,
    first_available,
    node,
    pod,
    request,
    resource_slice,
    sub,
)

__all__ = ["CLASSES", "DRIVERS", "clusters", "pods", "pools", "taint_rules"]

DRIVERS = ("gpu.example.com", "nic.example.com")
EXTENDED = "example.com/gpu"
NICS = "deviceclass.resource.kubernetes.io/nic"

_POLICIES: list[Json] = [
    {},
    {"requestPolicy": {"default": "1"}},
    {
        "requestPolicy": {
            "default": "2",
            "validRange": {"min": "2", "step": "2", "max": "6"},
        }
    },
    {"requestPolicy": {"default": "1", "validValues": ["1", "3"]}},
]


def _classes() -> list[Json]:
    of_drivers = [
        device_class(driver.split(".")[0], f'device.driver == "{driver}"')
        for driver in DRIVERS
    ]
    of_drivers[0]["spec"]["extendedResourceName"] = EXTENDED
    even = device_class(
        "even", "device.attributes[device.driver].?index.orValue(1) % 2 == 0"
    )
    return [device_class("any"), *of_drivers, even]


_DERIVED = (
    "device.attributes[device.driver].index % 2",
    "device.attributes['example.com'].?roots.orValue(['a'])",
    "device.attributes['example.com'].roots",
    "device.capacity[device.driver].?memory.hasValue()",
)
"""Of which the third fails on some devices."""

CLASSES = _classes()
"""Every device, those of one driver, those with an even index."""


@st.composite
def _devices(draw: st.DrawFn, index: int, kind: str) -> Json:
    """A device of a pool: plain, ``shared``, a ``part`` that draws on counters, or a ``vf`` that does so by request."""
    attributes: dict[str, Any] = {
        "index": index,
        "example.com/numa": draw(st.integers(0, 1)),
    }
    if draw(st.booleans()):
        attributes["example.com/roots"] = draw(
            st.lists(st.sampled_from("ab"), min_size=1, max_size=2, unique=True)
        )
    fields: Json = {}
    if kind == "shared" or draw(rarely()):
        fields["allowMultipleAllocations"] = True
    if kind != "vf" and draw(st.booleans()):
        amount = str(draw(st.integers(1, 8)))
        policy = draw(st.sampled_from(_POLICIES)) if fields else {}
        fields["capacity"] = {
            "memory": {
                "value": max(amount, "6") if policy else amount,
                **policy,
            }
        }
    if kind == "part":
        fields["consumesCounters"] = consumes(
            "set", slots=str(draw(st.integers(1, 3)))
        )
    if kind == "vf":
        drawn = {"slots": {"value": "1"}} if draw(st.booleans()) else {}
        by_request = {"speed": {"valueFrom": {"capacityKey": "speed"}}}
        fields["consumesCounters"] = [
            {"counterSet": "set", "counters": {**drawn, **by_request}}
        ]
    if draw(rarely()):
        fields["taints"] = [
            {
                "key": "example.com/hot",
                "effect": draw(st.sampled_from(["NoSchedule", "None"])),
            }
        ]
    if draw(rarely()):
        fields["bindingConditions"] = ["ready"]
    return device(f"device-{index}", attributes, **fields)


@st.composite
def pools(
    draw: st.DrawFn, driver: str, name: str, where: Json, generation: int = 1
) -> list[Json]:
    """A pool, as one slice or as one with counters and one with devices."""
    kind = draw(st.sampled_from(["plain", "shared", "part", "part", "vf"]))
    devices = [
        draw(_devices(index, kind)) for index in range(draw(st.integers(1, 4)))
    ]
    split = kind in ("part", "vf")
    title = f"{driver}-{name}-{generation}"
    common: Json = {
        "pool": name,
        "driver": driver,
        "generation": generation,
        "count": 1 + split,
        **where,
    }
    slices = [resource_slice(devices, name=f"{title}-devices", **common)]
    if split:
        policy = draw(st.sampled_from(_POLICIES)) if kind == "vf" else {}
        sets = counters("set", slots=str(draw(st.integers(1, 5))))
        sets["counters"]["speed"] = {"value": "8", **policy}
        slices.append(
            resource_slice(
                name=f"{title}-counters", sharedCounters=[sets], **common
            )
        )
    return slices


@st.composite
def _details(draw: st.DrawFn, exact: bool) -> Json:
    fields: Json = {
        "device_class": draw(
            st.sampled_from(["any", "any", "gpu", "nic", "even"])
        )
    }
    count = draw(st.sampled_from([1, 1, 1, 2, 3, None]))
    fields |= {"allocationMode": "All"} if count is None else {"count": count}
    asked = draw(
        st.sampled_from(
            [{}, {}, {"memory": "1"}, {"memory": "3"}, {"speed": "2"}]
        )
    )
    if asked:
        fields["capacity"] = {"requests": asked}
    if draw(rarely()):
        fields["tolerations"] = [
            {"key": "example.com/hot", "operator": "Exists"}
        ]
    if exact and draw(rarely()):
        fields["adminAccess"] = True
    return fields


@st.composite
def _claims(draw: st.DrawFn, name: str) -> Json:
    requests = []
    for index in range(draw(st.sampled_from([1, 1, 2]))):
        if draw(st.booleans()):
            requests.append(request(f"r{index}", **draw(_details(exact=True))))
        else:
            entries = [
                sub(letter, **draw(_details(exact=False))) for letter in "ab"
            ]
            requests.append(first_available(f"r{index}", *entries))
    constraints: list[Json] = []
    if draw(rarely()):
        kind = draw(st.sampled_from(["matchAttribute", "distinctAttribute"]))
        attribute = draw(
            st.sampled_from(["example.com/numa", "example.com/roots"])
        )
        constraints.append({kind: attribute})
        if draw(st.booleans()):
            deriving = (
                requests[0].get("exactly") or requests[0]["firstAvailable"][0]
            )
            deriving["derivedAttributes"] = [
                {
                    "name": attribute,
                    "expression": draw(st.sampled_from(_DERIVED)),
                }
            ]
    return claim(name, *requests, constraints=constraints)


@st.composite
def pods(draw: st.DrawFn, name: str, shared: Sequence[str] = ()) -> list[Json]:
    """A pod with its claims: of its own, shared with others, for extended resources; alone or in a gang."""
    claim_count = draw(st.sampled_from([1, 1, 2]))
    claims = [draw(_claims(f"{name}-{index}")) for index in range(claim_count)]
    names = [claim_object["metadata"]["name"] for claim_object in claims]
    sharing = draw(rarely())
    if shared and sharing:
        names.append(draw(st.sampled_from(sorted(shared))))
    spec: Json = {"priority": draw(st.integers(0, 1))}
    if draw(rarely()):
        limits = {EXTENDED: str(draw(st.integers(1, 2)))}
        if draw(st.booleans()):
            limits[NICS] = "1"
        spec["containers"] = [{"name": "c", "resources": {"limits": limits}}]
    pod_object = pod(name, *names, **spec)
    pod_object["metadata"] |= (
        {"uid": f"uid-{name}"} if draw(st.booleans()) else {}
    )
    pod_object["metadata"] |= (
        {"labels": {"gang": "g"}} if draw(rarely()) else {}
    )
    return [pod_object, *claims]


def taint_rules(name: str) -> st.SearchStrategy[Json]:
    """A rule that keeps claims away from all devices of that name."""
    return st.sampled_from(["NoSchedule", "NoExecute", "None"]).map(
        lambda effect: {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": f"rule-{name}"},
            "spec": {
                "deviceSelector": {"device": name},
                "taint": {"key": "example.com/hot", "effect": effect},
            },
        }
    )


@st.composite
def clusters(draw: st.DrawFn) -> list[Json]:
    """One or two nodes with a pool or two each, perhaps one pool for all of them, and some pods."""
    nodes = [node(f"node-{index}") for index in range(draw(st.integers(1, 2)))]
    objects: list[Json] = [*CLASSES, *nodes]
    for node_object in nodes:
        name = node_object["metadata"]["name"]
        for driver in DRIVERS[: draw(st.integers(1, 2))]:
            objects += draw(pools(driver, name, {"nodeName": name}))
    if draw(st.booleans()):
        objects += draw(pools(DRIVERS[1], "network", {"allNodes": True}))
    if draw(rarely()):
        objects.append(draw(taint_rules("device-0")))
    for index in range(draw(st.integers(1, 4))):
        objects += draw(
            pods(
                f"pod-{index}", [f"pod-{earlier}-0" for earlier in range(index)]
            )
        )
    return objects
