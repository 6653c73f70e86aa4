"""Which slices of a pool count for a node, and whether the pool can be used.

Source: upstream's ``GatherPools`` and ``buildPool``; KEP-4381 "Resource pools" and KEP-4815 "Resource pool validation".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dralloc.api import CounterSet, ResourceSlice
from dralloc.features import Features
from dralloc.problem import PoolState

__all__ = ["PoolView", "view_pool"]


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool as one node sees it.

    Parameters
    ----------
    state
        Whether devices can be taken from it.
    offered
        Indices of the slices whose devices the node can search, by slice name.
    considered
        Indices of all slices that the pool consists of for this node; other nodes' devices may use its counters.
    reason
        Why it is invalid; empty otherwise.
    """

    state: PoolState
    offered: tuple[int, ...] = ()
    considered: tuple[int, ...] = ()
    reason: str = ""


def view_pool(
    slices: Sequence[ResourceSlice], pool: Sequence[int], relevant: Sequence[int], features: Features
) -> PoolView | None:
    """Judge a pool from the slices that matter to one node.

    Parameters
    ----------
    slices
        All slices of the cluster; the other arguments index it.
    pool
        Every slice of the pool, whatever its generation and node.
    relevant
        The slices of the pool that matter to the node; at least one.

    Returns
    -------
    PoolView or None
        None if a newer generation elsewhere makes obsolete what this node sees.
    """
    generation = max(slices[index].spec.pool.generation for index in relevant)
    newest = [index for index in relevant if slices[index].spec.pool.generation == generation]
    expected = slices[newest[0]].spec.pool.resource_slice_count
    considered = newest
    if len(newest) != expected:
        # Slices for other nodes may be missing from view; only the whole pool tells.
        if any(slices[index].spec.pool.generation > generation for index in pool):
            return None
        considered = [index for index in pool if slices[index].spec.pool.generation == generation]
        if len(considered) != expected:
            return PoolView(PoolState.INCOMPLETE)
    offered = [index for index in newest if not (features.PartitionableDevices and slices[index].spec.shared_counters)]
    reason = _defect(slices, newest, offered, considered, features)
    if reason:
        return PoolView(PoolState.INVALID, reason=reason)

    def by_name(index: int) -> str:
        return slices[index].metadata.name

    return PoolView(PoolState.USABLE, tuple(sorted(offered, key=by_name)), tuple(sorted(considered, key=by_name)))


def _defect(
    slices: Sequence[ResourceSlice],
    newest: Sequence[int],
    offered: Sequence[int],
    considered: Sequence[int],
    features: Features,
) -> str:
    """Why the pool is invalid, or the empty string."""
    duplicate = _first_duplicate(device.name for index in offered for device in slices[index].spec.devices)
    if duplicate is not None:
        return f"duplicate device name {duplicate}"
    if not features.PartitionableDevices:
        return ""
    sets = [counters for index in newest for counters in slices[index].spec.shared_counters]
    duplicate = _first_duplicate(counters.name for counters in sets)
    if duplicate is not None:
        return f"duplicate counter set name {duplicate}"
    published = {counters.name: counters for counters in sets}
    elsewhere = [index for index in considered if index not in set(newest)]
    defects = (_consumption_defect(slices[index], published) for index in (*newest, *elsewhere))
    return next(filter(None, defects), "")


def _first_duplicate(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _consumption_defect(slice_: ResourceSlice, published: dict[str, CounterSet]) -> str:
    """The first counter consumption of the slice that refers to nothing."""
    for device in slice_.spec.devices:
        for consumption in device.consumes_counters:
            counters = published.get(consumption.counter_set)
            if counters is None:
                return f"counter set {consumption.counter_set} not found"
            for name in consumption.counters:
                if name not in counters.counters:
                    return f"counter {name} not found in counter set {consumption.counter_set}"
    return ""
