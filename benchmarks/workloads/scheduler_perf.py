"""The shapes of Kubernetes' scheduler_perf for dynamic resource allocation (test/integration/scheduler_perf/dra)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.nodes import GPU_CLASS, PCI_ROOT, classes, gpu_node, shared_node
from benchmarks.objects import (
    DRIVER,
    Json,
    allocated_claim,
    amounts,
    claim,
    claim_spec,
    consumes,
    device,
    device_class,
    exactly,
    first_available,
    node,
    pod,
    resource_slice,
    template,
)
from benchmarks.registry import register

TEN: Final = 10
"""Devices per node in most of these shapes, and pods to place in the steady states."""


def _pods(count: int) -> Iterator[Json]:
    return (
        pod(f"pod-{pod_index:06d}", templates=["claim"])
        for pod_index in range(count)
    )


@register(
    "fill", "10 GPUs per node, a pod for each of them", size=500, gpus=TEN
)
@register(
    "fill-8", "8 GPUs per node, a pod for each of them", size=5000, gpus=8
)
def fill(size: int, random: Random, gpus: int) -> Iterator[Json]:
    """SchedulingWithResourceClaimTemplate."""
    yield from classes()
    for node_index in range(size):
        yield from gpu_node(f"node-{node_index:05d}", gpus, random)
    yield template("claim", claim_spec(exactly("gpu", GPU_CLASS)))
    yield from _pods(size * gpus)


@register("steady-empty", "10 pods on an empty cluster", size=500, used=0.0)
@register(
    "steady-half",
    "10 pods where half of the GPUs are in use",
    size=500,
    used=0.5,
)
@register(
    "steady-full", "10 pods where only 10 GPUs are left", size=500, used=1.0
)
def steady(size: int, random: Random, used: float) -> Iterator[Json]:
    """SchedulingWithResourceClaimTemplate in a steady state."""
    yield from classes()
    for node_index in range(size):
        yield from gpu_node(f"node-{node_index:05d}", TEN, random)
    count = min(int(size * TEN * used), size * TEN - TEN)
    for gpu_index in range(count):
        name = f"node-{gpu_index // TEN:05d}"
        yield allocated_claim(
            f"holder-{gpu_index:06d}",
            GPU_CLASS,
            name,
            [f"gpu-{gpu_index % TEN}"],
        )
    yield template("claim", claim_spec(exactly("gpu", GPU_CLASS)))
    yield from _pods(TEN)


@register("selector", "a CEL selector that half of the GPUs match", size=500)
def selector(size: int, random: Random) -> Iterator[Json]:
    """SchedulingWithResourceClaimTemplate with a selector."""
    yield from classes()
    for node_index in range(size):
        yield from gpu_node(f"node-{node_index:05d}", TEN, random)
    even = f"device.attributes['{DRIVER}'].index % 2 == 0"
    yield template("claim", claim_spec(exactly("gpu", GPU_CLASS, even)))
    yield from _pods(size * TEN // 2)


@register(
    "match",
    "5 requests on one PCIe root, two roots of 5 devices per node",
    size=500,
)
def match(size: int, random: Random) -> Iterator[Json]:
    """SchedulingWithResourceClaimTemplate with matchAttribute; devices of the roots come alternately."""
    del random
    yield from classes()
    for node_index in range(size):
        name = f"node-{node_index:05d}"
        devices = [
            device(
                f"gpu-{device_index}",
                {"type": "gpu", PCI_ROOT: f"pci0000:{device_index % 2:02x}"},
            )
            for device_index in range(TEN)
        ]
        yield node(name)
        yield resource_slice(name, name, devices)
    requests = [
        exactly(f"gpu-{request_index}", GPU_CLASS) for request_index in range(5)
    ]
    yield template(
        "claim",
        claim_spec(*requests, constraints=[{"matchAttribute": PCI_ROOT}]),
    )
    yield from _pods(size * 2)


@register(
    "backtracking",
    "7 devices of 10Gi out of 70Gi, a device of 20Gi listed first",
    size=100,
)
def backtracking(size: int, random: Random) -> Iterator[Json]:
    """PartitionableBacktracking."""
    del random
    yield from classes()
    for node_index in range(size):
        name = f"node-{node_index:05d}"
        sets = [
            {
                "name": "cpu",
                "counters": amounts(
                    **{f"cpu{index}": "1" for index in range(1, 9)}
                ),
            },
            {"name": "memory", "counters": amounts(memory="70Gi")},
        ]
        devices = []
        for index in range(1, 9):
            memory = consumes(
                "memory", amounts(memory="20Gi" if index == 1 else "10Gi")
            )
            taken = [*consumes("cpu", amounts(**{f"cpu{index}": "1"})), *memory]
            devices.append(
                device(
                    f"device-{index}", {"type": "gpu"}, consumesCounters=taken
                )
            )
        yield node(name)
        yield resource_slice(
            f"{name}-counters", name, slices=2, sharedCounters=sets
        )
        yield resource_slice(f"{name}-devices", name, devices, slices=2)
    yield template("claim", claim_spec(exactly("parts", GPU_CLASS, count=7)))
    yield from _pods(size)


@register(
    "capacity", "2 shared GPUs of 80Gi per node, 20 pods of 8Gi", size=100
)
def capacity(size: int, random: Random) -> Iterator[Json]:
    """SteadyStateClusterResourceClaimTemplateConsumableCapacity."""
    yield from classes()
    for node_index in range(size):
        yield from shared_node(f"node-{node_index:05d}", 2, random)
    yield template(
        "claim",
        claim_spec(
            exactly("gpu", GPU_CLASS, capacity={"requests": {"memory": "8Gi"}})
        ),
    )
    yield from _pods(size * 20)


@register(
    "first-available",
    "a prioritized list whose first entry no device matches",
    size=500,
)
def prioritized(size: int, random: Random) -> Iterator[Json]:
    """SteadyStateClusterResourceClaimTemplateFirstAvailable."""
    yield from classes()
    yield device_class("nothing", "false")
    for node_index in range(size):
        yield from gpu_node(f"node-{node_index:05d}", TEN, random)
    wanted = first_available(
        "gpu", ("none", "nothing", (), {}), ("some", GPU_CLASS, (), {})
    )
    yield template("claim", claim_spec(wanted))
    yield from _pods(size * TEN)


@register(
    "list-attributes",
    "32 requests with a value in common in lists of 47, 32 other devices listed first",
    size=500,
)
def list_attributes(size: int, random: Random) -> Iterator[Json]:
    """SchedulingWithResourceClaimTemplateListAttributes."""
    del random
    yield from classes()
    common = [f"group-{index}" for index in range(47)]
    for node_index in range(size):
        name = f"node-{node_index:05d}"
        others = [
            device(
                f"other-{device_index:02d}",
                {
                    "type": "gpu",
                    "groups": [
                        f"other-{device_index}-{index}" for index in range(47)
                    ],
                },
            )
            for device_index in range(32)
        ]
        wanted = [
            device(
                f"wanted-{device_index:02d}", {"type": "gpu", "groups": common}
            )
            for device_index in range(32)
        ]
        yield node(name)
        yield resource_slice(name, name, [*others, *wanted])
    requests = [
        exactly(f"gpu-{request_index}", GPU_CLASS)
        for request_index in range(32)
    ]
    yield template(
        "claim",
        claim_spec(
            *requests, constraints=[{"matchAttribute": f"{DRIVER}/groups"}]
        ),
    )
    yield from _pods(size)


@register(
    "claims-of-five", "2 GPUs per node, every claim shared by 5 pods", size=500
)
def claims_of_five(size: int, random: Random) -> Iterator[Json]:
    """SchedulingWithResourceClaim."""
    yield from classes()
    for node_index in range(size):
        yield from gpu_node(f"node-{node_index:05d}", 2, random)
    for claim_index in range(size * 2):
        yield claim(
            f"claim-{claim_index:06d}", claim_spec(exactly("gpu", GPU_CLASS))
        )
        for user in range(5):
            yield pod(
                f"pod-{claim_index:06d}-{user}",
                claims=[f"claim-{claim_index:06d}"],
            )
