"""Small scenarios that other processes can import."""

from __future__ import annotations

from random import Random

from dralloc.objects.cluster import Cluster
from wire import (
    claim,
    cluster,
    device_class,
    gpus,
    node,
    request,
    resource_slice,
)

__all__ = ["gpu_cluster", "random_cluster"]


def gpu_cluster(sizes: tuple[int, ...] = (1, 2, 1, 2)) -> Cluster:
    """Four GPUs on one node, and claims for so many each."""
    claims = [
        claim(f"c{index}", request(count=size))
        for index, size in enumerate(sizes)
    ]
    return cluster(device_class(), node(), resource_slice(gpus(4)), claims)


def random_cluster(seed: int, demand: float) -> Cluster:
    """Claims for one to three GPUs, until they ask for the demand."""
    random = Random(seed)
    sizes: list[int] = []
    while sum(sizes) < 4 * demand:
        sizes.append(random.randint(1, 3))
    return gpu_cluster(tuple(sizes))
