"""What the models of packing have in common: demands that are missed, and the tiers as their costs.

Of a gang all is lost that does not make it complete. With ``members[c]`` demands of class *c* in each of gangs *g*::

    lost[c] + members[c] * admitted[g] = size[c],  lost[c] >= missed[c]

and ``lost[c] = missed[c]`` for all others. What counts is ``sum weight[c] * lost[c]``, and what options leave out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.packing.instance import PackingInstance
from dralloc.solvers.cpsat.rows import Term
from dralloc.solvers.cpsat.search import as_one, limit_cost

__all__ = ["TieredModel"]


class TieredModel(ABC):
    """A model with a variable for how many joint demands of each class are missed, of those that are to be placed."""

    def __init__(self, instance: PackingInstance, demand: Sequence[int]) -> None:
        self.instance = instance
        self.cp = cp_model.CpModel()
        self.missed = [self.cp.new_int_var(0, size, f"missed {n}") for n, size in enumerate(demand)]
        self.admitted: dict[int, cp_model.IntVar] = {}
        self.lost = [self._lost(number) for number in range(len(self.missed))]

    def _lost(self, number: int) -> cp_model.IntVar:
        each = self.instance.classes[number]
        if not each.gang:
            return self.missed[number]
        gangs, members, _ = each.gang
        if gangs not in self.admitted:
            self.admitted[gangs] = self.cp.new_int_var(0, each.size // members, f"admitted {gangs}")
        lost = self.cp.new_int_var(0, each.size, f"lost {number}")
        self.cp.add(lost + members * self.admitted[gangs] == each.size)
        self.cp.add(lost >= self.missed[number])
        return lost

    @abstractmethod
    def of_options(self, costs: Sequence[int]) -> list[Term]:
        """What is served, at these costs of options."""

    def cost(self, level: int) -> list[Term]:
        """The cost of a tier: of the missed weight, most important first, and then the ranks."""
        weights = self.instance.weights
        whole = zip(self.lost, weights[level], strict=True) if level < len(weights) else ()
        return [
            *((lost, weight) for lost, weight in whole if weight),
            *self.of_options(self.instance.option_costs[level]),
        ]

    def cost_after(self, fixed: Sequence[int]) -> list[Term]:
        """Fix the first tiers at what they cost; the cost of the tier after them."""
        for level, most in enumerate(fixed):
            limit_cost(self.cp, self.cost(level), most)
        return self.cost(len(fixed))

    def all_costs(self) -> Sequence[Term]:
        """All tiers as one cost, as far as the numbers allow."""
        return as_one([self.cost(level) for level in range(len(self.instance.weights) + 1)])
