"""Answers to start a search from: first fit, with the demands in orders that favour the small.

What runs short first differs from node to node, and is not known before. So there is an order for each resource that
nodes themselves have, which everybody takes something of, and one for all resources together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from dralloc.problem import Problem
from dralloc.problem.node_claims import resource_of
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit.batch import place_all
from dralloc.solve.first_fit.quick import QuickRun
from dralloc.solve.policies.sizes import PARTS, Sizes

__all__ = ["starts"]


def starts(problem: Problem) -> Iterator[tuple[Placement, ...]]:
    """Give out answers that keep every rule but budgets, one after the other, as they are asked for.

    Inside a priority, demands that ask for fewer devices come first; of these, those that take less.
    """
    sizes = Sizes(problem)
    taken = [sizes.taken(demand) for demand in problem.demands]
    resources = sorted(
        {
            resource
            for amounts in taken
            for resource in amounts
            if _is_of_node(resource)
        },
        key=str,
    )
    for resource in (*resources, None):

        def key(demand: int, resource: Hashable = resource) -> tuple[int, int, int]:
            asked = problem.demands[demand]
            return (
                -asked.priority,
                asked.asked_devices,
                _amount(sizes, taken[demand], resource),
            )

        order = sorted(range(len(problem.demands)), key=key)
        yield place_all(QuickRun(problem), problem, order, {}).placements


def _is_of_node(resource: Hashable) -> bool:
    return isinstance(resource, tuple) and bool(resource_of(resource[-1]))


def _amount(
    sizes: Sizes, amounts: Mapping[Hashable, int], resource: Hashable | None
) -> int:
    """What is taken of a resource, or, if that is None, the parts of all resources added up."""
    if resource is not None:
        return amounts.get(resource, 0)
    return sum(
        amount * PARTS // max(1, sizes.totals[name]) for name, amount in amounts.items()
    )
