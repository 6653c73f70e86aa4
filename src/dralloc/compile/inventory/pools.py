"""Which slices of a pool count for a node, and whether the pool can be used.

Source: upstream's ``GatherPools`` and ``buildPool``; KEP-4381 "Resource pools" and KEP-4815 "Resource pool validation".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from dralloc.compile.inventory.columns import ColumnReader, SliceColumns
from dralloc.objects.api import CounterSet
from dralloc.objects.features import Features
from dralloc.problem import PoolState

__all__ = ["PoolView", "PoolViews"]


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


class PoolViews:
    """Judges pools from the slices that matter to one node, which are given by index."""

    def __init__(self, reader: ColumnReader, features: Features) -> None:
        self.slices = reader.slices
        self.features = features
        self.reader = reader
        self._sound: dict[tuple[int, ...], set[int]] = {}
        self._known: dict[Hashable, str] = {}

    def view(self, pool: Sequence[int], relevant: Sequence[int]) -> PoolView | None:
        """What one node sees of a pool.

        Parameters
        ----------
        pool
            Every slice of the pool, whatever its generation and node.
        relevant
            The slices of the pool that matter to the node; at least one.

        Returns
        -------
        PoolView or None
            None if a newer generation elsewhere makes obsolete what this node sees.
        """
        generation = max(self.slices[index].spec.pool.generation for index in relevant)
        newest = [
            index
            for index in relevant
            if self.slices[index].spec.pool.generation == generation
        ]
        expected = self.slices[newest[0]].spec.pool.resource_slice_count
        considered = newest
        if len(newest) != expected:
            # Slices for other nodes may be missing from view; only the whole pool tells.
            if any(
                self.slices[index].spec.pool.generation > generation for index in pool
            ):
                return None
            considered = [
                index
                for index in pool
                if self.slices[index].spec.pool.generation == generation
            ]
            if len(considered) != expected:
                return PoolView(PoolState.INCOMPLETE)
        partitionable = self.features.PartitionableDevices
        offered = [
            index
            for index in newest
            if not (partitionable and self.slices[index].spec.shared_counters)
        ]
        key = self._said(newest), self._said(considered)
        if key not in self._known:
            self._known[key] = self._defect(newest, offered, considered)
        if reason := self._known[key]:
            return PoolView(PoolState.INVALID, reason=reason)

        def by_name(index: int) -> str:
            return self.slices[index].metadata.name

        return PoolView(
            PoolState.USABLE,
            tuple(sorted(offered, key=by_name)),
            tuple(sorted(considered, key=by_name)),
        )

    def _said(self, indices: Sequence[int]) -> Hashable:
        """What slices publish, beside what is special to lists of one template."""
        return tuple(
            [
                (id(self.reader.of(index)), id(self.slices[index].spec.shared_counters))
                for index in indices
            ]
        )

    def _defect(
        self, newest: Sequence[int], offered: Sequence[int], considered: Sequence[int]
    ) -> str:
        """Why the pool is invalid, or the empty string."""
        names = [name for index in offered for name in self.reader.of(index).names]
        if (duplicate := _first_duplicate(names)) is not None:
            return f"duplicate device name {duplicate}"
        if not self.features.PartitionableDevices:
            return ""
        sets = [
            counters
            for index in newest
            for counters in self.slices[index].spec.shared_counters
        ]
        if (
            duplicate := _first_duplicate([counters.name for counters in sets])
        ) is not None:
            return f"duplicate counter set name {duplicate}"
        elsewhere = [index for index in considered if index not in set(newest)]
        defects = (
            self._consumption_defect(self.reader.of(index), sets)
            for index in (*newest, *elsewhere)
        )
        return next(filter(None, defects), "")

    def _consumption_defect(
        self, columns: SliceColumns, sets: Sequence[CounterSet]
    ) -> str:
        """The first counter consumption of the slice that refers to nothing.

        Equal counter sets and equal consumptions are one object after loading, and are looked at once.
        """
        sound = self._sound.setdefault(tuple(map(id, sets)), set())
        published = {counters.name: counters for counters in sets}
        for key, device in columns.consumers.items():
            if key in sound:
                continue
            for consumption in device.consumes_counters:
                counters = published.get(consumption.counter_set)
                if counters is None:
                    return f"counter set {consumption.counter_set} not found"
                for name in consumption.counters:
                    if name not in counters.counters:
                        return f"counter {name} not found in counter set {consumption.counter_set}"
            sound.add(key)
        return ""


def _first_duplicate(names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for name in names if len(set(names)) < len(names) else ():
        if name in seen:
            return name
        seen.add(name)
    return None
