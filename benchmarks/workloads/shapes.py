"""Whole clusters: 8 GPUs per node, 30% of them in use, and ten single-request pods per node.

Those with names of ``cluster-`` also have CPU and memory, which every pod requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.clusters import (
    GPUS,
    MIXES,
    NIC,
    PLAIN,
    USED,
    Hardware,
    in_use,
    partitions,
    pods,
    shares,
)
from benchmarks.limited import limited
from benchmarks.nodes import GPU_CLASS, classes, gpu_node, shared_node
from benchmarks.objects import (
    DRIVER,
    Json,
    claim_spec,
    first_available,
    pod,
    template,
)
from benchmarks.registry import register

PODS: Final = 10
"""Pods per node."""

SIZES: Final = (5, 7, 9, 12, 15, 19, 24, 31, 40, 48)
"""Gigabytes that pods ask of a shared GPU."""

FINE: Final = range(3, 78)
"""The same in 75 sizes."""


@register(
    "cluster-plain",
    "1, 2 or 4 GPUs of a node per pod",
    size=5000,
    hardware=PLAIN,
)
@register(
    "cluster-capacity",
    "10 sizes of memory on shared GPUs",
    size=5000,
    hardware=shares(SIZES),
)
@register(
    "cluster-nic",
    "a GPU and a network adapter on one PCIe root",
    size=5000,
    hardware=NIC,
)
@limited
def whole(size: int, random: Random, hardware: Hardware) -> Iterator[Json]:
    """Pods of each kind as often as it weighs."""
    yield from hardware.cluster(size, random)
    yield from pods(size * PODS, hardware.deck(), random)


@register("cluster-mig-small", "small MIG profiles", size=5000, mix="small")
@register("cluster-mig-mixed", "mixed MIG profiles", size=5000, mix="mixed")
@register("cluster-mig-large", "large MIG profiles", size=5000, mix="large")
@limited
def mig(size: int, random: Random, mix: str) -> Iterator[Json]:
    """Parts of H100s."""
    hardware = partitions(MIXES[mix])
    yield from hardware.cluster(size, random)
    for pod_index in range(size * PODS):
        yield pod(f"pod-{pod_index:06d}", templates=[hardware.drawn(random)])


@register(
    "cluster-first-available",
    "prioritized lists of three GPU models",
    size=5000,
)
@limited
def prioritized(size: int, random: Random) -> Iterator[Json]:
    """A third of the nodes each has A100s, H100s and H200s; pods prefer them in different orders."""
    models = ("H200", "H100", "A100")
    yield from classes()
    for node_index in range(size):
        yield from gpu_node(
            f"node-{node_index:05d}", GPUS, random, random.choice(models)
        )
    yield from in_use(size, USED, random)
    orders = (
        ("H200", "H100", "A100"),
        ("H100", "H200", "A100"),
        ("A100", "H100", "H200"),
    )
    for order in orders:
        entries = [
            (
                model.lower(),
                GPU_CLASS,
                [f"device.attributes['{DRIVER}'].model == '{model}'"],
                {"count": rank + 1},
            )
            for rank, model in enumerate(order)
        ]
        yield template(
            f"first-{order[0].lower()}",
            claim_spec(first_available("gpu", *entries)),
        )
    yield from pods(
        size * PODS, [f"first-{order[0].lower()}" for order in orders], random
    )


@register(
    "fine-capacity",
    "75 sizes of memory from 3Gi to 77Gi on shared GPUs of 80Gi",
    size=5000,
)
def fine(size: int, random: Random) -> Iterator[Json]:
    """Fine-grained capacity."""
    yield from classes()
    for node_index in range(size):
        yield from shared_node(f"node-{node_index:05d}", GPUS, random)
    hardware = shares(FINE)
    yield from hardware.templates()
    yield from pods(size * PODS, hardware.deck(), random)
