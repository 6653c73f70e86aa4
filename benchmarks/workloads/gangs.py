"""Whole clusters as in `benchmarks.clusters`, with all pods in gangs of 2, 4, 8 or 16."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.clusters import MIG, NIC, PLAIN, Hardware
from benchmarks.limited import limited
from benchmarks.objects import Json, pod, pod_group
from benchmarks.registry import register
from benchmarks.workloads.shapes import PODS

__all__ = ["gangs"]

SIZES: Final = (2, 4, 8, 16)


@register(
    "gangs-plain",
    "gangs of 2 to 16 pods with 1, 2 or 4 GPUs each",
    size=5000,
    hardware=PLAIN,
)
@register(
    "gangs-mig",
    "gangs of 2 to 16 pods with mixed MIG profiles",
    size=5000,
    hardware=MIG,
)
@register(
    "gangs-nic",
    "gangs of 2 to 16 pods with a GPU and a network adapter each",
    size=5000,
    hardware=NIC,
)
def gangs(size: int, random: Random, hardware: Hardware) -> Iterator[Json]:
    """Gangs of equal pods, ten pods per node."""
    yield from hardware.cluster(size, random)
    pod_count = gang = 0
    while pod_count < size * PODS:
        members = min(random.choice(SIZES), size * PODS - pod_count)
        wanted = hardware.drawn(random)
        yield pod_group(f"gang-{gang:05d}", members)
        for index in range(pod_count, pod_count + members):
            yield pod(
                f"pod-{index:06d}", templates=[wanted], group=f"gang-{gang:05d}"
            )
        pod_count += members
        gang += 1


register(
    "gangs-limited",
    "gangs-plain with limits of nodes, and requests in four shapes",
    size=1000,
    hardware=PLAIN,
)(limited(gangs))
