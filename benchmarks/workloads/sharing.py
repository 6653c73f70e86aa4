"""Whole clusters as in `benchmarks.clusters`, with claims that several pods share."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.clusters import PLAIN, pods
from benchmarks.objects import Json, claim, pod
from benchmarks.registry import register

__all__ = ["sharing"]

NODES: Final = 5
"""Nodes for each shared claim."""

USERS: Final = range(2, 9)
"""How many pods share a claim."""

OTHERS: Final = 9
"""Pods per node that share nothing."""


@register(
    "shared-claims",
    "a claim shared by 2 to 8 pods for every 5 nodes, and 9 other pods per node",
    size=5000,
)
def sharing(size: int, random: Random) -> Iterator[Json]:
    """Shared claims for 1, 2 or 4 GPUs; every other one by pods that also want a GPU of their own."""
    yield from PLAIN.cluster(size, random)
    pod_count = size * OTHERS
    yield from pods(pod_count, PLAIN.deck(), random)
    for index in range(size // NODES):
        shared = f"shared-{index:05d}"
        yield claim(shared, PLAIN.claims[PLAIN.drawn(random)])
        own = ["gpus-1"] if index % 2 else []
        for _ in range(random.choice(USERS)):
            yield pod(f"pod-{pod_count:06d}", claims=[shared], templates=own)
            pod_count += 1
