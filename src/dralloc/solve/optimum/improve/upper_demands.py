"""The demands of the highest levels of the weight alone, chosen so that what is proven of them holds for all.

Whoever is left out of an answer makes room; so what is proven of the demands that are kept holds for all. It would not
where some are placed only because others are. Kept with a demand are therefore

- those that come and go with it: its gang, users of the same claims, and demands with a constraint in common;
- those who count for a rule that it carries, of affinity, or of spread, which allows for more where there are more
  everywhere.

A claim for all devices passes over shared ones that others have filled (`dralloc.problem.all_devices`), so that it may
be placed because others are; and so may a claim for a shared device of which several versions are published, as others
may have opened it by one that draws on fewer counters. Who has such a claim is left out, with all who may need him:
nothing is proven of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import replace
from itertools import chain

from dralloc.problem import Problem
from dralloc.problem.indices import DemandIndex
from dralloc.problem.inter_pod import Affinity, InterPodRule, Spread
from dralloc.solve.optimum.candidates import may_need_others
from dralloc.solve.optimum.improve.incumbent import Bonds
from dralloc.solve.optimum.objective import DemandSubset

__all__ = ["upper_demands"]


def upper_demands(
    subset: DemandSubset, bonds: Bonds, lowest: int
) -> DemandSubset:
    """Return those of some demands that weigh no less than the lowest of a level, with all that they may need.

    Parameters
    ----------
    subset
        All demands, with sites.
    """
    problem, sites = subset.problem, subset.sites
    in_need = [
        demand
        for demand in subset.demands
        if may_need_others(
            problem, problem.demands[demand], sites.get(demand, ())
        )
    ]
    left_out = _with_dependents(problem, bonds, in_need)
    of_levels = [
        demand
        for demand in subset.demands
        if problem.demands[demand].weight >= lowest and demand not in left_out
    ]
    kept = _with_company(problem, bonds, of_levels)
    demands = [demand for demand in subset.demands if demand in kept]
    own_sites = {demand: sites[demand] for demand in demands if demand in sites}
    return replace(subset, demands=demands, sites=own_sites)


def _with_company(
    problem: Problem, bonds: Bonds, demands: Iterable[DemandIndex]
) -> set[DemandIndex]:
    """Return demands with all without whom they may not be placed."""

    def company(members: Set[DemandIndex]) -> Iterator[DemandIndex]:
        for rule in _rules_for_company(problem, members, carried=True):
            yield from bonds.with_role[rule]

    return _closure(bonds, demands, company)


def _with_dependents(
    problem: Problem, bonds: Bonds, demands: Iterable[DemandIndex]
) -> set[DemandIndex]:
    """Return demands with all who may not be placed without them."""

    def dependents(members: Set[DemandIndex]) -> Iterator[DemandIndex]:
        for rule in _rules_for_company(problem, members, carried=False):
            for demand in bonds.with_role[rule]:
                roles = problem.demands[demand].roles
                if any(role.carries and role.rule == rule for role in roles):
                    yield demand

    return _closure(bonds, demands, dependents)


def _rules_for_company(
    problem: Problem, members: Iterable[DemandIndex], *, carried: bool
) -> set[InterPodRule]:
    """Return the rules by which somebody may be placed because others are.

    Parameters
    ----------
    carried
        Only those that a member carries, and not those by which a member counts for somebody else.
    """
    return {
        role.rule
        for member in members
        for role in problem.demands[member].roles
        if isinstance(role.rule, Affinity | Spread)
        and (role.carries or not carried)
    }


def _closure(
    bonds: Bonds,
    demands: Iterable[DemandIndex],
    neighbours: Callable[[Set[DemandIndex]], Iterable[DemandIndex]],
) -> set[DemandIndex]:
    """Return demands, their neighbours, the neighbours of these, and so on: always whole blocks."""
    reached: set[DemandIndex] = set()
    to_come = set(demands)
    while to_come:
        blocks = {bonds.block_of[demand] for demand in to_come}
        members = set(
            chain.from_iterable(bonds.blocks[block] for block in blocks)
        )
        reached |= members
        to_come = set(neighbours(members)) - reached
    return reached
