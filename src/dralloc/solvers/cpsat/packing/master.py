"""The master: which columns the bins of each bay have.

With ``count[j, k]`` for how often column *j* serves way *k* of demand class *c*, and copies of columns to choose::

    sum_j copies[b, j] <= bins[b]                              for each bay
    served[k] <= sum_{b, j} count[j, k] * copies[b, j]          for each way
    sum_{k of c} served[k] + missed[c] = demand[c]              for each class

In a basic solution of the linear relaxation, at most as many bays have fractional copies as there are rows of ways and
classes: with few kinds of demands nearly every bin is decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.linear import Linear, solve_linear
from dralloc.solvers.cpsat.packing.columns import Column
from dralloc.solvers.cpsat.packing.store import Store
from dralloc.solvers.cpsat.rows import Term
from dralloc.solvers.cpsat.search import as_one

__all__ = ["Master", "Offer"]


@dataclass(frozen=True, slots=True)
class Offer:
    """Columns to choose from, for so many bins of a bay."""

    columns: Sequence[Column]
    bins: int


class Master:
    """A model over columns.

    Parameters
    ----------
    store
        The store.
    offers
        By bay, the columns to choose from.
    demand
        By demand class, how many are to be placed.
    """

    def __init__(self, store: Store, offers: Mapping[int, Offer], demand: Sequence[int]) -> None:
        self.store = store
        self.offers = offers
        self.cp = cp_model.CpModel()
        self.missed = [self.cp.new_int_var(0, size, "") for size in demand]
        self.served = [self.cp.new_int_var(0, demand[way.cls], "") for way in store.ways]
        self.copies = {
            bay: [self.cp.new_int_var(0, offer.bins, "") for _ in offer.columns] for bay, offer in offers.items()
        }
        for bay, copies in self.copies.items():
            self.cp.add(cp_model.LinearExpr.sum(copies) <= offers[bay].bins)
        self.rows_of_ways = list(self._serve())
        self._demand(demand)

    def _serve(self) -> Iterator[int]:
        terms: list[list[Term]] = [[(served, -1)] for served in self.served]
        for bay, copies in self.copies.items():
            for variable, column in zip(copies, self.offers[bay].columns, strict=True):
                for way, count in enumerate(column.counts):
                    if count:
                        terms[way].append((variable, count))
        for each in terms:
            variables, factors = zip(*each, strict=True)
            yield self.cp.add(cp_model.LinearExpr.weighted_sum(variables, factors) >= 0).index

    def _demand(self, demand: Sequence[int]) -> None:
        of_class: list[list[cp_model.IntVar]] = [[missed] for missed in self.missed]
        for way, served in zip(self.store.ways, self.served, strict=True):
            of_class[way.cls].append(served)
        for size, variables in zip(demand, of_class, strict=True):
            self.cp.add(cp_model.LinearExpr.sum(variables) == size)

    def missed_weight(self) -> list[Term]:
        """The cost of the first tier."""
        return [(missed, each.weight) for each, missed in zip(self.store.classes, self.missed, strict=True)]

    def ranks(self) -> list[Term]:
        """The cost of the second tier."""
        return [
            (served, way.mode.rank) for way, served in zip(self.store.ways, self.served, strict=True) if way.mode.rank
        ]

    def both(self) -> Sequence[Term]:
        """Both tiers as one cost."""
        return as_one(self.missed_weight(), self.ranks())

    def fractional(self, cost: Sequence[Term], limit: float | None) -> Linear | None:
        """The best copies with fractions allowed."""
        return solve_linear(self.cp, cost, limit)

    def read(self, values: Sequence[float]) -> dict[int, list[tuple[Column, float]]]:
        """By bay, the columns with copies, given the values of all variables."""
        return {
            bay: [
                (column, values[variable.index])
                for variable, column in zip(copies, self.offers[bay].columns, strict=True)
                if values[variable.index]
            ]
            for bay, copies in self.copies.items()
        }
