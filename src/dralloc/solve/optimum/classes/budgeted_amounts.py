"""What requirements use of counters and capacities that namespaces have budgets of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from dralloc.problem import Problem
from dralloc.problem.solution import amount_used
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClasses,
    Requirement,
)
from dralloc.solve.optimum.classes.usable_devices import UsableDevices

__all__ = ["BudgetedAmounts", "budgeted_amounts"]

BudgetedAmounts = Mapping[str, Mapping[int, int]]
"""By resource and requirement: what one serving uses, in nanos. A requirement is left out if that depends on which
devices serve it."""


def budgeted_amounts(
    problem: Problem, demand_classes: DemandClasses, usable: UsableDevices
) -> BudgetedAmounts:
    """Return the use of each budgeted resource by each requirement (see `dralloc.problem.solution`)."""
    resources = sorted({budget.resource for budget in problem.budgets})
    budgeted: dict[str, dict[int, int]] = {}
    for resource in resources:
        amounts_of_type = _by_type(problem, usable, resource)
        amounts: dict[int, int] = {}
        for requirement_index, requirement in enumerate(
            demand_classes.requirements
        ):
            total = _amount(requirement, amounts_of_type)
            if total is not None:
                amounts[requirement_index] = total
        budgeted[resource] = amounts
    return budgeted


def _amount(
    requirement: Requirement, amounts_of_type: Mapping[int, set[int]]
) -> int | None:
    """Return the use of one serving; None if it depends on the devices that serve it."""
    total = 0
    for group in requirement.item_groups:
        amounts = amounts_of_type.get(group.type, set())
        if len(amounts) > 1:
            return None
        total += group.number * sum(amounts)
    return total


def _by_type(
    problem: Problem, usable: UsableDevices, resource: str
) -> Mapping[int, set[int]]:
    """By item type: the amounts that one item uses on the devices that can be it."""
    names = [counter.id.counter for counter in problem.counters]
    amounts: dict[int, set[int]] = defaultdict(set)
    seen = set()
    for device in usable.order:
        view, profile = problem.devices[device], usable.profile_of[device]
        consumed = tuple(
            [(names[counter], amount) for counter, amount in view.consumes]
        )
        capacity = view.capacity.get(resource)
        charged = tuple([names[counter] for counter in usable.charged[device]])
        key = (
            profile,
            view.shareable,
            capacity.total if capacity else None,
            consumed,
            charged,
        )
        if key in seen:
            continue
        seen.add(key)
        for type_, charge in usable.charges(device):
            amount = amount_used(resource, view, charge, problem.counters)
            amounts[type_].add(amount)
    return amounts
