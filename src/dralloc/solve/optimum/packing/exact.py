"""The exact model of packing, and pricing, which asks it about one bin at a time.

The exact model decides over items and bins at once, so each bin is a place (see
`dralloc.solve.optimum.packing.models`). Pricing looks for the column of least reduced cost: the best that a bin can
serve at the dual values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from dralloc.objects.choices import Options
from dralloc.solve.optimum.packing.columns import Column, PackingSolution
from dralloc.solve.optimum.packing.construction import Packing, PlacementRound
from dralloc.solve.optimum.packing.instance import BinType, PackingInstance
from dralloc.solve.optimum.packing.models import TieredModel
from dralloc.solve.optimum.packing.units import Supplied
from dralloc.solve.optimum.rows import Term, sum_of
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["ExactModel", "Pricer", "is_better", "restricted"]

_HIGHEST_PRICE: Final = 10**6
"""The highest price as an integer."""

_LEAST_GAIN: Final = 1e-7
"""Less than this share of a bin's worth is not worth a column."""


class _BinVariables(NamedTuple):
    """The variables of a bin: by option, how often it is served; and for each group of units what they supply."""

    placed: dict[int, cp_model.IntVar]
    supplies: list[tuple[list[int], Supplied]]


class ExactModel(TieredModel):
    """The exact model; see the module.

    Parameters
    ----------
    stop
        When to stop building it.

    Raises
    ------
    Stopped
        It is time to stop.
    """

    def __init__(self, instance: PackingInstance, stop: Stop | None = None) -> None:
        super().__init__(instance, instance.demand)
        stop = stop or Stop()
        bin_types: list[BinType] = []
        for bin_type in instance.bin_types:
            bin_types += [bin_type] * len(bin_type.instances)
        self.bins = [self._bin(bin_type) for bin_type in stop.hundreds(bin_types)]
        self.cover(option for bin_ in self.bins for option in bin_.placed.items())

    def _bin(self, bin_type: BinType) -> _BinVariables:
        placed: dict[int, cp_model.IntVar] = {}
        for option in self.instance.options_of(bin_type.area):
            size = self.demand[self.instance.options[option].cls]
            placed[option] = self.cp.new_int_var(0, size, f"placed {option}")
        supplies = []
        for unit_type, units in self._unit_groups(bin_type):
            supplied = self.instance.unit_types[unit_type].supply(self.cp, len(units))
            supplies.append((units, supplied))
        self.balance(placed.items(), [supplied for _, supplied in supplies])
        return _BinVariables(placed, supplies)

    def _unit_groups(self, bin_type: BinType) -> Iterator[tuple[int, list[int]]]:
        """Yield the units of each type, together if the supply of several is exact."""
        units_by_type: dict[int, list[int]] = defaultdict(list)
        for unit, unit_type in enumerate(bin_type.unit_types):
            units_by_type[unit_type].append(unit)
        for unit_type, units in units_by_type.items():
            if self.instance.unit_types[unit_type].together:
                yield unit_type, units
            else:
                for unit in units:
                    yield unit_type, [unit]

    def miss_at_least(self, costs: Sequence[int]) -> None:
        """Add that the first tiers cost so much, so that nobody looks for less."""
        for level, least in enumerate(costs[: len(self.instance.tiers)]):
            if terms := self.cost(level):
                self.cp.add(sum_of(terms) >= least)

    def hint(self, answer: PackingSolution) -> None:
        """Start the search from an answer."""
        nothing = (0,) * len(self.instance.options)
        bins = iter(self.bins)
        for bin_type, chosen in zip(self.instance.bin_types, answer, strict=True):
            counts_of_bins: list[tuple[int, ...]] = []
            for column, number in chosen:
                counts_of_bins += [column.counts] * number
            idle_bins = len(bin_type.instances) - len(counts_of_bins)
            counts_of_bins += [nothing] * idle_bins
            for counts in counts_of_bins[: len(bin_type.instances)]:
                for option, variable in next(bins).placed.items():
                    self.cp.add_hint(variable, counts[option])

    def read(self, values: Sequence[int]) -> Packing:
        """Return what is served in each bin, given the values of all variables."""
        counts = np.zeros((len(self.bins), len(self.instance.options)), dtype=np.int64)
        rounds = []
        for bin_number, bin_ in enumerate(self.bins):
            for option, units in self._content(bin_, values):
                counts[bin_number, option] += 1
                rounds.append(
                    PlacementRound(option, np.array([bin_number]), np.array([units]))
                )
        return Packing(counts, rounds)

    def _content(
        self, bin_: _BinVariables, values: Sequence[int]
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield each option that is served, with units for its items: the first that have any to give."""
        suppliers: dict[int, list[int]] = defaultdict(list)
        for units, supplied in bin_.supplies:
            for unit, item_types in zip(units, supplied.shares(values), strict=False):
                for item_type in item_types:
                    suppliers[item_type].append(unit)
        for option, variable in bin_.placed.items():
            items = self.instance.options[option].items
            for _ in range(values[variable.index]):
                yield option, [suppliers[item.type].pop(0) for item in items]


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
