"""Clusters with room to spare, where it matters which nodes, devices and GPUs are used: one workload for each goal."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Final

from benchmarks.clusters import MIG, PLAIN, Hardware, pods, shares
from benchmarks.objects import Json
from benchmarks.registry import register
from dralloc.objects.choices import Goal, NodelessWords

__all__ = ["with_room"]

_GOALS: Final = {
    Goal.FEWEST_NODES: ("1, 2 or 4 GPUs per pod", PLAIN, 3),
    Goal.FEWEST_DEVICES: (
        "4 sizes of memory on shared GPUs",
        shares((5, 10, 20, 40)),
        6,
    ),
    Goal.LEAST_FRAGMENTATION: ("mixed MIG profiles", MIG, 6),
    Goal.SPREAD: ("1, 2 or 4 GPUs per pod", PLAIN, 3),
}
"""What pods claim, of what, and how many per node ask for about two thirds of what is free."""


def with_room(
    size: int, random: Random, hardware: Hardware, pods_per_node: int
) -> Iterator[Json]:
    """So many pods per node."""
    yield from hardware.cluster(size, random)
    yield from pods(size * pods_per_node, hardware.deck(), random)


def _words(goal: Goal, _: int) -> NodelessWords:
    return {"goal": goal}


def _register_all() -> None:
    for goal, (summary, hardware, pods_per_node) in _GOALS.items():
        words = partial(_words, goal)
        register(
            f"goal-{goal.value}",
            summary,
            size=5000,
            words=words,
            hardware=hardware,
            pods_per_node=pods_per_node,
        )(with_room)


_register_all()
