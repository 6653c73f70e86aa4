"""The relaxation: pieces may come from any unit of an area, whatever bin it is in.

In variables, for ways *k* of demand classes *c*, areas *a*, types of pieces *t*::

    sum_{k of c, a} placed[k, a] + missed[c] = size[c]
    sum_k pieces[k, t] * placed[k, a] <= supply[a, t]

with the supply in the variables of the kinds of units (see `dralloc.solvers.cpsat.packing.kinds`). Any answer is an
answer here, so what is proven here is a bound for all; and the shadow prices of its linear relaxation say how precious
a piece is.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.linear import solve_linear
from dralloc.solvers.cpsat.packing.store import Store
from dralloc.solvers.cpsat.rows import Term

_SIZE: Final = 0.001
"""What size weighs beside prices."""

__all__ = ["Prices", "Relaxation", "guide"]

Prices = Mapping[tuple[int, int], float]
"""What a piece is worth, by area and type, in the unit of the weights."""


class Relaxation:
    """The model; see the module."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.cp = cp_model.CpModel()
        sizes = [len(each.members) for each in store.classes]
        self.missed = [self.cp.new_int_var(0, size, "") for size in sizes]
        self.placed = {
            (way, area): self.cp.new_int_var(0, sizes[store.ways[way].cls], "")
            for area in range(len(store.areas))
            for way in store.ways_of(area)
        }
        self._sizes(sizes)
        self._rows: dict[tuple[int, int], cp_model.Constraint] = {}
        self._balance()

    def _sizes(self, sizes: Sequence[int]) -> None:
        of_class: dict[int, list[cp_model.IntVar]] = defaultdict(list)
        for (way, _), variable in self.placed.items():
            of_class[self.store.ways[way].cls].append(variable)
        for number, size in enumerate(sizes):
            self.cp.add(cp_model.LinearExpr.sum([self.missed[number], *of_class[number]]) == size)

    def _balance(self) -> None:
        """Pieces that are taken are given."""
        terms: dict[tuple[int, int], list[Term]] = defaultdict(list)
        for (way, area), variable in self.placed.items():
            for type_, count in Tally(piece.type for piece in self.store.ways[way].pieces).items():
                terms[area, type_].append((variable, count))
        units: Tally[tuple[int, int]] = Tally()
        for bay in self.store.bays:
            for kind in bay.kinds:
                units[bay.area, kind] += len(bay.slots)
        for (area, kind), number in units.items():
            for type_, given in self.store.kinds[kind].supply(self.cp, number).terms.items():
                terms[area, type_] += [(variable, -count) for variable, count in given]
        for place, each in terms.items():
            variables, factors = zip(*each, strict=True)
            self._rows[place] = self.cp.add(cp_model.LinearExpr.weighted_sum(variables, factors) <= 0)

    def missed_weight(self) -> list[Term]:
        """The cost of the first tier."""
        return [(missed, each.weight) for each, missed in zip(self.store.classes, self.missed, strict=True)]

    def ranks(self) -> list[Term]:
        """The cost of the second tier."""
        return [
            (variable, self.store.ways[way].mode.rank)
            for (way, _), variable in self.placed.items()
            if self.store.ways[way].mode.rank
        ]

    def targets(self, values: Sequence[int]) -> dict[tuple[int, int], int]:
        """By way and area, how many are placed, given the values of all variables."""
        return {place: values[variable.index] for place, variable in self.placed.items()}

    def prices(self) -> Prices:
        """What one more piece would be worth in the first tier, with fractions allowed."""
        found = solve_linear(self.cp, self.missed_weight())
        return {place: abs(found.duals[row.index]) for place, row in self._rows.items()} if found else {}


def guide(store: Store, prices: Prices) -> Prices:
    """Prices that also tell large pieces from small ones where the relaxation has enough of both."""
    scale = max(prices.values(), default=0.0) or 1.0
    most = {
        type_: max((kind.most(type_) for kind in store.kinds if type_ in kind.types), default=0)
        for type_ in store.types
    }
    return {
        (area, type_): prices.get((area, type_), 0.0) + _SIZE * scale / max(1, most[type_])
        for area in range(len(store.areas))
        for type_ in store.types
    }
