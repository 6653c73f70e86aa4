"""What the models of packing have in common: demands that are missed, and the tiers as their costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.packing.instance import PackingInstance
from dralloc.solvers.cpsat.rows import Term
from dralloc.solvers.cpsat.search import as_one, limit_cost

__all__ = ["TieredModel"]


class TieredModel(ABC):
    """A model with a variable for how many demands of each class are missed."""

    instance: PackingInstance
    cp: cp_model.CpModel
    missed: list[cp_model.IntVar]

    @abstractmethod
    def ranks(self) -> list[Term]:
        """The cost of the last tier: the ranks of what is served."""

    def cost(self, level: int) -> list[Term]:
        """The cost of a tier: of the missed weight, most important first, and then the ranks."""
        weights = self.instance.weights
        if level == len(weights):
            return self.ranks()
        return [(missed, weight) for weight, missed in zip(weights[level], self.missed, strict=True) if weight]

    def cost_after(self, fixed: Sequence[int]) -> list[Term]:
        """Fix the first tiers at what they cost; the cost of the tier after them."""
        for level, most in enumerate(fixed):
            limit_cost(self.cp, self.cost(level), most)
        return self.cost(len(fixed))

    def all_costs(self) -> Sequence[Term]:
        """All tiers as one cost, as far as the numbers allow."""
        return as_one([self.cost(level) for level in range(len(self.instance.weights) + 1)])
