"""Clusters with room to spare, where it matters which nodes, devices and GPUs are used: one workload for each goal."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.nodes import GPU_CLASS, classes, gpu_node, mig_node, shared_node
from benchmarks.objects import Json, claim_spec, exactly, pod, template
from benchmarks.registry import register
from benchmarks.workloads.mig import GPUS, MIXES, in_use, profile_claim, template_name
from benchmarks.workloads.shapes import USED
from dralloc.choices import Goal, NodelessWords

__all__ = ["of_gpus", "of_partitions", "of_shares"]

PODS: Final = 3
"""Pods per node: about two thirds of what is free."""

SIZES: Final = (5, 10, 20, 40)
"""Gibibytes that pods ask of a shared GPU."""


def _goal(goal: Goal) -> NodelessWords:
    return {"goal": goal}


def _pods(number: int, names: list[str], random: Random) -> Iterator[Json]:
    for index in range(number):
        yield pod(f"pod-{index:06d}", templates=[random.choice(names)])


@register("goal-fewest-nodes", "1, 2 or 4 GPUs per pod", size=5000, words=lambda _: _goal(Goal.FEWEST_NODES))
@register("goal-spread", "1, 2 or 4 GPUs per pod", size=5000, words=lambda _: _goal(Goal.SPREAD))
def of_gpus(size: int, random: Random) -> Iterator[Json]:
    """Plain GPUs."""
    yield from classes()
    for number in range(size):
        yield from gpu_node(f"node-{number:05d}", GPUS, random)
    yield from in_use(size, USED, random)
    for count in (1, 2, 4):
        yield template(f"gpus-{count}", claim_spec(exactly("gpus", GPU_CLASS, count=count)))
    yield from _pods(size * PODS, ["gpus-1"] * 8 + ["gpus-2"] + ["gpus-4"], random)


@register(
    "goal-fewest-devices", "4 sizes of memory on shared GPUs", size=5000, words=lambda _: _goal(Goal.FEWEST_DEVICES)
)
def of_shares(size: int, random: Random) -> Iterator[Json]:
    """Shared GPUs; the ones in use are not shared any more."""
    yield from classes()
    for number in range(size):
        yield from shared_node(f"node-{number:05d}", GPUS, random)
    yield from in_use(size, USED, random)
    for memory in SIZES:
        asked = {"requests": {"memory": f"{memory}Gi"}}
        yield template(f"memory-{memory}", claim_spec(exactly("gpu", GPU_CLASS, capacity=asked)))
    yield from _pods(size * PODS * 2, [f"memory-{memory}" for memory in SIZES], random)


@register("goal-least-fragmentation", "mixed MIG profiles", size=5000, words=lambda _: _goal(Goal.LEAST_FRAGMENTATION))
def of_partitions(size: int, random: Random) -> Iterator[Json]:
    """Parts of H100s."""
    yield from classes()
    for number in range(size):
        yield from mig_node(f"node-{number:05d}", GPUS, random)
    yield from in_use(size, USED, random)
    mix = MIXES["mixed"]
    for profile in mix:
        yield template(template_name(profile), profile_claim(profile))
    names = [template_name(profile) for profile, weight in mix.items() for _ in range(weight)]
    yield from _pods(size * PODS * 2, names, random)
