"""CPU and memory: what nodes have, and what pods request of it beside their devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from random import Random
from typing import Any, Final

from benchmarks.objects import Json

__all__ = ["limited"]

NODE: Final = {
    "cpu": "112",
    "memory": "1000Gi",
    "ephemeral-storage": "1Ti",
    "pods": "110",
}
"""A node with eight GPUs."""

SHAPES: Final = (("2", "16Gi"), ("4", "64Gi"), ("8", "32Gi"), ("16", "128Gi"))
"""CPU and memory of a pod; for some the one is short first, for some the other."""


def limited(
    generate: Callable[..., Iterator[Json]],
) -> Callable[..., Iterator[Json]]:
    """A generator of the same objects with limits on every node and requests of every pod."""

    @wraps(generate)
    def objects(size: int, random: Random, **fixed: Any) -> Iterator[Json]:
        for api_object in generate(size, random, **fixed):
            if api_object["kind"] == "Node":
                api_object["status"] = {"allocatable": NODE}
            elif api_object["kind"] == "Pod":
                cpu, memory = random.choice(SHAPES)
                api_object["spec"]["containers"] = [
                    {
                        "name": "main",
                        "resources": {
                            "requests": {"cpu": cpu, "memory": memory}
                        },
                    }
                ]
            yield api_object

    return objects
