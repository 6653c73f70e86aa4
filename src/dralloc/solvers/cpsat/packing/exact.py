"""The exact model: items and bins at once.

In variables, for each bin *n* and option *k*, and with what the units of the bin supply as in the relaxation::

    sum_k items[k, t] * placed[k, n] <= supply[n, t]
    sum_{k of c, n} placed[k, n] + missed[c] = size[c]
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.packing.columns import PackingSolution
from dralloc.solvers.cpsat.packing.construction import Packing
from dralloc.solvers.cpsat.packing.instance import BinType, PackingInstance
from dralloc.solvers.cpsat.packing.tiered import TieredModel
from dralloc.solvers.cpsat.packing.unit_types import Supplied
from dralloc.solvers.cpsat.rows import Term

__all__ = ["ExactModel"]


@dataclass(slots=True)
class _BinVariables:
    """Of a bin: by assignment option, how often it is served; and the supply of its units, by type."""

    placed: dict[int, cp_model.IntVar]
    supplies: list[tuple[list[int], Supplied]] = field(default_factory=list)


class ExactModel(TieredModel):
    """The model; see the module."""

    def __init__(self, instance: PackingInstance) -> None:
        super().__init__(instance, instance.demand)
        self.bins = [self._bin(bin_type) for bin_type in instance.bin_types for _ in bin_type.instances]
        of_class: list[list[cp_model.IntVar]] = [[missed] for missed in self.missed]
        for bin_ in self.bins:
            for option, variable in bin_.placed.items():
                of_class[instance.options[option].cls].append(variable)
        for size, variables in zip(instance.demand, of_class, strict=True):
            self.cp.add(cp_model.LinearExpr.sum(variables) == size)

    def _bin(self, bin_type: BinType) -> _BinVariables:
        sizes = self.instance.demand
        options = self.instance.options
        bin_ = _BinVariables(
            {
                option: self.cp.new_int_var(0, sizes[options[option].cls], f"placed {option}")
                for option in self.instance.options_of(bin_type.area)
            }
        )
        terms: dict[int, list[Term]] = defaultdict(list)
        for option, variable in bin_.placed.items():
            for type_, count in Tally(item.type for item in options[option].items).items():
                terms[type_].append((variable, count))
        for unit_type, units in self._groups(bin_type):
            supplied = self.instance.unit_types[unit_type].supply(self.cp, len(units))
            bin_.supplies.append((units, supplied))
            for type_, given in supplied.terms.items():
                terms[type_] += [(variable, -count) for variable, count in given]
        for each in terms.values():
            variables, factors = zip(*each, strict=True)
            self.cp.add(cp_model.LinearExpr.weighted_sum(variables, factors) <= 0)
        return bin_

    def _groups(self, bin_type: BinType) -> Iterator[tuple[int, list[int]]]:
        """Units of a type, together if that is exact."""
        for unit_type in dict.fromkeys(bin_type.unit_types):
            units = [unit for unit, each in enumerate(bin_type.unit_types) if each == unit_type]
            yield from (
                [(unit_type, units)]
                if self.instance.unit_types[unit_type].together
                else [(unit_type, [unit]) for unit in units]
            )

    def of_options(self, costs: Sequence[int]) -> list[Term]:
        """See `TieredModel`."""
        placed = (each for bin_ in self.bins for each in bin_.placed.items())
        return [(variable, costs[option]) for option, variable in placed if costs[option]]

    def miss_at_least(self, costs: Sequence[int]) -> None:
        """Let the model know that the first tiers cost so much, so that it does not look for less."""
        for level, least in enumerate(costs[: len(self.instance.tiers)]):
            if terms := self.cost(level):
                variables, weights = zip(*terms, strict=True)
                self.cp.add(cp_model.LinearExpr.weighted_sum(variables, weights) >= least)

    def hint(self, answer: PackingSolution) -> None:
        """Start from an answer."""
        bins = iter(self.bins)
        for bin_type, chosen in zip(self.instance.bin_types, answer, strict=True):
            columns = [column for column, number in chosen for _ in range(number)]
            for place in range(len(bin_type.instances)):
                counts = columns[place].counts if place < len(columns) else (0,) * len(self.instance.options)
                for option, variable in next(bins).placed.items():
                    self.cp.add_hint(variable, counts[option])

    def read(self, values: Sequence[int]) -> Packing:
        """What is served in each bin, given the values of all variables."""
        counts = np.zeros((len(self.bins), len(self.instance.options)), dtype=np.int64)
        contents = []
        for number, bin_ in enumerate(self.bins):
            for option, variable in bin_.placed.items():
                counts[number, option] = values[variable.index]
            contents.append(list(self._content(bin_, values)))
        return Packing(counts, contents=contents)

    def _content(self, bin_: _BinVariables, values: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Take items from the first unit that has any left."""
        suppliers: dict[int, list[int]] = defaultdict(list)
        for units, supplied in bin_.supplies:
            for unit, types in zip(units, supplied.shares(values), strict=False):
                for type_ in types:
                    suppliers[type_].append(unit)
        for option, variable in bin_.placed.items():
            for _ in range(values[variable.index]):
                yield option, tuple(suppliers[item.type].pop(0) for item in self.instance.options[option].items)
