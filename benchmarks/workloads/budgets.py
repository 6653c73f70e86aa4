"""Whole clusters as in `benchmarks.clusters`, used by twenty namespaces that are capped or share fairly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

from benchmarks.clusters import GPUS, MIG, PLAIN, Hardware
from benchmarks.nodes import gpu_node
from benchmarks.objects import Json, pod
from benchmarks.registry import register
from benchmarks.workloads.shapes import PODS
from dralloc.objects.choices import NodelessWords

__all__ = ["budgets"]

NAMESPACES: Final = [f"team-{team:02d}" for team in range(20)]

MEMORY: Final = 80
"""Gibibytes of a GPU."""

PERMILLE: Final = 30
"""What a namespace may use of all memory: together they may use 60%, where 70% is free."""

SIZED: Final = replace(PLAIN, node=partial(gpu_node, memory=f"{MEMORY}Gi"))


def _caps(size: int) -> NodelessWords:
    most = size * GPUS * MEMORY * PERMILLE // 1000
    return {
        "caps": [f"{namespace}=memory:{most}Gi" for namespace in NAMESPACES]
    }


def _fair(_: int) -> NodelessWords:
    return {"fair": "memory"}


@register(
    "caps-plain",
    "20 namespaces with a cap, 1, 2 or 4 GPUs per pod",
    size=5000,
    words=_caps,
    hardware=SIZED,
)
@register(
    "caps-mig",
    "20 namespaces with a cap, mixed MIG profiles",
    size=5000,
    words=_caps,
    hardware=MIG,
)
@register(
    "fair-plain",
    "20 namespaces share fairly, 1, 2 or 4 GPUs per pod",
    size=5000,
    words=_fair,
    hardware=SIZED,
)
@register(
    "fair-mig",
    "20 namespaces share fairly, mixed MIG profiles",
    size=5000,
    words=_fair,
    hardware=MIG,
)
def budgets(size: int, random: Random, hardware: Hardware) -> Iterator[Json]:
    """Ten pods per node. The first namespaces have more pods than the last."""
    yield from hardware.nodes(size, random)
    for namespace in NAMESPACES:
        for claim_template in hardware.templates():
            yield _within(namespace, claim_template)
    shares = range(len(NAMESPACES), 0, -1)
    for pod_index in range(size * PODS):
        [namespace] = random.choices(NAMESPACES, shares)
        yield _within(
            namespace,
            pod(f"pod-{pod_index:06d}", templates=[hardware.drawn(random)]),
        )


def _within(namespace: str, api_object: Json) -> Json:
    api_object["metadata"]["namespace"] = namespace
    return api_object
