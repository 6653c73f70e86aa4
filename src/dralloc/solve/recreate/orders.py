"""Answers to start a search from: first fit, with the demands in orders that favour the small.

What runs short first differs from node to node. Where prices say how scarce what is, orders by what demands pay come
first: most often they are the best. Then there is an order for each resource that nodes themselves have, which every
pod takes something of, and one for all resources together.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
)
from math import inf

from dralloc.problem import Problem, indices
from dralloc.problem.indices import DemandIndex
from dralloc.problem.node_claims import resource_of
from dralloc.problem.solution import Appraisal, Placement
from dralloc.solve.first_fit.batch import place_all
from dralloc.solve.first_fit.quick_run import QuickRun
from dralloc.solve.policies.sizes import PARTS, Sizes

__all__ = ["placed_in_orders"]


def placed_in_orders(
    problem: Problem,
    appraisal: Appraisal | None = None,
    seconds: Callable[[], float] = lambda: inf,
) -> Iterator[tuple[Placement, ...]]:
    """Give out answers that keep every rule but budgets, one after the other, as they are asked for.

    Inside a priority, demands come first that pay less; then those that ask for fewer devices, and of these, those that
    take less. Where prices are not known, demands pay what they take, as parts of all there is.

    Parameters
    ----------
    appraisal
        What demands and nodes are worth; None if that is not known.
    seconds
        Tells how many seconds are left; when there are none, the last answer ends where it is.
    """
    for order in _orders(problem, appraisal):
        yield place_all(
            QuickRun(problem), problem, order, {}, seconds
        ).placements


def _orders(
    problem: Problem, appraisal: Appraisal | None
) -> Iterator[list[DemandIndex]]:
    if appraisal is not None:
        yield from _orders_by_price(problem, appraisal.sizes)
    # Not before they are asked for: on many nodes there is time for the first order alone.
    sizes = Sizes(problem)
    amounts_by_demand = [sizes.taken(demand) for demand in problem.demands]
    if appraisal is None:
        parts = {
            demand: _amount(sizes, amounts_by_demand[demand], None)
            for demand in indices(problem.demands)
        }
        yield from _orders_by_price(problem, parts)
    for resource in (*_resources_of_nodes(amounts_by_demand), None):

        def key(
            demand: DemandIndex, resource: Hashable | None = resource
        ) -> tuple[int, int, int]:
            candidate = problem.demands[demand]
            return (
                -candidate.priority,
                candidate.asked_devices,
                _amount(sizes, amounts_by_demand[demand], resource),
            )

        yield sorted(indices(problem.demands), key=key)


def _orders_by_price(
    problem: Problem, prices: Mapping[DemandIndex, int]
) -> Iterator[list[DemandIndex]]:
    """Give out orders in which demands come first that pay less.

    In the first one this holds for the last priority alone, and of the others all are placed that first fit places.
    Where nearly all have room, large ones must not come last: nobody makes room for them afterwards.
    """
    demands = problem.demands
    priorities = {demand.priority for demand in demands} or {0}
    # With one priority alone both orders are the same.
    for highest_by_price in sorted({min(priorities), max(priorities)}):

        def key(
            demand: DemandIndex, highest_by_price: int = highest_by_price
        ) -> tuple[int, int]:
            priority = demands[demand].priority
            paid = prices.get(demand, 0)
            return -priority, paid if priority <= highest_by_price else 0

        yield sorted(indices(demands), key=key)


def _resources_of_nodes(
    amounts_by_demand: Iterable[Iterable[Hashable]],
) -> list[Hashable]:
    """Return the resources of nodes themselves that any demand takes something of."""
    resources = {
        resource for amounts in amounts_by_demand for resource in amounts
    }
    return sorted(filter(_is_of_node, resources), key=str)


def _is_of_node(resource: Hashable) -> bool:
    return isinstance(resource, tuple) and bool(resource_of(resource[-1]))


def _amount(
    sizes: Sizes, amounts: Mapping[Hashable, int], resource: Hashable | None
) -> int:
    """What is taken of a resource, or, if that is None, the parts of all resources added up."""
    if resource is not None:
        return amounts.get(resource, 0)
    return sum(
        amount * PARTS // max(1, sizes.totals[name])
        for name, amount in amounts.items()
    )
