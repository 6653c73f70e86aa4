"""MIG: nodes with eight H100s, and pods that ask for parts of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Final

from benchmarks.nodes import GPU_CLASS, MIG_CLASS, PROFILES, classes, mig_node
from benchmarks.objects import DRIVER, Json, allocated_claim, claim_spec, exactly, pod, template
from benchmarks.registry import register

__all__ = ["GPUS", "MIXES", "in_use", "profile_claim", "profile_pods", "template_name"]

GPUS: Final = 8
SLICES: Final = 8
"""GPUs of a node, memory slices of a GPU."""

MIXES: Final[Mapping[str, Mapping[str, int]]] = {
    "small": {"1g.10gb": 60, "1g.20gb": 15, "2g.20gb": 20, "3g.40gb": 5},
    "mixed": {"1g.10gb": 25, "1g.20gb": 10, "2g.20gb": 25, "3g.40gb": 20, "4g.40gb": 10, "7g.80gb": 10},
    "large": {"1g.10gb": 10, "2g.20gb": 15, "3g.40gb": 30, "4g.40gb": 25, "7g.80gb": 20},
}
"""How often each profile is asked for."""

_SIZES: Final = {profile.name: profile.slices for profile in PROFILES}


def profile_claim(profile: str) -> Json:
    """A claim for one MIG device of a profile."""
    wanted = f"device.attributes['{DRIVER}'].profile == '{profile}'"
    return claim_spec(exactly("mig", MIG_CLASS, wanted))


def template_name(profile: str) -> str:
    """The name of the template for a profile."""
    return f"mig-{profile.replace('.', '-').replace('+', '-')}"


def profile_pods(mix: str, slices: float, random: Random, most: int | None = None) -> Iterator[Json]:
    """Pods of a mix, in random order, until they ask for so many memory slices or are so many."""
    weights = MIXES[mix]
    for profile in weights:
        yield template(template_name(profile), profile_claim(profile))
    names, chances = list(weights), list(weights.values())
    asked = number = 0
    while asked < slices and (most is None or number < most):
        [profile] = random.choices(names, chances)
        asked += _SIZES[profile]
        yield pod(f"pod-{number:06d}", templates=[template_name(profile)])
        number += 1


def in_use(size: int, share: float, random: Random, gpus: int = GPUS) -> Iterator[Json]:
    """Allocated claims that hold a share of all GPUs as a whole."""
    every = [(number, gpu) for number in range(size) for gpu in range(gpus)]
    for index, (number, gpu) in enumerate(sorted(random.sample(every, int(share * len(every))))):
        yield allocated_claim(f"holder-{index:06d}", GPU_CLASS, f"node-{number:05d}", [f"gpu-{gpu}"])


def _register_all() -> None:
    for mix in MIXES:
        for demand in (95, 100, 110):
            summary = f"8 H100 per node, {mix} MIG profiles for {demand}% of the memory slices"
            register(f"mig-{mix}-{demand}", summary, size=100, mix=mix, demand=demand / 100)(mig)


def mig(size: int, random: Random, mix: str, demand: float) -> Iterator[Json]:
    """An empty cluster, and pods for a share of all memory slices."""
    yield from classes()
    for number in range(size):
        yield from mig_node(f"node-{number:05d}", GPUS, random)
    yield from profile_pods(mix, demand * size * GPUS * SLICES, random)


_register_all()
