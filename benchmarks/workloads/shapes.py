"""Whole clusters: 8 GPUs per node, 30% of them in use, and ten single-request pods per node.

Those with names of ``cluster-`` also have CPU and memory, which every pod requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.limited import limited
from benchmarks.nodes import GPU_CLASS, NIC_CLASS, PCI_ROOT, classes, gpu_node, mig_node, nic_node, shared_node
from benchmarks.objects import DRIVER, Json, claim_spec, exactly, first_available, pod, template
from benchmarks.registry import register
from benchmarks.workloads.mig import GPUS, SLICES, in_use, profile_pods

USED: Final = 0.3
PODS: Final = 10
"""Part of the GPUs in use, and pods per node."""

SIZES: Final = (5, 7, 9, 12, 15, 19, 24, 31, 40, 48)
"""Gigabytes that pods ask of a shared GPU."""

FINE: Final = range(3, 78)
"""The same in 75 sizes."""


def _pods(size: int, names: list[str], random: Random) -> Iterator[Json]:
    for number in range(size * PODS):
        yield pod(f"pod-{number:06d}", templates=[random.choice(names)])


@register("cluster-plain", "1, 2 or 4 GPUs of a node per pod", size=5000)
@limited
def plain(size: int, random: Random) -> Iterator[Json]:
    """Plain GPUs."""
    yield from classes()
    for number in range(size):
        yield from gpu_node(f"node-{number:05d}", GPUS, random)
    yield from in_use(size, USED, random)
    for count in (1, 2, 4):
        yield template(f"gpus-{count}", claim_spec(exactly("gpus", GPU_CLASS, count=count)))
    yield from _pods(size, ["gpus-1"] * 8 + ["gpus-2"] + ["gpus-4"], random)


@register("cluster-mig-small", "small MIG profiles", size=5000, mix="small")
@register("cluster-mig-mixed", "mixed MIG profiles", size=5000, mix="mixed")
@register("cluster-mig-large", "large MIG profiles", size=5000, mix="large")
@limited
def mig(size: int, random: Random, mix: str) -> Iterator[Json]:
    """Parts of H100s."""
    yield from classes()
    for number in range(size):
        yield from mig_node(f"node-{number:05d}", GPUS, random)
    yield from in_use(size, USED, random)
    yield from profile_pods(mix, size * GPUS * SLICES * PODS, random, most=size * PODS)


@register("cluster-capacity", "10 sizes of memory on shared GPUs", size=5000)
@limited
def capacity(size: int, random: Random) -> Iterator[Json]:
    """Shared GPUs; the ones in use are not shared any more."""
    yield from classes()
    for number in range(size):
        yield from shared_node(f"node-{number:05d}", GPUS, random)
    yield from in_use(size, USED, random)
    for memory in SIZES:
        asked = {"requests": {"memory": f"{memory}Gi"}}
        yield template(f"memory-{memory}", claim_spec(exactly("gpu", GPU_CLASS, capacity=asked)))
    yield from _pods(size, [f"memory-{memory}" for memory in SIZES], random)


@register("cluster-nic", "a GPU and a network adapter on one PCIe root", size=5000)
@limited
def nic(size: int, random: Random) -> Iterator[Json]:
    """GPUs with network adapters."""
    yield from classes()
    for number in range(size):
        yield from nic_node(f"node-{number:05d}", GPUS, random)
    yield from in_use(size, USED, random)
    requests = [exactly("gpu", GPU_CLASS), exactly("nic", NIC_CLASS)]
    yield template("pair", claim_spec(*requests, constraints=[{"matchAttribute": PCI_ROOT}]))
    yield from _pods(size, ["pair"], random)


@register("cluster-first-available", "prioritized lists of three GPU models", size=5000)
@limited
def prioritized(size: int, random: Random) -> Iterator[Json]:
    """A third of the nodes each has A100s, H100s and H200s; pods prefer them in different orders."""
    models = ("H200", "H100", "A100")
    yield from classes()
    for number in range(size):
        yield from gpu_node(f"node-{number:05d}", GPUS, random, random.choice(models))
    yield from in_use(size, USED, random)
    orders = (("H200", "H100", "A100"), ("H100", "H200", "A100"), ("A100", "H100", "H200"))
    for order in orders:
        entries = [
            (model.lower(), GPU_CLASS, [f"device.attributes['{DRIVER}'].model == '{model}'"], {"count": rank + 1})
            for rank, model in enumerate(order)
        ]
        yield template(f"first-{order[0].lower()}", claim_spec(first_available("gpu", *entries)))
    yield from _pods(size, [f"first-{order[0].lower()}" for order in orders], random)


@register("fine-capacity", "75 sizes of memory from 3Gi to 77Gi on shared GPUs of 80Gi", size=5000)
def fine(size: int, random: Random) -> Iterator[Json]:
    """Fine-grained capacity."""
    yield from classes()
    for number in range(size):
        yield from shared_node(f"node-{number:05d}", GPUS, random)
    for memory in FINE:
        asked = {"requests": {"memory": f"{memory}Gi"}}
        yield template(f"memory-{memory}", claim_spec(exactly("gpu", GPU_CLASS, capacity=asked)))
    yield from _pods(size, [f"memory-{memory}" for memory in FINE], random)
