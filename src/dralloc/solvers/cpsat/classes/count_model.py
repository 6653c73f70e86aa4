"""The formulation over counts: how many demands of each class are served in which mode.

For demand classes *c* with modes *m*, and requirements *k*::

    sum_m placed[c, m] + missed[c] = size[c]
    sum_{(c, m) with requirement k} placed[c, m] <= supply[k]

and gangs as in `dralloc.solvers.cpsat.classes.whole_gangs`, the supply in the variables of the bin classes (see
`dralloc.solvers.cpsat.classes.supply`). The first tiers are ``sum weight[c] * missed[c]`` and
``sum rank[m] * placed[c, m]``. A namespace with a budget uses ``sum amount[m] * placed[c, m]`` over its classes.
Demands of a class are interchangeable, as are bins of a class, so every answer has an image here, and every image can
be given names again at the same cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from dralloc.budget import Budget
from dralloc.errors import DrallocError
from dralloc.problem import Problem
from dralloc.solution import Grant, Placement
from dralloc.solvers.cpsat.classes.budgeted import BudgetedAmounts
from dralloc.solvers.cpsat.classes.demand_classes import DemandClass, ServingMode
from dralloc.solvers.cpsat.classes.supply import Served, Supply
from dralloc.solvers.cpsat.classes.whole_gangs import AdmittedGangs
from dralloc.solvers.cpsat.rows import Term, fix_cost
from dralloc.solvers.cpsat.weight_tiers import WeightTier

__all__ = ["CountModel", "Counted", "placement"]


@dataclass(frozen=True, slots=True)
class Counted:
    """A component over classes.

    Parameters
    ----------
    classes
        The demand classes, each with the modes that have any supply.
    supplies
        What there is to serve them, by classes of equals.
    amounts
        What requirements use of what namespaces have budgets of.
    """

    classes: Sequence[DemandClass]
    supplies: Sequence[Supply]
    amounts: BudgetedAmounts

    @property
    def demands(self) -> list[int]:
        """All demands, in order."""
        return sorted(member for each in self.classes for member in each.members)

    @property
    def has_budgets(self) -> bool:
        """Whether it has demands of namespaces with budgets."""
        return any(each.namespace for each in self.classes)


class CountModel:
    """A model of a component over classes. No namespace takes more than its budget leaves."""

    def __init__(self, counted: Counted, budgets: Sequence[Budget]) -> None:
        self.classes = classes = counted.classes
        self.supplies = counted.supplies
        self.amounts = counted.amounts
        self.budgets = budgets
        self.cp = cp_model.CpModel()
        self.missed = [self.cp.new_int_var(0, len(each.members), f"missed {n}") for n, each in enumerate(classes)]
        self.placed = [
            [self.cp.new_int_var(0, len(each.members), f"placed {n} {mode.picks}") for mode in each.modes]
            for n, each in enumerate(classes)
        ]
        for each, missed, placed in zip(classes, self.missed, self.placed, strict=True):
            self.cp.add(cp_model.LinearExpr.sum([missed, *placed]) == len(each.members))
        self._gangs = AdmittedGangs(self.cp, classes, self.missed)
        self._balance()
        for budget in budgets:
            uses = list(self.uses(budget))
            if budget.left is not None and uses:
                fix_cost(self.cp, uses, budget.left, f"cap {budget.namespace}={budget.resource}")

    def _balance(self) -> None:
        supplied: dict[int, list[Term]] = defaultdict(list)
        for supply in self.supplies:
            for requirement, terms in supply.build(self.cp).items():
                supplied[requirement] += terms
        wanted: dict[int, list[cp_model.IntVar]] = defaultdict(list)
        for _, mode, variable in self._modes():
            wanted[mode.requirement].append(variable)
        for requirement, variables in wanted.items():
            terms = supplied.get(requirement, [])
            literals = [variable for variable, _ in terms] + variables
            factors = [factor for _, factor in terms] + [-1] * len(variables)
            self.cp.add(cp_model.LinearExpr.weighted_sum(literals, factors) >= 0)

    def _modes(self) -> Iterator[tuple[DemandClass, ServingMode, cp_model.IntVar]]:
        for each, placed in zip(self.classes, self.placed, strict=True):
            for mode, variable in zip(each.modes, placed, strict=True):
                yield each, mode, variable

    def uses(self, budget: Budget) -> Iterator[Term]:
        """What the demands of the budget's namespace use."""
        amounts = self.amounts[budget.resource]
        for each, mode, variable in self._modes():
            if each.namespace == budget.namespace and amounts[mode.requirement]:
                yield variable, amounts[mode.requirement]

    def missed_weight(self, tier: WeightTier) -> list[Term]:
        """The cost of a tier of the weight."""
        return [(missed, tier.of(each.weight)) for each, missed in zip(self.classes, self.missed, strict=True)]

    def ranks(self) -> list[Term]:
        """The cost of the last tier."""
        return [(variable, mode.rank) for _, mode, variable in self._modes() if mode.rank]

    def placements(self, problem: Problem, values: Sequence[int]) -> list[Placement]:
        """Give names to an answer: the first demands of each class are placed, in the order of the inventory.

        Raises
        ------
        DrallocError
            There is less than the variables say. It never happens unless the formulation is wrong.
        """
        queues = self._served(values)
        found = []
        members = self._gangs.placed_members(self.classes, self.missed, values)
        for each, placed, named in zip(self.classes, self.placed, members, strict=True):
            for mode, variable in zip(each.modes, placed, strict=True):
                for _ in range(values[variable.index]):
                    got = next(queues[mode.requirement], None)
                    if got is None:
                        raise DrallocError(
                            f"classes: fewer servings of requirement {mode.requirement} than were counted"
                        )
                    found.append(placement(problem, next(named), mode, got))
        return sorted(found, key=lambda placement: placement.demand)

    def _served(self, values: Sequence[int]) -> dict[int, Iterator[Served]]:
        """By requirement: what is served, in the order of the inventory."""
        served: dict[int, list[Served]] = {mode.requirement: [] for _, mode, _ in self._modes()}
        for supply in self.supplies:
            for requirement, each in supply.realise(values):
                served[requirement].append(each)
        return {requirement: iter(sorted(each)) for requirement, each in served.items()}


def placement(problem: Problem, demand: int, mode: ServingMode, served: Served) -> Placement:
    """Give a demand what has been found for it."""
    grants = []
    position = 0
    for claim in problem.demands[demand].claims:
        mine = []
        for request in range(len(claim.requests)):
            mine += [Grant(request, mode.picks[position], device) for device in served.devices[position]]
            position += 1
        grants.append(tuple(mine))
    return Placement(demand, served.node, tuple(grants))
