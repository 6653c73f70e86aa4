"""Whole clusters as in `benchmarks.workloads.shapes`, with all pods in gangs of 2, 4, 8 or 16."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Final

from benchmarks.nodes import GPU_CLASS, NIC_CLASS, PCI_ROOT, classes, gpu_node, mig_node, nic_node
from benchmarks.objects import Json, claim_spec, exactly, pod, pod_group, template
from benchmarks.registry import register
from benchmarks.workloads.mig import GPUS, MIXES, in_use, profile_claim, template_name
from benchmarks.workloads.shapes import PODS, USED

__all__ = ["gangs"]

SIZES: Final = (2, 4, 8, 16)

Claims = Mapping[str, Json]
"""What the pods of a gang claim each, by the name of the template."""

_NODES: Final[Mapping[str, Callable[[str, int, Random], Iterator[Json]]]] = {
    "plain": gpu_node,
    "mig": mig_node,
    "nic": nic_node,
}

_CLAIMS: Final[Mapping[str, Claims]] = {
    "plain": {f"gpus-{count}": claim_spec(exactly("gpus", GPU_CLASS, count=count)) for count in (1, 2, 4)},
    "mig": {template_name(profile): profile_claim(profile) for profile in MIXES["mixed"]},
    "nic": {
        "pair": claim_spec(
            exactly("gpu", GPU_CLASS), exactly("nic", NIC_CLASS), constraints=[{"matchAttribute": PCI_ROOT}]
        )
    },
}

_WEIGHTS: Final[Mapping[str, list[int]]] = {"plain": [8, 1, 1], "mig": list(MIXES["mixed"].values()), "nic": [1]}
"""How many gangs want each of the claims."""


@register("gangs-plain", "gangs of 2 to 16 pods with 1, 2 or 4 GPUs each", size=5000, devices="plain")
@register("gangs-mig", "gangs of 2 to 16 pods with mixed MIG profiles", size=5000, devices="mig")
@register("gangs-nic", "gangs of 2 to 16 pods with a GPU and a network adapter each", size=5000, devices="nic")
def gangs(size: int, random: Random, devices: str) -> Iterator[Json]:
    """Gangs of equal pods, ten pods per node."""
    yield from classes()
    for number in range(size):
        yield from _NODES[devices](f"node-{number:05d}", GPUS, random)
    yield from in_use(size, USED, random)
    claims = _CLAIMS[devices]
    for name, spec in claims.items():
        yield template(name, spec)
    number = gang = 0
    while number < size * PODS:
        members = min(random.choice(SIZES), size * PODS - number)
        [wanted] = random.choices(list(claims), _WEIGHTS[devices])
        yield pod_group(f"gang-{gang:05d}", members)
        for index in range(number, number + members):
            yield pod(f"pod-{index:06d}", templates=[wanted], group=f"gang-{gang:05d}")
        number += members
        gang += 1
