"""The formulation over counts: how many demands of each class are served in which mode.

For demand classes *c* with modes *m*, and requirements *k*::

    sum_m placed[c, m] + missed[c] = size[c]
    sum_{(c, m) with requirement k} placed[c, m] <= supply[k]

and gangs as in `dralloc.solve.optimum.classes.admitted_gangs` (those that must be in one domain: as their
`DomainSupply` says), the supply in the variables of the bin classes (see
`dralloc.solve.optimum.classes.supplies`). The first tiers are ``sum weight[c] * missed[c]`` and ``sum rank[m] *
placed[c, m]``. A namespace with a budget uses ``sum amount[m] * placed[c, m]`` over its classes. Demands of a class are
interchangeable, as are bins of a class, so every answer has an image here, and every image can be given names again at
the same cost.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

from dralloc.objects.errors import DrallocError
from dralloc.objects.user_rules import Budget
from dralloc.problem import Problem
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.optimum.classes.admitted_gangs import AdmittedGangs
from dralloc.solve.optimum.classes.budgeted_amounts import BudgetedAmounts
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    Requirement,
    ServingMode,
)
from dralloc.solve.optimum.classes.serving_modes import granted_with
from dralloc.solve.optimum.classes.supplies import DomainSupply, Served, Supply
from dralloc.solve.optimum.rows import Term, WeightTier, fix_cost, sum_of
from dralloc.solve.optimum.search import most_of
from dralloc.solve.optimum.solvers import cp_model

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
    def demands(self) -> list[DemandIndex]:
        """All demands, in order."""
        members: list[DemandIndex] = []
        for demand_class in self.classes:
            members += demand_class.members
        return sorted(members)

    @property
    def has_budgets(self) -> bool:
        """Whether it has demands of namespaces with budgets."""
        return any(demand_class.namespace for demand_class in self.classes)


class CountModel:
    """A model of a component over classes. No namespace takes more than its budget leaves."""

    def __init__(self, counted: Counted, budgets: Sequence[Budget]) -> None:
        self.counted = counted
        self._servings: dict[int, dict[int, cp_model.IntVar]] = {}
        self.budgets = budgets
        self.cp = cp_model.CpModel()
        classes = counted.classes
        self.missed = [
            self.cp.new_int_var(0, demand_class.size, f"missed {n}")
            for n, demand_class in enumerate(classes)
        ]
        self.placed: list[list[cp_model.IntVar]] = []
        for n, demand_class in enumerate(classes):
            placed = [
                self.cp.new_int_var(
                    0, demand_class.size, f"placed {n} {mode.picks}"
                )
                for mode in demand_class.modes
            ]
            self.placed.append(placed)
        for n, demand_class in enumerate(classes):
            counts = [self.missed[n], *self.placed[n]]
            self.cp.add(cp_model.LinearExpr.sum(counts) == demand_class.size)
        self._gangs = AdmittedGangs(self.cp, classes, self.missed)
        # Supplies are built before gangs are tied to domains, whose rows are about variables of the supplies.
        self._supplied = [supply.build(self.cp) for supply in counted.supplies]
        self._suffice(self._supplied)
        for by_domain in self._by_domain():
            by_domain.tie(self.cp, classes, self.placed)
        for budget in budgets:
            uses = list(self.uses(budget))
            if budget.left is not None and uses:
                name = f"cap {budget.namespace}={budget.resource}"
                fix_cost(self.cp, uses, budget.left, name)

    def _by_domain(self) -> Iterator[DomainSupply]:
        return (
            supply
            for supply in self.counted.supplies
            if isinstance(supply, DomainSupply)
        )

    def _suffice(
        self, supplied: Iterable[Mapping[int, Sequence[Term]]]
    ) -> None:
        """Of each requirement at least as much is supplied as is placed."""
        supply_of: dict[int, list[Term]] = defaultdict(list)
        for terms_by_requirement in supplied:
            for requirement, terms in terms_by_requirement.items():
                supply_of[requirement] += terms
        placed_of: dict[int, list[Term]] = defaultdict(list)
        for demand_class, mode, variable in self._modes():
            # Those that need a domain are bound to a supply of their own.
            if not demand_class.topology:
                placed_of[mode.requirement].append((variable, -1))
        for requirement, terms in placed_of.items():
            self.cp.add(sum_of([*supply_of[requirement], *terms]) >= 0)

    def limit_servings(
        self, supplies: Iterable[int]
    ) -> Mapping[int, Mapping[int, cp_model.IntVar]]:
        """Variables for how much some supplies really serve, by index of supply and requirement."""
        limited = list(self._supplied)
        for supply_index in supplies:
            servings_of = self._servings[supply_index] = {}
            for requirement, terms in self._supplied[supply_index].items():
                name = f"servings {supply_index} {requirement}"
                servings = self.cp.new_int_var(0, most_of(terms), name)
                servings_of[requirement] = servings
                self.cp.add(servings <= sum_of(terms))
            limited[supply_index] = {
                requirement: [(servings, 1)]
                for requirement, servings in servings_of.items()
            }
        self._suffice(limited)
        return self._servings

    def _modes(
        self,
    ) -> Iterator[tuple[DemandClass, ServingMode, cp_model.IntVar]]:
        for demand_class, placed in zip(
            self.counted.classes, self.placed, strict=True
        ):
            for mode, variable in zip(demand_class.modes, placed, strict=True):
                yield demand_class, mode, variable

    def uses(self, budget: Budget) -> Iterator[Term]:
        """Yield the uses of the budget's resource by demands of its namespace."""
        amounts = self.counted.amounts[budget.resource]
        for demand_class, mode, variable in self._modes():
            if (
                demand_class.namespace == budget.namespace
                and amounts[mode.requirement]
            ):
                yield variable, amounts[mode.requirement]

    def missed_weight(self, tier: WeightTier) -> list[Term]:
        """The cost of a tier of the weight."""
        terms: list[Term] = []
        for demand_class, missed in zip(
            self.counted.classes, self.missed, strict=True
        ):
            terms.append((missed, demand_class.missed_weight(tier)))
        for demand_class, mode, variable in self._modes():
            weight = demand_class.missed_weight(tier, mode)
            if weight:
                terms.append((variable, weight))
        return terms

    def ranks(self) -> list[Term]:
        """The cost of the last tier."""
        return [
            (variable, mode.rank)
            for _, mode, variable in self._modes()
            if mode.rank
        ]

    def placements(
        self, problem: Problem, values: Sequence[int]
    ) -> list[Placement]:
        """Give names to an answer: the first demands of each class are placed, in the order of the inventory.

        Raises
        ------
        DrallocError
            There is less than the variables say. It never happens unless the formulation is wrong.
        """
        queues, classes = self._served(values), self.counted.classes
        placements: list[Placement] = []
        # Gangs in one domain have servings of their own: the queues hold what these leave.
        for supply in self._by_domain():
            for joint, mode, served in supply.realise_gangs(classes, values):
                placements += placements_of(problem, joint, mode, served)
        members = self._gangs.placed_members(classes, self.missed, values)
        for demand_class, placed, named in zip(
            classes, self.placed, members, strict=True
        ):
            if demand_class.topology:
                continue
            for mode, variable in zip(demand_class.modes, placed, strict=True):
                for _ in range(values[variable.index]):
                    serving = next(queues[mode.requirement], None)
                    if serving is None:
                        raise DrallocError(
                            f"classes: fewer servings of requirement {mode.requirement} than were counted"
                        )
                    placements += placements_of(
                        problem, next(named), mode, serving
                    )
        return sorted(placements, key=lambda placement: placement.demand)

    def _served(self, values: Sequence[int]) -> dict[int, Iterator[Served]]:
        """By requirement: what is served, in the order of the inventory or evenly over nodes."""
        served: dict[int, list[Served]] = {
            mode.requirement: [] for _, mode, _ in self._modes()
        }
        on_node: Tally[int] = Tally()
        for supply_index, supply in enumerate(self.counted.supplies):
            limits = self._servings.get(supply_index, {})
            servings_of = grouped(supply.realise(values))
            # What few nodes can serve comes first, so that the rest goes around it.
            for requirement in sorted(
                servings_of, key=lambda n: len(servings_of[n])
            ):
                servings = servings_of[requirement]
                count = len(servings)
                if requirement in limits:
                    count = values[limits[requirement].index]
                if self.counted.evenly:
                    served[requirement] += _even(servings, count, on_node)
                else:
                    served[requirement] += servings[:count]
        return {
            requirement: iter(sorted(servings))
            for requirement, servings in served.items()
        }


def _even(
    servings: Sequence[Served], count: int, on_node: Tally[int]
) -> Iterator[Served]:
    """Yield so many servings, each from a node with the fewest so far."""
    by_node = grouped((serving.node, serving) for serving in servings)
    heap = [(on_node[node], node) for node in by_node]
    heapify(heap)
    for _ in range(count):
        _, node = heap[0]
        on_node[node] += 1
        yield by_node[node].pop()
        if by_node[node]:
            heapreplace(heap, (on_node[node], node))
        else:
            heappop(heap)


def placements_of(
    problem: Problem,
    joint: Sequence[DemandIndex],
    mode: ServingMode,
    served: Served,
) -> Iterator[Placement]:
    """Give a joint demand what has been found for it."""
    devices, picks = iter(served.devices), iter(mode.picks)
    members = [joint[position] for position in mode.places]
    demands = [problem.demands[member] for member in members]
    for member, demand, granted in zip(
        members, demands, granted_with(demands), strict=True
    ):
        grants = []
        for claim, is_granted in zip(demand.claims, granted, strict=True):
            claim_grants: list[Grant] = []
            # A shared claim is granted with the first that lists it.
            for request in range(len(claim.requests) if is_granted else 0):
                pick = next(picks)
                claim_grants += [
                    Grant(request, pick, device) for device in next(devices)
                ]
            grants.append(tuple(claim_grants))
        yield Placement(member, served.node, tuple(grants))
