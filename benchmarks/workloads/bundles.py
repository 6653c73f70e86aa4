"""Bundles: pods with several requests that must share a node."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from statistics import mean
from typing import Final

from benchmarks.clusters import GPUS
from benchmarks.nodes import GPU_CLASS, MIG_CLASS, PROFILES, classes, mig_node
from benchmarks.objects import (
    DRIVER,
    Json,
    allocated_claim,
    claim_spec,
    exactly,
    pod,
    template,
)
from benchmarks.registry import register
from benchmarks.workloads.mig import SLICES

KINDS: Final = 20
DEMAND: Final = 1.05
LARGEST: Final = 12
"""Kinds of pods, what they ask for in all (of what is free), and the most memory slices of a pod."""

MEAN: Final = (6.7, 7.2)
"""Memory slices of a kind of pods, on average: about nine pods find room on a node."""

WISHES: Final = (8, 2, 2, 4, 2, 1, 0.5, 0.5)
"""How often a request is for each profile, and for a whole GPU."""

USED: Final = 0.3
"""Part of the GPUs that have a MIG device in use, so that hardly two nodes are equal."""


@register(
    "bundles",
    "20 kinds of pods with 1-8 requests for MIG devices or whole GPUs, 105% demand",
    size=1000,
)
def bundles(size: int, random: Random) -> Iterator[Json]:
    """Pods with 1-8 requests each, on nodes that differ."""
    yield from classes()
    for node_index in range(size):
        yield from mig_node(f"node-{node_index:05d}", GPUS, random)
    free = size * GPUS * SLICES
    for holder, (name, device, slices) in enumerate(_used(size, random)):
        free -= slices
        yield allocated_claim(f"holder-{holder:06d}", MIG_CLASS, name, [device])
    kinds = _kinds(random)
    for kind, (requests, _) in enumerate(kinds):
        yield template(f"bundle-{kind:02d}", claim_spec(*requests))
    asked = pod_count = 0
    while asked < DEMAND * free:
        kind = random.randrange(KINDS)
        asked += kinds[kind][1]
        yield pod(f"pod-{pod_count:06d}", templates=[f"bundle-{kind:02d}"])
        pod_count += 1


def _used(size: int, random: Random) -> Iterator[tuple[str, str, int]]:
    """MIG devices in use, at most one of a GPU: the node, the device, and how many memory slices it has."""
    placements = [
        (profile, start) for profile in PROFILES for start in profile.starts
    ]
    for node_index in range(size):
        for gpu in range(GPUS):
            if random.random() < USED:
                profile, start = random.choice(placements)
                label = profile.name.replace(".", "").replace("+", "-")
                yield (
                    f"node-{node_index:05d}",
                    f"gpu-{gpu}-mig-{label}-{start}",
                    profile.slices,
                )


def _kinds(random: Random) -> list[tuple[list[Json], int]]:
    """Kinds of pods with the wanted average size."""
    while True:
        kinds = [_requests(random) for _ in range(KINDS)]
        if MEAN[0] <= mean(slices for _, slices in kinds) <= MEAN[1]:
            return kinds


def _requests(random: Random) -> tuple[list[Json], int]:
    """The requests of a kind of pods, and how many memory slices they take."""
    requests: list[Json] = []
    taken = 0
    for request_index in range(random.randint(1, 8)):
        [profile] = random.choices((*PROFILES, None), WISHES)
        size = SLICES if profile is None else profile.slices
        if requests and taken + size > LARGEST:
            continue
        taken += size
        if profile is None:
            requests.append(exactly(f"r{request_index}", GPU_CLASS))
        else:
            wanted = (
                f"device.attributes['{DRIVER}'].profile == '{profile.name}'"
            )
            requests.append(exactly(f"r{request_index}", MIG_CLASS, wanted))
    return requests, taken
