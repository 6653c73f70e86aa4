"""The exact model: items and bins at once, so each bin is a place (see `dralloc.solve.optimum.packing.models`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from dralloc.solve.optimum.packing.columns import PackingSolution
from dralloc.solve.optimum.packing.construction import Packing, PlacementRound
from dralloc.solve.optimum.packing.instance import BinType, PackingInstance
from dralloc.solve.optimum.packing.models import TieredModel
from dralloc.solve.optimum.packing.units import Supplied
from dralloc.solve.optimum.rows import sum_of
from dralloc.solve.optimum.stopping import Stop

__all__ = ["ExactModel"]


class _BinVariables(NamedTuple):
    """Of a bin: by assignment option, how often it is served; and the supply of its units, by type."""

    placed: dict[int, cp_model.IntVar]
    supplies: list[tuple[list[int], Supplied]]


class ExactModel(TieredModel):
    """The model; see the module.

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
        bin_types = (
            bin_type for bin_type in instance.bin_types for _ in bin_type.instances
        )
        self.bins = [
            self._bin(bin_type) for bin_type in (stop or Stop()).hundreds(bin_types)
        ]
        self.cover(each for bin_ in self.bins for each in bin_.placed.items())

    def _bin(self, bin_type: BinType) -> _BinVariables:
        placed = {
            option: self.cp.new_int_var(
                0, self.demand[self.instance.options[option].cls], f"placed {option}"
            )
            for option in self.instance.options_of(bin_type.area)
        }
        supplies = [
            (units, self.instance.unit_types[unit_type].supply(self.cp, len(units)))
            for unit_type, units in self._groups(bin_type)
        ]
        self.balance(placed.items(), (supplied for _, supplied in supplies))
        return _BinVariables(placed, supplies)

    def _groups(self, bin_type: BinType) -> Iterator[tuple[int, list[int]]]:
        """Units of a type, together if that is exact."""
        for unit_type in dict.fromkeys(bin_type.unit_types):
            units = [
                unit
                for unit, each in enumerate(bin_type.unit_types)
                if each == unit_type
            ]
            yield from (
                [(unit_type, units)]
                if self.instance.unit_types[unit_type].together
                else [(unit_type, [unit]) for unit in units]
            )

    def miss_at_least(self, costs: Sequence[int]) -> None:
        """Let the model know that the first tiers cost so much, so that it does not look for less."""
        for level, least in enumerate(costs[: len(self.instance.tiers)]):
            if terms := self.cost(level):
                self.cp.add(sum_of(terms) >= least)

    def hint(self, answer: PackingSolution) -> None:
        """Start from an answer."""
        bins = iter(self.bins)
        for bin_type, chosen in zip(self.instance.bin_types, answer, strict=True):
            columns = [column for column, number in chosen for _ in range(number)]
            for place in range(len(bin_type.instances)):
                counts = (
                    columns[place].counts
                    if place < len(columns)
                    else (0,) * len(self.instance.options)
                )
                for option, variable in next(bins).placed.items():
                    self.cp.add_hint(variable, counts[option])

    def read(self, values: Sequence[int]) -> Packing:
        """What is served in each bin, given the values of all variables."""
        counts = np.zeros((len(self.bins), len(self.instance.options)), dtype=np.int64)
        rounds = []
        for number, bin_ in enumerate(self.bins):
            for option, units in self._content(bin_, values):
                counts[number, option] += 1
                rounds.append(
                    PlacementRound(option, np.array([number]), np.array([units]))
                )
        return Packing(counts, rounds)

    def _content(
        self, bin_: _BinVariables, values: Sequence[int]
    ) -> Iterator[tuple[int, list[int]]]:
        """Take items from the first unit that has any left."""
        suppliers: dict[int, list[int]] = defaultdict(list)
        for units, supplied in bin_.supplies:
            for unit, types in zip(units, supplied.shares(values), strict=False):
                for type_ in types:
                    suppliers[type_].append(unit)
        for option, variable in bin_.placed.items():
            for _ in range(values[variable.index]):
                yield (
                    option,
                    [
                        suppliers[item.type].pop(0)
                        for item in self.instance.options[option].items
                    ],
                )
