"""Nodes whose devices take something of their CPU and memory (KEP-5517), ten pods per node."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.clusters import USED, in_use, pods
from benchmarks.limited import limited
from benchmarks.nodes import GPU_CLASS, classes
from benchmarks.objects import (
    DRIVER,
    Json,
    claim_spec,
    device,
    device_class,
    exactly,
    node,
    resource_slice,
    template,
)
from benchmarks.registry import register
from benchmarks.workloads.shapes import PODS

__all__ = ["allocatable"]

GPUS: Final = 6
SOCKETS: Final = 2

_CPU_CLASS: Final = "cpu.example.com"

_GPU: Final[Json] = {
    "memory": {"overhead": {"perPod": "6Gi"}},
    "cpu": {"overhead": {"perPod": "500m"}},
}
"""Pinned memory of the host, and a part of a core for the driver."""

_SOCKET: Final[Json] = {
    "cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "1"}}
}
"""Cores that pods have for themselves are the node's."""

_CORES: Final[Json] = {
    "cores": {
        "value": "56",
        "requestPolicy": {"default": "1", "validRange": {"min": "1"}},
    }
}


@register(
    "node-allocatable",
    "GPUs with overhead, and sockets with cores of the node",
    size=500,
)
@limited
def allocatable(size: int, random: Random) -> Iterator[Json]:
    """Pods with one or two GPUs, or with some cores for themselves."""
    yield from classes()
    yield device_class(
        _CPU_CLASS, f"device.attributes['{DRIVER}'].type == 'cpu'"
    )
    for node_index in range(size):
        yield from _node(f"node-{node_index:05d}")
    yield from in_use(size, USED, random, GPUS)
    claims = {
        f"gpus-{count}": exactly("gpus", GPU_CLASS, count=count)
        for count in (1, 2)
    }
    claims |= {f"cores-{cores}": _cores(cores) for cores in (4, 12)}
    yield from (
        template(name, claim_spec(request)) for name, request in claims.items()
    )
    yield from pods(size * PODS, list(claims), random)


def _node(name: str) -> Iterator[Json]:
    gpus = [
        device(f"gpu-{index}", {"type": "gpu"}, nodeAllocatableResources=_GPU)
        for index in range(GPUS)
    ]
    shared: Json = {
        "allowMultipleAllocations": True,
        "capacity": _CORES,
        "nodeAllocatableResources": _SOCKET,
    }
    yield node(name)
    yield resource_slice(
        name,
        name,
        [
            *gpus,
            *(
                device(f"cpu-{index}", {"type": "cpu"}, **shared)
                for index in range(SOCKETS)
            ),
        ],
    )


def _cores(cores: int) -> Json:
    return exactly(
        "cores", _CPU_CLASS, capacity={"requests": {"cores": str(cores)}}
    )
