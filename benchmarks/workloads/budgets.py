"""Whole clusters as in `benchmarks.workloads.shapes`, used by twenty namespaces that are capped or share fairly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Final

from benchmarks.nodes import GPU_CLASS, classes, gpu_node, mig_node
from benchmarks.objects import Json, claim_spec, exactly, pod, template
from benchmarks.registry import register
from benchmarks.workloads.mig import GPUS, MIXES, in_use, profile_claim, template_name
from benchmarks.workloads.shapes import PODS, USED
from dralloc.choices import NodelessWords

__all__ = ["budgets"]

NAMESPACES: Final = [f"team-{number:02d}" for number in range(20)]

MEMORY: Final = 80
"""Gibibytes of a GPU."""

PERMILLE: Final = 30
"""What a namespace may use of all memory: together they may use 60%, where 70% is free."""

_CLAIMS: Final[Mapping[str, Mapping[str, Json]]] = {
    "plain": {f"gpus-{count}": claim_spec(exactly("gpus", GPU_CLASS, count=count)) for count in (1, 2, 4)},
    "mig": {template_name(profile): profile_claim(profile) for profile in MIXES["mixed"]},
}

_WEIGHTS: Final[Mapping[str, list[int]]] = {"plain": [8, 1, 1], "mig": list(MIXES["mixed"].values())}


def _caps(size: int) -> NodelessWords:
    most = size * GPUS * MEMORY * PERMILLE // 1000
    return {"caps": [f"{namespace}=memory:{most}Gi" for namespace in NAMESPACES]}


def _fair(_: int) -> NodelessWords:
    return {"fair": "memory"}


@register("caps-plain", "20 namespaces with a cap, 1, 2 or 4 GPUs per pod", size=5000, devices="plain", words=_caps)
@register("caps-mig", "20 namespaces with a cap, mixed MIG profiles", size=5000, devices="mig", words=_caps)
@register("fair-plain", "20 namespaces share fairly, 1, 2 or 4 GPUs per pod", size=5000, devices="plain", words=_fair)
@register("fair-mig", "20 namespaces share fairly, mixed MIG profiles", size=5000, devices="mig", words=_fair)
def budgets(size: int, random: Random, devices: str) -> Iterator[Json]:
    """Ten pods per node. The first namespaces have more pods than the last."""
    yield from classes()
    for number in range(size):
        name = f"node-{number:05d}"
        yield from (
            gpu_node(name, GPUS, random, memory=f"{MEMORY}Gi") if devices == "plain" else mig_node(name, GPUS, random)
        )
    yield from in_use(size, USED, random)
    claims = _CLAIMS[devices]
    for namespace in NAMESPACES:
        for name, spec in claims.items():
            yield _within(namespace, template(name, spec))
    shares = range(len(NAMESPACES), 0, -1)
    for number in range(size * PODS):
        [namespace] = random.choices(NAMESPACES, shares)
        [wanted] = random.choices(list(claims), _WEIGHTS[devices])
        yield _within(namespace, pod(f"pod-{number:06d}", templates=[wanted]))


def _within(namespace: str, one: Json) -> Json:
    one["metadata"]["namespace"] = namespace
    return one
