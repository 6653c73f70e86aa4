"""Gangs: nodes with eight GPUs, and ten pods per node that come in gangs of 2 to 16."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.nodes import GPU_CLASS, classes, gpu_node
from benchmarks.objects import NAMESPACE, Json, claim_spec, exactly, pod, template
from benchmarks.registry import register
from benchmarks.workloads.mig import GPUS, in_use
from benchmarks.workloads.shapes import PODS, USED

__all__ = ["gangs"]

MOST: Final = 16
"""Pods of a gang."""


@register("gangs-plain", "gangs of 2 to 16 pods that want a GPU or two each", size=50)
def gangs(size: int, random: Random) -> Iterator[Json]:
    """The pods of a gang are alike."""
    yield from classes()
    for number in range(size):
        yield from gpu_node(f"node-{number:05d}", GPUS, random)
    yield from in_use(size, USED, random)
    for count in (1, 2):
        yield template(f"gpus-{count}", claim_spec(exactly("gpus", GPU_CLASS, count=count)))
    number = 0
    while number < size * PODS:
        members, name = random.randint(2, MOST), f"gang-{number:06d}"
        yield _group(name, members)
        wanted = random.choice(("gpus-1", "gpus-1", "gpus-2"))
        for _ in range(members):
            one = pod(f"pod-{number:06d}", templates=[wanted])
            one["spec"]["schedulingGroup"] = {"podGroupName": name}
            yield one
            number += 1


def _group(name: str, members: int) -> Json:
    policy = {"gang": {"minCount": members}}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulingPolicy": policy},
    }
