"""The formulation over counts: how many demands of each class are served in which mode.

For demand classes *c* with modes *m*, and requirements *k*::

    sum_m placed[c, m] + missed[c] = size[c]
    sum_{(c, m) with requirement k} placed[c, m] <= supply[k]

and gangs as in `dralloc.solve.optimum.classes.whole_gangs` (those that must be in one domain: as their `DomainSupply`
says), the supply in the variables of the bin classes (see
`dralloc.solve.optimum.classes.supply`). The first tiers are ``sum weight[c] * missed[c]`` and
``sum rank[m] * placed[c, m]``. A namespace with a budget uses ``sum amount[m] * placed[c, m]`` over its classes.
Demands of a class are interchangeable, as are bins of a class, so every answer has an image here, and every image can
be given names again at the same cost.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

from ortools.sat.python import cp_model

from dralloc.objects.budget import Budget
from dralloc.objects.errors import DrallocError
from dralloc.problem import Problem
from dralloc.problem.grouping import grouped
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.optimum.classes.budgeted import BudgetedAmounts
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    Requirement,
    ServingMode,
)
from dralloc.solve.optimum.classes.serving_modes import granted_with
from dralloc.solve.optimum.classes.supply import DomainSupply, Served, Supply
from dralloc.solve.optimum.classes.whole_gangs import AdmittedGangs
from dralloc.solve.optimum.rows import Term, fix_cost, sum_of
from dralloc.solve.optimum.search import most_of
from dralloc.solve.optimum.weight_tiers import WeightTier

__all__ = ["CountModel", "Counted", "placements_of"]


@dataclass(frozen=True, slots=True)
class Counted:
    """A component over classes.

    Parameters
    ----------
    classes
        The demand classes, each with the modes that have any supply.
    supplies
        What there is to serve them, by classes of equals.
    requirements
        What the numbers of requirements stand for.
    amounts
        What requirements use of what namespaces have budgets of.
    evenly
        Whether names are given such that nodes get about as many demands.
    """

    classes: Sequence[DemandClass]
    supplies: Sequence[Supply]
    requirements: Sequence[Requirement]
    amounts: BudgetedAmounts
    evenly: bool = False

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
        self.counted = counted
        self._servings: dict[int, dict[int, cp_model.IntVar]] = {}
        self.budgets = budgets
        self.cp = cp_model.CpModel()
        classes = counted.classes
        self.missed = [
            self.cp.new_int_var(0, each.size, f"missed {n}")
            for n, each in enumerate(classes)
        ]
        self.placed = [
            [
                self.cp.new_int_var(0, each.size, f"placed {n} {mode.picks}")
                for mode in each.modes
            ]
            for n, each in enumerate(classes)
        ]
        for each, missed, placed in zip(classes, self.missed, self.placed, strict=True):
            self.cp.add(cp_model.LinearExpr.sum([missed, *placed]) == each.size)
        self._gangs = AdmittedGangs(self.cp, classes, self.missed)
        self._supplied = [supply.build(self.cp) for supply in counted.supplies]
        self._suffice(self._supplied)
        for by_domain in self._by_domain():
            by_domain.tie(self.cp, classes, self.placed)
        for budget in budgets:
            uses = list(self.uses(budget))
            if budget.left is not None and uses:
                fix_cost(
                    self.cp,
                    uses,
                    budget.left,
                    f"cap {budget.namespace}={budget.resource}",
                )

    def _by_domain(self) -> Iterator[DomainSupply]:
        return (
            supply
            for supply in self.counted.supplies
            if isinstance(supply, DomainSupply)
        )

    def _suffice(self, supplied: Iterable[Mapping[int, Sequence[Term]]]) -> None:
        """Of each requirement at least as much is supplied as is placed."""
        all_of = grouped(
            (requirement, term)
            for each in supplied
            for requirement, mine in each.items()
            for term in mine
        )
        wanted = (
            (mode.requirement, (variable, -1))
            for cls, mode, variable in self._modes()
            if not cls.topology
        )
        for requirement, terms in grouped(wanted).items():
            self.cp.add(sum_of([*all_of[requirement], *terms]) >= 0)

    def limit_servings(
        self, supplies: Iterable[int]
    ) -> Mapping[int, Mapping[int, cp_model.IntVar]]:
        """Variables for how much some supplies really serve, by number of supply and requirement."""
        kept = list(self._supplied)
        for number in supplies:
            mine = self._servings[number] = {}
            for requirement, terms in self._supplied[number].items():
                mine[requirement] = self.cp.new_int_var(
                    0, most_of(terms), f"servings {number} {requirement}"
                )
                self.cp.add(mine[requirement] <= sum_of(terms))
            kept[number] = {
                requirement: [(servings, 1)] for requirement, servings in mine.items()
            }
        self._suffice(kept)
        return self._servings

    def _modes(self) -> Iterator[tuple[DemandClass, ServingMode, cp_model.IntVar]]:
        for each, placed in zip(self.counted.classes, self.placed, strict=True):
            for mode, variable in zip(each.modes, placed, strict=True):
                yield each, mode, variable

    def uses(self, budget: Budget) -> Iterator[Term]:
        """What the demands of the budget's namespace use."""
        amounts = self.counted.amounts[budget.resource]
        for each, mode, variable in self._modes():
            if each.namespace == budget.namespace and amounts[mode.requirement]:
                yield variable, amounts[mode.requirement]

    def missed_weight(self, tier: WeightTier) -> list[Term]:
        """The cost of a tier of the weight."""
        whole = [
            (missed, each.missed_weight(tier))
            for each, missed in zip(self.counted.classes, self.missed, strict=True)
        ]
        parts = (
            (variable, each.missed_weight(tier, mode))
            for each, mode, variable in self._modes()
        )
        return [*whole, *((variable, weight) for variable, weight in parts if weight)]

    def ranks(self) -> list[Term]:
        """The cost of the last tier."""
        return [
            (variable, mode.rank) for _, mode, variable in self._modes() if mode.rank
        ]

    def placements(self, problem: Problem, values: Sequence[int]) -> list[Placement]:
        """Give names to an answer: the first demands of each class are placed, in the order of the inventory.

        Raises
        ------
        DrallocError
            There is less than the variables say. It never happens unless the formulation is wrong.
        """
        queues, classes = self._served(values), self.counted.classes
        found: list[Placement] = []
        for supply in self._by_domain():
            for joint, mode, served in supply.realise_gangs(classes, values):
                found += placements_of(problem, joint, mode, served)
        members = self._gangs.placed_members(classes, self.missed, values)
        for each, placed, named in zip(classes, self.placed, members, strict=True):
            for mode, variable in (
                () if each.topology else zip(each.modes, placed, strict=True)
            ):
                for _ in range(values[variable.index]):
                    got = next(queues[mode.requirement], None)
                    if got is None:
                        raise DrallocError(
                            f"classes: fewer servings of requirement {mode.requirement} than were counted"
                        )
                    found += placements_of(problem, next(named), mode, got)
        return sorted(found, key=lambda placement: placement.demand)

    def _served(self, values: Sequence[int]) -> dict[int, Iterator[Served]]:
        """By requirement: what is served, in the order of the inventory or evenly over nodes."""
        served: dict[int, list[Served]] = {
            mode.requirement: [] for _, mode, _ in self._modes()
        }
        on_node: Tally[int] = Tally()
        for number, supply in enumerate(self.counted.supplies):
            mine = grouped(supply.realise(values))
            # What few nodes can serve comes first, so that the rest goes around it.
            for requirement, every in sorted(
                mine.items(), key=lambda item: len(item[1])
            ):
                limit = self._servings.get(number, {}).get(requirement)
                most = len(every) if limit is None else values[limit.index]
                served[requirement] += (
                    _even(every, most, on_node) if self.counted.evenly else every[:most]
                )
        return {requirement: iter(sorted(each)) for requirement, each in served.items()}


def _even(
    served: Sequence[Served], number: int, on_node: Tally[int]
) -> Iterator[Served]:
    """So many servings, each from a node with the fewest so far."""
    by_node = grouped((each.node, each) for each in served)
    heap = [(on_node[node], node) for node in by_node]
    heapify(heap)
    for _ in range(number):
        _, node = heap[0]
        on_node[node] += 1
        yield by_node[node].pop()
        if by_node[node]:
            heapreplace(heap, (on_node[node], node))
        else:
            heappop(heap)


def placements_of(
    problem: Problem, joint: Sequence[int], mode: ServingMode, served: Served
) -> Iterator[Placement]:
    """Give a joint demand what has been found for it."""
    devices, picks = iter(served.devices), iter(mode.picks)
    members = [joint[place] for place in mode.places]
    demands = [problem.demands[member] for member in members]
    for member, demand, granted in zip(
        members, demands, granted_with(demands), strict=True
    ):
        grants = []
        for claim, here in zip(demand.claims, granted, strict=True):
            mine: list[Grant] = []
            for request in range(len(claim.requests) if here else 0):
                pick = next(picks)
                mine += [Grant(request, pick, device) for device in next(devices)]
            grants.append(tuple(mine))
        yield Placement(member, served.node, tuple(grants))
