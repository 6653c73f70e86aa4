"""Bundles: pods with several requests that must share a node."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.nodes import GPU_CLASS, MIG_CLASS, PROFILES, classes, mig_node
from benchmarks.objects import DRIVER, Json, claim_spec, exactly, pod, template
from benchmarks.registry import register
from benchmarks.workloads.mig import GPUS, SLICES

KINDS: Final = 20
DEMAND: Final = 1.05
LARGEST: Final = 24
"""Kinds of pods, what they ask for in all, and the most memory slices of a pod."""


@register("bundles", "20 kinds of pods with 1-8 requests for MIG devices or whole GPUs, 105% of the slices", size=1000)
def bundles(size: int, random: Random) -> Iterator[Json]:
    """Pods with 1-8 requests each."""
    yield from classes()
    for number in range(size):
        yield from mig_node(f"node-{number:05d}", GPUS, random)
    slices = []
    for kind in range(KINDS):
        requests, taken = _requests(random)
        slices.append(taken)
        yield template(f"bundle-{kind:02d}", claim_spec(*requests))
    asked = number = 0
    while asked < DEMAND * size * GPUS * SLICES:
        kind = random.randrange(KINDS)
        asked += slices[kind]
        yield pod(f"pod-{number:06d}", templates=[f"bundle-{kind:02d}"])
        number += 1


def _requests(random: Random) -> tuple[list[Json], int]:
    """The requests of a kind of pods, and how many memory slices they take."""
    requests: list[Json] = []
    taken = 0
    for number in range(random.randint(1, 8)):
        profile = random.choice((*PROFILES, None))
        size = SLICES if profile is None else profile.slices
        if requests and taken + size > LARGEST:
            continue
        taken += size
        if profile is None:
            requests.append(exactly(f"r{number}", GPU_CLASS))
        else:
            wanted = f"device.attributes['{DRIVER}'].profile == '{profile.name}'"
            requests.append(exactly(f"r{number}", MIG_CLASS, wanted))
    return requests, taken
