"""What namespaces with a cap may still use, while an answer changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dralloc.objects.user_rules import BudgetKey
from dralloc.problem import DemandIndex, Problem
from dralloc.problem.indices import grouped
from dralloc.problem.solution import Placement, spent
from dralloc.solve.recreate.devices import Site

__all__ = ["CappedSpending"]


class CappedSpending:
    """What is left of caps. Amounts in nanos.

    Parameters
    ----------
    staying
        Placements that nobody leaves, in an answer that keeps the caps.
    """

    def __init__(self, problem: Problem, staying: Iterable[Placement]) -> None:
        self._problem = problem
        capped = [
            (budget.key, budget.left)
            for budget in problem.budgets
            if budget.left is not None
        ]
        self._resources = grouped(
            (key.namespace, key.resource) for key, _ in capped
        )
        self._remaining: dict[BudgetKey, int] = dict(capped)
        # What ways take of what has a cap in a namespace; ways are kept as long as the answer is changed.
        self._amounts: dict[tuple[str, int], Mapping[BudgetKey, int]] = {}
        for placement in staying:
            self._change(self._taken(placement), -1)

    def has_cap(self, demand: DemandIndex) -> bool:
        """Whether the namespace of a demand has a cap."""
        return self._problem.demands[demand].key.namespace in self._resources

    def allow(self, demand: DemandIndex, site: Site) -> bool:
        """Whether caps leave a demand what it takes at a site."""
        amounts = self._taken_at(demand, site)
        return all(
            amount <= self._remaining[key] for key, amount in amounts.items()
        )

    def enter(self, demand: DemandIndex, site: Site) -> None:
        """Note that a demand came to a site."""
        self._change(self._taken_at(demand, site), -1)

    def leave(self, demand: DemandIndex, site: Site) -> None:
        """Note that a demand left a site."""
        self._change(self._taken_at(demand, site), 1)

    def _change(self, amounts: Mapping[BudgetKey, int], sign: int) -> None:
        for key, amount in amounts.items():
            self._remaining[key] += sign * amount

    def _taken_at(
        self, demand: DemandIndex, site: Site
    ) -> Mapping[BudgetKey, int]:
        key = self._namespace(demand), id(site.way)
        if key not in self._amounts:
            placement = Placement(demand, site.node, site.way.grants)
            self._amounts[key] = self._taken(placement)
        return self._amounts[key]

    def _taken(self, placement: Placement) -> Mapping[BudgetKey, int]:
        """Return what a placement takes of what has a cap in its namespace."""
        namespace = self._namespace(placement.demand)
        amounts: dict[BudgetKey, int] = {}
        for resource in self._resources.get(namespace, ()):
            taken = spent(self._problem, (placement,), resource)
            amounts[BudgetKey(namespace, resource)] = sum(taken.values())
        return amounts

    def _namespace(self, demand: DemandIndex) -> str:
        return self._problem.demands[demand].key.namespace
