"""What requirements use of counters and capacities that namespaces have budgets of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from dralloc.problem import Problem
from dralloc.problem.spending import amount_used
from dralloc.solve.optimum.classes.demand_classes import DemandClasses
from dralloc.solve.optimum.classes.usable import UsableDevices

__all__ = ["BudgetedAmounts", "budgeted_amounts"]

BudgetedAmounts = Mapping[str, Mapping[int, int]]
"""By resource and requirement: what one serving uses, in nanos. A requirement is left out if that depends on which
devices serve it."""


def budgeted_amounts(
    problem: Problem, demand_classes: DemandClasses, usable: UsableDevices
) -> BudgetedAmounts:
    """What each requirement uses of each resource that a budget is about (see `dralloc.problem.spending`)."""
    resources = sorted({budget.resource for budget in problem.budgets})
    used = {resource: _by_type(problem, usable, resource) for resource in resources}
    return {
        resource: {
            number: sum(
                group.number * sum(amounts.get(group.type, ()))
                for group in requirement.item_groups
            )
            for number, requirement in enumerate(demand_classes.requirements)
            if all(
                len(amounts.get(group.type, ())) <= 1
                for group in requirement.item_groups
            )
        }
        for resource, amounts in used.items()
    }


def _by_type(
    problem: Problem, usable: UsableDevices, resource: str
) -> Mapping[int, set[int]]:
    """By item type: the amounts that one item uses on the devices that can be it."""
    names = [counter.id.counter for counter in problem.counters]
    found: dict[int, set[int]] = defaultdict(set)
    seen = set()
    for device in usable.order:
        view, profile = problem.devices[device], usable.profile_of[device]
        consumed = tuple(
            [(names[counter], amount) for counter, amount in view.consumes]
        )
        capacity = view.capacity.get(resource)
        charged = tuple([names[counter] for counter in usable.charged[device]])
        key = profile, view.shareable, capacity and capacity.total, consumed, charged
        if key not in seen:
            seen.add(key)
            for type_, charge in usable.charges(device):
                found[type_].add(amount_used(resource, view, charge, problem.counters))
    return found
