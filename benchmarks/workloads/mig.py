"""MIG: empty nodes with eight H100s, and pods that ask for parts of them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.clusters import GPUS, MIXES, partitions, template_name
from benchmarks.nodes import PROFILES, classes, mig_node
from benchmarks.objects import Json, pod
from benchmarks.registry import register

__all__ = ["SLICES"]

SLICES: Final = 8
"""Memory slices of a GPU."""

_SIZES: Final = {
    template_name(profile.name): profile.slices for profile in PROFILES
}


def _register_all() -> None:
    for mix in MIXES:
        for demand in (95, 100, 110):
            summary = f"8 H100 per node, {mix} MIG profiles for {demand}% of the memory slices"
            register(
                f"mig-{mix}-{demand}",
                summary,
                size=100,
                mix=mix,
                demand=demand / 100,
            )(mig)


def mig(size: int, random: Random, mix: str, demand: float) -> Iterator[Json]:
    """An empty cluster, and pods for a share of all memory slices."""
    yield from classes()
    for node_index in range(size):
        yield from mig_node(f"node-{node_index:05d}", GPUS, random)
    hardware = partitions(MIXES[mix])
    yield from hardware.templates()
    asked = pod_count = 0
    while asked < demand * size * GPUS * SLICES:
        wanted = hardware.drawn(random)
        asked += _SIZES[wanted]
        yield pod(f"pod-{pod_count:06d}", templates=[wanted])
        pod_count += 1


_register_all()
