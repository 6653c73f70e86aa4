"""The relaxation: items may come from any unit of an area, whatever bin it is in.

In variables, for options *k* of demand classes *c*, areas *a*, types of items *t*::

    sum_{k of c, a} placed[k, a] + missed[c] = size[c]
    sum_k items[k, t] * placed[k, a] <= supply[a, t]

with the supply in the variables of the unit types (see `dralloc.solvers.cpsat.packing.unit_types`). Any answer is an
answer here, so what is proven here is a bound for all; and the shadow prices of its linear relaxation say how precious
an item is.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.linear import solve_linear
from dralloc.solvers.cpsat.packing.instance import PackingInstance
from dralloc.solvers.cpsat.packing.tiered import TieredModel
from dralloc.solvers.cpsat.rows import Term
from dralloc.solvers.cpsat.stopping import Stop

_SIZE: Final = 0.001
"""What size weighs beside prices."""

__all__ = ["Prices", "Relaxation", "guide"]

Prices = Mapping[tuple[int, int], float]
"""What an item is worth, by area and type, in the unit of the weights."""


class Relaxation(TieredModel):
    """The model; see the module."""

    def __init__(self, instance: PackingInstance) -> None:
        super().__init__(instance, instance.demand)
        sizes = instance.demand
        self.placed = {
            (option, area): self.cp.new_int_var(0, sizes[instance.options[option].cls], f"placed {option} {area}")
            for area in range(len(instance.areas))
            for option in instance.options_of(area)
        }
        self._sizes(sizes)
        self._rows: dict[tuple[int, int], cp_model.Constraint] = {}
        self._balance()

    def _sizes(self, sizes: Sequence[int]) -> None:
        of_class: dict[int, list[cp_model.IntVar]] = defaultdict(list)
        for (option, _), variable in self.placed.items():
            of_class[self.instance.options[option].cls].append(variable)
        for number, size in enumerate(sizes):
            self.cp.add(cp_model.LinearExpr.sum([self.missed[number], *of_class[number]]) == size)

    def _balance(self) -> None:
        """No more items are taken than the units supply."""
        terms: dict[tuple[int, int], list[Term]] = defaultdict(list)
        for (option, area), variable in self.placed.items():
            for type_, count in Tally(item.type for item in self.instance.options[option].items).items():
                terms[area, type_].append((variable, count))
        units: Tally[tuple[int, int]] = Tally()
        for bin_type in self.instance.bin_types:
            for unit_type in bin_type.unit_types:
                units[bin_type.area, unit_type] += len(bin_type.instances)
        for (area, unit_type), number in units.items():
            for type_, given in self.instance.unit_types[unit_type].supply(self.cp, number).terms.items():
                terms[area, type_] += [(variable, -count) for variable, count in given]
        for place, each in terms.items():
            variables, factors = zip(*each, strict=True)
            self._rows[place] = self.cp.add(cp_model.LinearExpr.weighted_sum(variables, factors) <= 0)

    def of_options(self, costs: Sequence[int]) -> list[Term]:
        """See `TieredModel`."""
        return [(variable, costs[option]) for (option, _), variable in self.placed.items() if costs[option]]

    def targets(self, values: Sequence[int]) -> dict[tuple[int, int], int]:
        """By option and area, how many are placed, given the values of all variables."""
        return {place: values[variable.index] for place, variable in self.placed.items()}

    def prices(self, stop: Stop) -> Prices:
        """What one more item would be worth in the first tier, with fractions allowed."""
        found = solve_linear(self.cp, self.cost(0), stop)
        return {place: abs(found.duals[row.index]) for place, row in self._rows.items()} if found else {}


def guide(instance: PackingInstance, prices: Prices) -> Prices:
    """Prices that also tell large items from small ones where the relaxation has enough of both."""
    scale = max(prices.values(), default=0.0) or 1.0
    most = {
        type_: max((unit_type.most(type_) for unit_type in instance.unit_types if type_ in unit_type.types), default=0)
        for type_ in instance.types
    }
    return {
        (area, type_): prices.get((area, type_), 0.0) + _SIZE * scale / max(1, most[type_])
        for area in range(len(instance.areas))
        for type_ in instance.types
    }
