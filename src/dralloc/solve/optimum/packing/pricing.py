"""Pricing: the column of least reduced cost, as the best that a bin can serve at the dual values, decided exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from dralloc.objects.choices import Options
from dralloc.solve.optimum.packing.columns import Column
from dralloc.solve.optimum.packing.exact import ExactModel
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Pricer", "is_better", "restricted"]

_UNIT: Final = 10**6
"""The highest price as an integer."""

_LEAST: Final = 1e-7
"""Less than this share of a bin's worth is not worth a column."""


class Pricer:
    """Solves the pricing problems.

    Of the options the seed counts, and the jobs, as threads: a process would begin for longer than it works.
    """

    def __init__(self, instance: PackingInstance, options: Options) -> None:
        self.instance = instance
        self.options = options
        self._models: dict[int, ExactModel] = {}

    def best(
        self, bin_types: Sequence[int], prices: Sequence[float], stop: Stop
    ) -> list[Column | None]:
        """By bin type, the column of most worth at the prices (the dual values) of the options.

        None if the time is over. Each is decided by itself, so that it does not matter in how many threads.
        """
        for bin_type in bin_types:
            if bin_type not in self._models:
                self._models[bin_type] = ExactModel(
                    restricted(self.instance, {bin_type: 1}, self.instance.demand)
                )
        decided = partial(self._decided, prices=prices, stop=stop)
        models = [self._models[bin_type] for bin_type in bin_types]
        if self.options.jobs == 1:
            return list(map(decided, models))
        with ThreadPoolExecutor(self.options.jobs) as threads:
            return list(threads.map(decided, models))

    def _decided(
        self, model: ExactModel, prices: Sequence[float], stop: Stop
    ) -> Column | None:
        unit = _UNIT / (max(prices) or 1.0)
        cost = [
            (variable, -round(unit * prices[option]))
            for option, variable in model.bins[0].placed.items()
        ]
        outcome = minimise(model.cp, cost, self.options, stop)
        return (
            None if outcome.values is None else Column.of(model.read(outcome.values), 0)
        )


def restricted(
    instance: PackingInstance, bins: Mapping[int, int], demand: Sequence[int]
) -> PackingInstance:
    """Some bins of each bin type, and some of the demands of each class."""
    bin_types = tuple(
        replace(
            instance.bin_types[bin_type],
            instances=instance.bin_types[bin_type].instances[:number],
        )
        for bin_type, number in bins.items()
    )
    return replace(instance, bin_types=bin_types, demand=tuple(demand))


def is_better(
    column: Column, others: Sequence[Column], prices: Sequence[float]
) -> bool:
    """Whether a column has a negative reduced cost: it is worth more at the prices than all others of its bin type."""
    worth, *rest = np.array([each.counts for each in (column, *others)]) @ np.array(
        prices
    )
    return bool(worth > max(rest, default=0.0) + _LEAST * worth)
