"""Nodes with eight H100s, some of them in use as a whole, and the templates of all MIG profiles: nothing is pending."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from benchmarks.clusters import partitions
from benchmarks.nodes import PROFILES
from benchmarks.objects import Json
from benchmarks.registry import register

__all__ = ["filled"]


@register(
    "headroom",
    "8 H100 per node, 30% of them in use, and templates for all MIG profiles",
    size=5000,
)
def filled(size: int, random: Random) -> Iterator[Json]:
    """A cluster with room for more."""
    yield from partitions({profile.name: 1 for profile in PROFILES}).cluster(
        size, random
    )
