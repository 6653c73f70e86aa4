"""Regions: nodes that are about alike, so that what they have together says much about each of them."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from dralloc.solve.optimum.relax.amounts import Integers
from dralloc.solve.optimum.relax.guide import Floats
from dralloc.solve.optimum.relax.market import Market

__all__ = ["regions_of"]


def regions_of(market: Market, region_count: int) -> Integers:
    """By node, the number of its region; there are as many regions as asked for, or one for each node.

    The region that differs most in itself is divided where that helps most, until there are enough.
    """
    nodes = market.offers.nodes
    if region_count >= nodes:
        return np.arange(nodes)
    traits = _traits(market)
    heap = [_with_spread(traits, 0, np.arange(nodes))]
    heapify(heap)
    while len(heap) < region_count and heap[0][0] < 0:
        _, region, members = heappop(heap)
        values = traits[members][:, _variances(traits, members).argmax()]
        # Rounding must not make the mean as large as the largest value, or smaller than the smallest.
        below_largest = np.nextafter(values.max(), -np.inf)
        upper = values > values.mean().clip(values.min(), below_largest)
        heappush(heap, _with_spread(traits, region, members[~upper]))
        heappush(heap, _with_spread(traits, len(heap) + 1, members[upper]))
    regions = np.zeros(nodes, dtype=np.int64)
    by_first_node = sorted(
        (members for _, _, members in heap), key=lambda m: int(m[0])
    )
    for region, members in enumerate(by_first_node):
        regions[members] = region
    return regions


def _with_spread(
    traits: Floats, region: int, members: Integers
) -> tuple[float, int, Integers]:
    """Return some nodes with how much they differ, largest first in a heap; the region decides between equals."""
    spread = float(_variances(traits, members).sum() * len(members))
    return -spread, region, members


def _variances(traits: Floats, members: Integers) -> Floats:
    """Return by trait how much some nodes differ; 0 for equal ones, whose mean may be another value by rounding."""
    inside = traits[members]
    variances: Floats = np.where(
        np.ptp(inside, axis=0) > 0, inside.var(axis=0), 0.0
    )
    return variances


def _traits(market: Market) -> Floats:
    """By node: what there is of everything, and to which sets of nodes it belongs, each from 0 to 1."""
    nodes = market.offers.nodes
    sets = np.zeros((len(market.demand_kinds.node_sets), nodes))
    for set_index, members in enumerate(market.demand_kinds.node_sets):
        sets[
            set_index, list(members) if members is not None else slice(None)
        ] = 1.0
    columns = np.concatenate(
        [market.available[:, :nodes], market.amount_limits[:, :nodes], sets]
    ).astype(float)
    largest = np.maximum(1.0, columns.max(axis=1, initial=0.0))
    traits: Floats = (columns / largest[:, np.newaxis]).T
    return traits
