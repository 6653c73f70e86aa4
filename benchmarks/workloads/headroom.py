"""Nodes with eight H100s, some of them in use as a whole, and the templates of all MIG profiles: nothing is pending."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.nodes import PROFILES, classes, mig_node
from benchmarks.objects import Json, template
from benchmarks.registry import register
from benchmarks.workloads.mig import GPUS, in_use, profile_claim, template_name

__all__ = ["filled"]

IN_USE: Final = 0.3
"""Share of the GPUs."""


@register("headroom", "8 H100 per node, 30% of them in use, and templates for all MIG profiles", size=5000)
def filled(size: int, random: Random) -> Iterator[Json]:
    """A cluster with room for more."""
    yield from classes()
    for number in range(size):
        yield from mig_node(f"node-{number:05d}", GPUS, random)
    yield from in_use(size, IN_USE, random)
    for profile in PROFILES:
        yield template(template_name(profile.name), profile_claim(profile.name))
