"""What the models of packing have in common: demands that are missed, and the tiers as their costs.

Of a gang all is lost that does not make it complete. With ``members[c]`` demands of class *c* in each of gangs *g*::

    lost[c] + members[c] * admitted[g] = size[c],  lost[c] >= missed[c]

and ``lost[c] = missed[c]`` for all others. What counts is ``sum weight[c] * lost[c]``, and what options leave out.
Wherever options *k* of a class are placed, and items of types *t* are supplied::

    sum_{k of c} placed[k] + missed[c] = size[c]
    sum_k items[k, t] * placed[k] <= supply[t]

with the supply in the variables of the unit types (see `dralloc.solve.optimum.packing.unit_types`).
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Sequence

from ortools.sat.python import cp_model

from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.packing.unit_types import Supplied
from dralloc.solve.optimum.rows import Term, sum_of
from dralloc.solve.optimum.search import as_one

__all__ = ["TieredModel"]


PlacedOption = tuple[int, cp_model.IntVar]
"""An option (an index), and how often it is placed somewhere."""


class TieredModel:
    """A model with a variable for how many joint demands of each class are missed, of those that are to be placed."""

    def __init__(self, instance: PackingInstance, demand: Sequence[int]) -> None:
        self.instance = instance
        self.demand = demand
        self._placed: list[PlacedOption] = []
        self.cp = cp_model.CpModel()
        self.missed = [
            self.cp.new_int_var(0, size, f"missed {n}") for n, size in enumerate(demand)
        ]
        self.admitted: dict[int, cp_model.IntVar] = {}
        self.lost = [self._lost(number) for number in range(len(self.missed))]

    def _lost(self, number: int) -> cp_model.IntVar:
        each = self.instance.classes[number]
        if not each.gang:
            return self.missed[number]
        gangs, members, _ = each.gang
        if gangs not in self.admitted:
            self.admitted[gangs] = self.cp.new_int_var(
                0, each.size // members, f"admitted {gangs}"
            )
        lost = self.cp.new_int_var(0, each.size, f"lost {number}")
        self.cp.add(lost + members * self.admitted[gangs] == each.size)
        self.cp.add(lost >= self.missed[number])
        return lost

    def cover(self, placed: Iterable[PlacedOption]) -> None:
        """All of a class are placed by one of its options, given wherever they are, or missed."""
        self._placed = list(placed)
        of_class = [[missed] for missed in self.missed]
        for option, variable in self._placed:
            of_class[self.instance.options[option].cls].append(variable)
        for size, variables in zip(self.demand, of_class, strict=True):
            self.cp.add(cp_model.LinearExpr.sum(variables) == size)

    def balance(
        self, placed: Iterable[PlacedOption], supplies: Iterable[Supplied]
    ) -> dict[int, cp_model.Constraint]:
        """No more items are taken in a place than its units supply: rows, by type."""
        terms: dict[int, list[Term]] = defaultdict(list)
        for option, variable in placed:
            for type_, count in Tally(
                item.type for item in self.instance.options[option].items
            ).items():
                terms[type_].append((variable, count))
        for supplied in supplies:
            for type_, given in supplied.terms.items():
                terms[type_] += [(variable, -count) for variable, count in given]
        return {type_: self.cp.add(sum_of(each) <= 0) for type_, each in terms.items()}

    def cost(self, level: int) -> list[Term]:
        """The cost of a tier: of the missed weight, most important first, and then the ranks."""
        weights, costs = self.instance.weights, self.instance.option_costs[level]
        whole = (
            zip(self.lost, weights[level], strict=True) if level < len(weights) else ()
        )
        parts = ((variable, costs[option]) for option, variable in self._placed)
        return [(variable, factor) for variable, factor in (*whole, *parts) if factor]

    def cost_after(self, fixed: Sequence[int]) -> list[Term]:
        """Fix the first tiers at what they cost; the cost of the tier after them."""
        for level, most in enumerate(fixed):
            if terms := self.cost(level):
                self.cp.add(sum_of(terms) <= most)
        return self.cost(len(fixed))

    def all_costs(self) -> Sequence[Term]:
        """All tiers as one cost, as far as the numbers allow."""
        return as_one(
            [self.cost(level) for level in range(len(self.instance.weights) + 1)]
        )
