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
from dralloc.solve.optimum.rows import Term
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Pricer", "is_better", "restricted"]

_HIGHEST_PRICE: Final = 10**6
"""The highest price as an integer."""

_LEAST_GAIN: Final = 1e-7
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
        """Return by bin type the column of most worth at the prices (the dual values) of the options.

        None if the time is over. Each is decided by itself, so that it does not matter in how many threads.
        """
        models = [self._model(bin_type) for bin_type in bin_types]
        solve_model = partial(self._best_column, prices=prices, stop=stop)
        if self.options.jobs == 1:
            return list(map(solve_model, models))
        with ThreadPoolExecutor(self.options.jobs) as threads:
            return list(threads.map(solve_model, models))

    def _model(self, bin_type: int) -> ExactModel:
        """Return the exact model of one bin of a type; it is kept, and only its objective changes."""
        if bin_type not in self._models:
            single_bin = restricted(self.instance, {bin_type: 1}, self.instance.demand)
            self._models[bin_type] = ExactModel(single_bin)
        return self._models[bin_type]

    def _best_column(
        self, model: ExactModel, prices: Sequence[float], stop: Stop
    ) -> Column | None:
        scale = _HIGHEST_PRICE / (max(prices) or 1.0)
        cost: list[Term] = []
        for option, variable in model.bins[0].placed.items():
            price = round(scale * prices[option])
            cost.append((variable, -price))
        outcome = minimise(model.cp, cost, self.options, stop)
        if outcome.values is None:
            return None
        return Column.of(model.read(outcome.values), 0)


def restricted(
    instance: PackingInstance, bins: Mapping[int, int], demand: Sequence[int]
) -> PackingInstance:
    """Return the instance with only some bins of each bin type, and some of the demands of each class."""
    bin_types = []
    for bin_type, count in bins.items():
        whole = instance.bin_types[bin_type]
        bin_types.append(replace(whole, instances=whole.instances[:count]))
    return replace(instance, bin_types=tuple(bin_types), demand=tuple(demand))


def is_better(column: Column, known: Sequence[Column], prices: Sequence[float]) -> bool:
    """Whether a column has a negative reduced cost: it is worth more than all known ones of its bin type."""
    counts = [candidate.counts for candidate in (column, *known)]
    worth, *known_worths = np.array(counts) @ np.array(prices)
    return bool(worth > max(known_worths, default=0.0) + _LEAST_GAIN * worth)
