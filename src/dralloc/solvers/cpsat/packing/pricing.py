"""Columns that the linear master lacks: the best that a bin can serve at given prices, decided exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dralloc.solvers.cpsat.interrupt import Interrupted
from dralloc.solvers.cpsat.options import Options
from dralloc.solvers.cpsat.packing.columns import Column, left_of
from dralloc.solvers.cpsat.packing.exact import ExactModel
from dralloc.solvers.cpsat.packing.store import Store
from dralloc.solvers.cpsat.search import minimise

__all__ = ["Pricer", "is_better", "part_of"]

_UNIT: Final = 10**6
"""The highest price as an integer."""

_LEAST: Final = 1e-7
"""Less than this share of a bin's worth is not worth a column."""


class Pricer:
    """Finds columns.

    Parameters
    ----------
    store
        The store.
    options
        The seed.
    """

    def __init__(self, store: Store, options: Options) -> None:
        self.store = store
        self.options = options
        self._models: dict[int, ExactModel] = {}

    def best(self, bay: int, prices: Sequence[float], limit: float | None) -> Column | None:
        """The column of most worth at the prices of the ways; None if the time is over."""
        if bay not in self._models:
            self._models[bay] = ExactModel(part_of(self.store, {bay: 1}, left_of(self.store, [])))
        model = self._models[bay]
        unit = _UNIT / (max(prices) or 1.0)
        cost = [(variable, -round(unit * prices[way])) for way, variable in model.bins[0].placed.items()]
        outcome = minimise(model.cp, cost, self.options, limit)
        if outcome.interrupted:
            raise Interrupted
        if outcome.values is None:
            return None
        filling = model.read(outcome.values)
        return Column(tuple(filling.counts[0].tolist()), filling, 0)


def part_of(store: Store, bins: Mapping[int, int], demand: Sequence[int]) -> Store:
    """Some bins of each bay, and some of the demands of each class."""
    bays = tuple(replace(store.bays[bay], slots=store.bays[bay].slots[:number]) for bay, number in bins.items())
    classes = tuple(
        replace(each, members=each.members[:number]) for each, number in zip(store.classes, demand, strict=True)
    )
    return replace(store, bays=bays, classes=classes)


def is_better(column: Column, others: Sequence[Column], prices: Sequence[float]) -> bool:
    """Whether a column is worth more than others."""
    worth, *rest = np.array([each.counts for each in (column, *others)]) @ np.array(prices)
    return bool(worth > max(rest, default=0.0) + _LEAST * worth)
