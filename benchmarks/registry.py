"""The registry of workloads: a name, what it is, a usual size, and who generates its objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

from benchmarks.objects import Json
from dralloc.objects.choices import NodelessWords

__all__ = ["WORKLOADS", "Workload", "register"]

Objects = Iterator[Json]
Generator = Callable[..., Objects]


@dataclass(frozen=True, slots=True)
class Workload:
    """Something to measure.

    Parameters
    ----------
    name
        How it is called on the command line.
    summary
        What it is, in a line.
    unit
        What its size counts.
    size
        The usual size.
    generate
        Yields the objects for a size and a source of randomness.
    words
        What is chosen (see `dralloc.Choices`), by the size.
    ingredients
        What can be left out of it.
    """

    name: str
    summary: str
    unit: str
    size: int
    generate: Generator
    words: Callable[[int], NodelessWords] = lambda _: {}
    ingredients: tuple[str, ...] = ()

    def without(self, ingredients: Collection[str]) -> Workload:
        """The same with some of its ingredients left out; what stays is equal, as far as that makes sense."""
        return (
            replace(
                self,
                generate=partial(self.generate, without=frozenset(ingredients)),
            )
            if ingredients
            else self
        )

    def objects(self, size: int, seed: int) -> Objects:
        """The objects of a size, always the same for a seed."""
        return self.generate(size, Random(f"{self.name}:{size}:{seed}"))


WORKLOADS: dict[str, Workload] = {}
"""All workloads by name."""


def register(  # noqa: PLR0913 - everything about a workload
    name: str,
    summary: str,
    *,
    size: int,
    unit: str = "nodes",
    words: Callable[[int], NodelessWords] = lambda _: {},
    ingredients: Iterable[str] = (),
    **fixed: Any,
) -> Callable[[Generator], Generator]:
    """Enter a generator into the registry; several times with different ``fixed`` arguments are fine."""

    def enter(generate: Generator) -> Generator:
        if name in WORKLOADS:
            raise ValueError(f"there are two workloads {name}")
        WORKLOADS[name] = Workload(
            name,
            summary,
            unit,
            size,
            partial(generate, **fixed),
            words,
            tuple(ingredients),
        )
        return generate

    return enter
