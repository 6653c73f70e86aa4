"""Everything at once: nodes that all differ, in use at random, and pods that want different things of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from random import Random

from benchmarks.mixture.arrivals import Arrivals
from benchmarks.mixture.hardware import shared_classes
from benchmarks.mixture.recipe import INGREDIENTS, Recipe
from benchmarks.mixture.servers import Servers
from benchmarks.nodes import classes
from benchmarks.objects import Json
from benchmarks.registry import WORKLOADS, register
from dralloc.objects.cluster import Cluster
from dralloc.objects.load import load_documents

__all__ = ["mixed"]


@register(
    "mixed",
    "3 kinds of nodes, 40% of them in use, 8 pods per node: gangs, racks, priorities, taints, zones",
    size=1000,
    ingredients=INGREDIENTS,
)
def _mixed(
    size: int, random: Random, without: frozenset[str] = frozenset()
) -> Iterator[Json]:
    """A cluster with all ingredients but those left out."""
    recipe = Recipe(size, random.getrandbits(64), without)
    yield from classes()
    yield from shared_classes()
    servers = Servers(recipe)
    yield from servers.objects()
    yield from Arrivals(recipe, servers.free).objects()


def mixed(
    nodes: int = 100, seed: int = 0, without: Collection[str] = ()
) -> Cluster:
    """A mixed cluster, ready to be compiled.

    Parameters
    ----------
    nodes
        How many there are.
    seed
        Equal seeds give equal clusters, also on the command line.
    without
        Which of `benchmarks.mixture.recipe.INGREDIENTS` are left out.
    """
    return load_documents(
        WORKLOADS["mixed"].without(without).objects(nodes, seed)
    )
