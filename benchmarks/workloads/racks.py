"""Racks of 18 nodes with four GPUs each (as NVIDIA's NVL72), and groups of pods that need one rack each."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.nodes import GPU_CLASS, classes, gpu_node
from benchmarks.objects import (
    Json,
    allocated_claim,
    claim_spec,
    exactly,
    pod,
    pod_group,
    template,
)
from benchmarks.registry import register

__all__ = ["racks"]

RACK: Final = "example.com/rack"
NODES: Final = 18
GPUS: Final = 4
"""Nodes of a rack, GPUs of a node."""

GROUPS: Final = 500 / 33
"""Groups per rack."""

USED: Final = 0.4
"""Part of the GPUs that pods with one GPU each hold."""

PRIORITIES: Final = {1000: 1, 100: 3, 0: 16}
"""Priorities of groups, and how often there is one."""


@register(
    "racks",
    "groups of 1 to 72 GPUs, 1, 2 or 4 per pod, in one rack each",
    size=33,
    unit="racks",
    ranked=False,
)
@register(
    "racks-priorities",
    "the same with three priorities",
    size=33,
    unit="racks",
    ranked=True,
)
def racks(size: int, random: Random, ranked: bool) -> Iterator[Json]:
    """Gangs of equal pods with a topology constraint, and pods with one GPU that have a node."""
    yield from classes()
    for node_index in range(size * NODES):
        server, *slices = gpu_node(f"node-{node_index:05d}", GPUS, random)
        server["metadata"]["labels"][RACK] = f"rack-{node_index // NODES:03d}"
        yield from (server, *slices)
    yield from _running(size, random)
    for gpus in (1, 2, 4):
        yield template(
            f"gpus-{gpus}", claim_spec(exactly("gpus", GPU_CLASS, count=gpus))
        )
    for group_index in range(round(size * GROUPS)):
        gpus = random.choice((1, 2, 4))
        members = random.randint(1, NODES * GPUS // gpus)
        [priority] = (
            random.choices(list(PRIORITIES), list(PRIORITIES.values()))
            if ranked
            else [0]
        )
        group = f"group-{group_index:04d}"
        yield pod_group(group, members, RACK)
        for index in range(members):
            member = pod(
                f"{group}-{index:02d}", templates=[f"gpus-{gpus}"], group=group
            )
            member["spec"]["priority"] = priority
            yield member


def _running(size: int, random: Random) -> Iterator[Json]:
    """Pods with a node, and the claims that they hold."""
    every = [
        (node_index, gpu)
        for node_index in range(size * NODES)
        for gpu in range(GPUS)
    ]
    for index, (node_index, gpu) in enumerate(
        sorted(random.sample(every, int(USED * len(every))))
    ):
        name, home = f"running-{index:05d}", f"node-{node_index:05d}"
        yield allocated_claim(name, GPU_CLASS, home, [f"gpu-{gpu}"])
        running_pod = pod(name, claims=[name])
        running_pod["spec"]["nodeName"] = home
        yield running_pod
