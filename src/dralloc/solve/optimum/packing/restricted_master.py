"""The restricted master problem of column generation: which columns the bins of each bin type have.

With ``count[j, k]`` for how often column *j* serves assignment option *k* of demand class *c*, and copies of columns to
choose::

    sum_j copies[b, j] <= bins[b]                               for each bin type
    served[k] <= sum_{b, j} count[j, k] * copies[b, j]          for each option
    sum_{k of c} served[k] + missed[c] = demand[c]              for each class

In a basic solution of the linear relaxation, at most as many bin types have fractional copies as there are rows of
options and classes: with few classes nearly every bin is decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ortools.sat.python import cp_model

from dralloc.solve.optimum.packing.columns import Column
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.packing.tiered import TieredModel
from dralloc.solve.optimum.rows import Term, sum_of
from dralloc.solve.optimum.stopping import Stop

__all__ = ["RestrictedMaster"]


class RestrictedMaster(TieredModel):
    """A model over columns to choose from; solved with fractions, or in integers.

    ``choices``, ``bins``: by bin type, these columns, and the number of bins. ``demand``: how many of each demand class
    are to be placed.

    Raises
    ------
    Stopped
        It is time to stop.
    """

    def __init__(
        self,
        instance: PackingInstance,
        choices: Mapping[int, Sequence[Column]],
        bins: Mapping[int, int],
        demand: Sequence[int],
        stop: Stop,
    ) -> None:
        super().__init__(instance, demand)
        self.choices = choices
        self.served = [
            self.cp.new_int_var(0, demand[one.cls], f"served {n}")
            for n, one in enumerate(instance.options)
        ]
        self.copies = {
            bin_type: [
                self.cp.new_int_var(0, bins[bin_type], f"copies {bin_type} {n}")
                for n in range(len(columns))
            ]
            for bin_type, columns in stop.each(choices.items())
        }
        for bin_type, copies in self.copies.items():
            self.cp.add(cp_model.LinearExpr.sum(copies) <= bins[bin_type])
        self.rows_of_options = list(self._serve(stop))
        self.cover(enumerate(self.served))

    def _serve(self, stop: Stop) -> Iterator[int]:
        terms: list[list[Term]] = [[(served, -1)] for served in self.served]
        for bin_type, copies in stop.each(self.copies.items()):
            for variable, column in zip(copies, self.choices[bin_type], strict=True):
                for option, count in enumerate(column.counts):
                    if count:
                        terms[option].append((variable, count))
        for each in terms:
            yield self.cp.add(sum_of(each) >= 0).index

    def read(self, values: Sequence[float]) -> dict[int, list[tuple[Column, float]]]:
        """By bin type, the columns with copies, given the values of all variables."""
        return {
            bin_type: [
                (column, values[variable.index])
                for variable, column in zip(copies, self.choices[bin_type], strict=True)
                if values[variable.index]
            ]
            for bin_type, copies in self.copies.items()
        }
