"""The exact model: pieces and bins at once.

In variables, for each bin *n* and way *k*, and with what the units of the bin supply as in the relaxation::

    sum_k pieces[k, t] * placed[k, n] <= supply[n, t]
    sum_{k of c, n} placed[k, n] + missed[c] = size[c]
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.packing.columns import Answer
from dralloc.solvers.cpsat.packing.filling import Filling
from dralloc.solvers.cpsat.packing.kinds import Supplied
from dralloc.solvers.cpsat.packing.store import Bay, Store
from dralloc.solvers.cpsat.rows import Term
from dralloc.solvers.cpsat.search import as_one

__all__ = ["ExactModel"]


@dataclass(slots=True)
class _Cell:
    """Of a bin: by way, how often it is served; and the supply of its units, by kind."""

    placed: dict[int, cp_model.IntVar]
    supplies: list[tuple[list[int], Supplied]] = field(default_factory=list)


class ExactModel:
    """The model; see the module."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.cp = cp_model.CpModel()
        self.missed = [self.cp.new_int_var(0, len(each.members), "") for each in store.classes]
        self.bins = [self._cell(bay) for bay in store.bays for _ in bay.slots]
        of_class: list[list[cp_model.IntVar]] = [[missed] for missed in self.missed]
        for bin_ in self.bins:
            for way, variable in bin_.placed.items():
                of_class[store.ways[way].cls].append(variable)
        for each, variables in zip(store.classes, of_class, strict=True):
            self.cp.add(cp_model.LinearExpr.sum(variables) == len(each.members))

    def _cell(self, bay: Bay) -> _Cell:
        sizes = [len(each.members) for each in self.store.classes]
        ways = self.store.ways
        bin_ = _Cell({way: self.cp.new_int_var(0, sizes[ways[way].cls], "") for way in self.store.ways_of(bay.area)})
        terms: dict[int, list[Term]] = defaultdict(list)
        for way, variable in bin_.placed.items():
            for type_, count in Tally(piece.type for piece in ways[way].pieces).items():
                terms[type_].append((variable, count))
        for kind, units in self._groups(bay):
            supplied = self.store.kinds[kind].supply(self.cp, len(units))
            bin_.supplies.append((units, supplied))
            for type_, given in supplied.terms.items():
                terms[type_] += [(variable, -count) for variable, count in given]
        for each in terms.values():
            variables, factors = zip(*each, strict=True)
            self.cp.add(cp_model.LinearExpr.weighted_sum(variables, factors) <= 0)
        return bin_

    def _groups(self, bay: Bay) -> Iterator[tuple[int, list[int]]]:
        """Units of a kind, together if that is exact."""
        for kind in dict.fromkeys(bay.kinds):
            units = [unit for unit, each in enumerate(bay.kinds) if each == kind]
            yield from [(kind, units)] if self.store.kinds[kind].together else [(kind, [unit]) for unit in units]

    def missed_weight(self) -> list[Term]:
        """The cost of the first tier."""
        return [(missed, each.weight) for each, missed in zip(self.store.classes, self.missed, strict=True)]

    def ranks(self) -> list[Term]:
        """The cost of the second tier."""
        return [
            (variable, self.store.ways[way].mode.rank)
            for bin_ in self.bins
            for way, variable in bin_.placed.items()
            if self.store.ways[way].mode.rank
        ]

    def miss_at_least(self, weight: int) -> None:
        """Let the model know that so much will be missed, so that it does not look for less."""
        variables, weights = zip(*self.missed_weight(), strict=True)
        self.cp.add(cp_model.LinearExpr.weighted_sum(variables, weights) >= weight)

    def both(self) -> Sequence[Term]:
        """Both tiers as one cost."""
        return as_one(self.missed_weight(), self.ranks())

    def hint(self, answer: Answer) -> None:
        """Start from an answer."""
        bins = iter(self.bins)
        for bay, chosen in zip(self.store.bays, answer, strict=True):
            columns = [column for column, number in chosen for _ in range(number)]
            for place in range(len(bay.slots)):
                counts = columns[place].counts if place < len(columns) else (0,) * len(self.store.ways)
                for way, variable in next(bins).placed.items():
                    self.cp.add_hint(variable, counts[way])

    def read(self, values: Sequence[int]) -> Filling:
        """What is served in each bin, given the values of all variables."""
        counts = np.zeros((len(self.bins), len(self.store.ways)), dtype=np.int64)
        deals = []
        for number, bin_ in enumerate(self.bins):
            for way, variable in bin_.placed.items():
                counts[number, way] = values[variable.index]
            deals.append(list(self._deal(bin_, values)))
        return Filling(counts, deals=deals)

    def _deal(self, bin_: _Cell, values: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Take pieces from the first unit that has any left."""
        givers: dict[int, list[int]] = defaultdict(list)
        for units, supplied in bin_.supplies:
            for unit, types in zip(units, supplied.shares(values), strict=False):
                for type_ in types:
                    givers[type_].append(unit)
        for way, variable in bin_.placed.items():
            for _ in range(values[variable.index]):
                yield way, tuple(givers[piece.type].pop(0) for piece in self.store.ways[way].pieces)
