"""Searches without a solution, whose plain search takes more steps than anybody can wait for.

The size is the number of devices that are needed, or about that; nothing else is on the node.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.nodes import GPU_CLASS, classes
from benchmarks.objects import (
    DRIVER,
    Json,
    amounts,
    claim_spec,
    consumes,
    device,
    exactly,
    node,
    pod,
    resource_slice,
    template,
)
from benchmarks.registry import register

NODE: Final = "node-00000"
ROOT: Final = f"{DRIVER}/root"


def _one_pod(devices: list[Json], spec: Json, *sets: Json) -> Iterator[Json]:
    """A node with these devices and counter sets, and a pod."""
    yield from classes()
    yield node(NODE)
    if sets:
        yield resource_slice(
            "counters", NODE, slices=2, sharedCounters=list(sets)
        )
    yield resource_slice("devices", NODE, devices, slices=2 if sets else 1)
    yield template("claim", spec)
    yield pod("pod", templates=["claim"])


def _devices(count: int, roots: int) -> list[Json]:
    return [
        device(
            f"gpu-{index:03d}",
            {"type": "gpu", "index": index, "root": index % roots},
        )
        for index in range(count)
    ]


def _requests(count: int) -> list[Json]:
    return [exactly(f"gpu-{index}", GPU_CLASS) for index in range(count)]


@register(
    "hard-one-too-few",
    "one device too few behind a constraint",
    size=30,
    unit="devices needed",
)
def one_too_few(size: int, random: Random) -> Iterator[Json]:
    """As many requests as devices, and one more."""
    del random
    return _one_pod(
        _devices(size - 1, 1),
        claim_spec(*_requests(size), constraints=[{"matchAttribute": ROOT}]),
    )


@register(
    "hard-union",
    "two requests whose devices together are too few",
    size=30,
    unit="devices needed",
)
def union(size: int, random: Random) -> Iterator[Json]:
    """Each request alone could be served."""
    del random
    below = [
        f"device.attributes['{DRIVER}'].index < {limit}"
        for limit in (size - 1, size - 2)
    ]
    requests = [
        exactly(f"half-{index}", GPU_CLASS, selector, count=size // 2)
        for index, selector in enumerate(below)
    ]
    return _one_pod(_devices(size + 10, size), claim_spec(*requests))


@register(
    "hard-match",
    "two values of matchAttribute, each with one device too few",
    size=30,
    unit="devices needed",
)
def match(size: int, random: Random) -> Iterator[Json]:
    """Enough devices, but not with one value."""
    del random
    spec = claim_spec(*_requests(size), constraints=[{"matchAttribute": ROOT}])
    return _one_pod(_devices(2 * size - 2, 2), spec)


@register(
    "hard-distinct",
    "one value too few for distinctAttribute",
    size=30,
    unit="devices needed",
)
def distinct(size: int, random: Random) -> Iterator[Json]:
    """The pigeonhole principle."""
    del random
    spec = claim_spec(
        *_requests(size), constraints=[{"distinctAttribute": ROOT}]
    )
    return _one_pod(_devices(2 * size, size - 1), spec)


@register(
    "hard-counter", "a counter for one device too few", size=30, unit="devices"
)
def counter(size: int, random: Random) -> Iterator[Json]:
    """Half of the devices are needed, and the counter is short by 1Gi."""
    del random
    needed = size // 2
    parts = [
        device(
            f"gpu-{index:03d}",
            {"type": "gpu"},
            consumesCounters=consumes("set", amounts(memory="10Gi")),
        )
        for index in range(size)
    ]
    counters = {
        "name": "set",
        "counters": amounts(memory=f"{10 * needed - 1}Gi"),
    }
    return _one_pod(
        parts, claim_spec(exactly("gpu", GPU_CLASS, count=needed)), counters
    )


@register(
    "hard-counter-sets",
    "counter sets that hold two of their three devices each",
    size=30,
    unit="devices",
)
def counter_sets(size: int, random: Random) -> Iterator[Json]:
    """One device more is needed than the sets can hold together, although their sum would be enough."""
    del random
    sets = size // 3
    parts = [
        device(
            f"gpu-{index:03d}",
            {"type": "gpu"},
            consumesCounters=consumes(
                f"set-{index % sets}", amounts(memory="10Gi")
            ),
        )
        for index in range(3 * sets)
    ]
    counters = [
        {"name": f"set-{set_index}", "counters": amounts(memory="25Gi")}
        for set_index in range(sets)
    ]
    return _one_pod(
        parts,
        claim_spec(exactly("gpu", GPU_CLASS, count=2 * sets + 1)),
        *counters,
    )


@register(
    "hard-capacity",
    "shared devices that hold one request each, one too few",
    size=30,
    unit="requests",
)
def capacity(size: int, random: Random) -> Iterator[Json]:
    """Each device has 10Gi, each request asks for 6Gi."""
    del random
    shared = [
        device(
            f"gpu-{index:03d}",
            {"type": "gpu"},
            capacity=amounts(memory="10Gi"),
            allowMultipleAllocations=True,
        )
        for index in range(size - 1)
    ]
    asked = {"requests": {"memory": "6Gi"}}
    requests = [
        exactly(f"gpu-{request_index}", GPU_CLASS, capacity=asked)
        for request_index in range(size)
    ]
    return _one_pod(shared, claim_spec(*requests))
