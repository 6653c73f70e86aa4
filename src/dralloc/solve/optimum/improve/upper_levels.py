"""The demands of the highest levels of the weight alone: fewer of them are placed better, and bounded more closely.

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

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import chain
from typing import Final

from dralloc.objects.choices import Options
from dralloc.problem import Charge, Demand, Device, Problem
from dralloc.problem.all_devices import passed_over
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.inter_pod import Affinity, InterPodRule, Spread
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement, charged_grants
from dralloc.solve.optimum.answered import (
    Answered,
    is_proven,
    raise_bounds,
)
from dralloc.solve.optimum.candidates import may_need_others
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.improve.incumbent import Bonds
from dralloc.solve.optimum.improve.nodes_first import (
    may_go_by_nodes,
    nodes_first,
)
from dralloc.solve.optimum.objective import (
    DemandSubset,
    Objective,
    within_caps,
)
from dralloc.solve.optimum.relax.component import known_of
from dralloc.solve.optimum.relax.levels import levels_of
from dralloc.solve.optimum.stopping import Cancelled, Stop

__all__ = ["UpperLevels"]

_PART: Final = 0.5
"""The part of the time that is left which some levels may take."""


class UpperLevels:
    """The highest level of the weight, the two highest, and so on: each as a component of its own.

    Parameters
    ----------
    subset
        All demands, with sites.
    tiers
        What counts; of these the first, which is one of the weight, is solved.
    largest
        Levels with more candidates have no exact model; if they have few sites, they are solved by nodes.
    """

    def __init__(
        self, subset: DemandSubset, tiers: Sequence[Objective], largest: int
    ) -> None:
        self._largest = largest
        self._problem = problem = subset.problem
        self._bonds = Bonds(problem)
        self._levels = levels_of(
            problem.demands[demand].weight for demand in subset.demands
        )
        self._components: list[Component] = []
        for demands in self._demands_of_levels(subset):
            sites = {
                demand: subset.sites[demand]
                for demand in demands
                if demand in subset.sites
            }
            part = replace(subset, demands=demands, sites=sites)
            component = Component(part, tiers, ())
            if component.size > largest and not may_go_by_nodes(
                part, beside_search=True
            ):
                break
            self._components.append(component)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to solve."""
        return not self._components

    def solved(
        self, answer: Answered, options: Options, stop: Stop
    ) -> Iterator[Component]:
        """Solve them one after the other, and give them out.

        Left out is what is decided by then, or meanwhile; and if some levels are not, no more follow.

        Parameters
        ----------
        answer
            The one to all demands, as it is at any time.
        """
        for level_count, component in enumerate(self._components, 1):
            self._solve(component, level_count, answer, options, stop)
            if self._is_decided(answer, level_count):
                continue
            yield component
            if not is_proven(component, 0):
                break

    def _solve(
        self,
        component: Component,
        level_count: int,
        answer: Answered,
        options: Options,
        stop: Stop,
    ) -> None:
        """Solve the component of some levels, from what the answer has of them, until that is decided elsewhere.

        By the exact model; by nodes, if that would be too large.
        """
        is_over = Cancelled(
            lambda: (
                bool(stop.cancelled) or self._is_decided(answer, level_count)
            )
        )
        own, _ = _split(component, answer.placements)
        component.consider(own)
        part = stop.within(_PART * stop.seconds())
        until = replace(part, cancelled=is_over)
        if component.size <= self._largest:
            component.improve(0, options, until, None)
            return
        outcome = nodes_first(component, 0, options, until)
        if outcome is not None:
            raise_bounds(component, [outcome.bound])
            component.consider(outcome.placements)

    def _is_decided(self, answer: Answered, level_count: int) -> bool:
        """Whether it is known that there is no more of the highest levels."""
        reached, best = known_of(answer, self._levels)
        return reached[:level_count] == best[:level_count]

    def answer_with(
        self, component: Component, placements: Sequence[Placement]
    ) -> Sequence[Placement] | None:
        """Return an answer to all demands with that of a component; None if the component's own is no better.

        With lower levels that are kept for the sake of higher ones, it may still be worth less than the one in hand.

        Parameters
        ----------
        placements
            An answer to all demands: who is not in the component stays, if there is room.
        """
        own, others = _split(component, placements)
        cost = component.tiers[0].cost(component.subset, own)
        if component.cost(0) >= cost:
            return None
        together = _together(
            self._problem, self._bonds, component.placements, others
        )
        # Of what a namespace may use, the component's own comes first.
        admitted = within_caps(self._problem, together)
        return sorted(admitted, key=lambda placement: placement.demand)

    def _demands_of_levels(
        self, subset: DemandSubset
    ) -> Iterator[Sequence[DemandIndex]]:
        """Give out the demands of the highest level with all that they may need, of the two highest, and so on.

        Never all demands.
        """
        problem = self._problem
        in_need = [
            demand
            for demand in subset.demands
            if may_need_others(
                problem, problem.demands[demand], subset.sites.get(demand, ())
            )
        ]
        left_out = _with_dependents(problem, self._bonds, in_need)
        for level in self._levels[:-1]:
            of_levels = [
                demand
                for demand in subset.demands
                if problem.demands[demand].weight >= level.lowest
                and demand not in left_out
            ]
            kept = _with_company(problem, self._bonds, of_levels)
            demands = [demand for demand in subset.demands if demand in kept]
            if len(demands) == len(subset.demands):
                break
            if demands:
                yield demands


def _split(
    component: Component, placements: Iterable[Placement]
) -> tuple[list[Placement], list[Placement]]:
    """Return those placements that are of a component, and those that are not."""
    members = set(component.subset.demands)
    own: list[Placement] = []
    others: list[Placement] = []
    for placement in placements:
        (own if placement.demand in members else others).append(placement)
    return own, others


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


# ----------------------------------------------------------------------------
# An answer to some demands in an answer to all.


def _together(
    problem: Problem,
    bonds: Bonds,
    upper: Sequence[Placement],
    lower: Iterable[Placement],
) -> list[Placement]:
    """Return an answer to some demands, and after it those placements of others that have room beside it.

    Left out is also who has a role in a rule that others know, or passes over a device: a search finds room for them.
    Beside admin access, which has to find room and holds none (KEP-5018), nobody else is placed.
    """
    answer = list(upper)
    upper_demands = [problem.demands[placement.demand] for placement in upper]
    if _ask_for_admin_access(upper_demands):
        return answer
    ledger = Ledger(problem)
    for _, device, charge in charged_grants(problem, upper):
        view = problem.devices[device]
        ledger.enter(view, charge, share=view.shareable)
    blocks = grouped(
        (bonds.block_of[placement.demand], placement) for placement in lower
    )
    for block, placements in blocks.items():
        passes_over = any(
            any(passed_over(problem, placement)) for placement in placements
        )
        if (
            not passes_over
            and _is_by_itself(problem, bonds, block)
            and _entered(ledger, placements)
        ):
            answer += placements
    return answer


def _is_by_itself(problem: Problem, bonds: Bonds, block: int) -> bool:
    """Whether nothing decides whether a block may stand somewhere but what is free there."""
    members = bonds.blocks[block]
    demands = [problem.demands[member] for member in members]
    if _ask_for_admin_access(demands):
        return False
    rules = {role.rule for demand in demands for role in demand.roles}
    return all(set(members).issuperset(bonds.with_role[rule]) for rule in rules)


def _ask_for_admin_access(demands: Iterable[Demand]) -> bool:
    return any(
        alternative.admin
        for demand in demands
        for alternative in demand.alternatives()
    )


def _entered(ledger: Ledger, placements: Sequence[Placement]) -> bool:
    """Enter placements into a ledger, all or none; whether there was room for them."""
    problem = ledger.problem
    entered: list[tuple[Device, Charge]] = []
    for _, device, charge in charged_grants(problem, placements):
        view = problem.devices[device]
        if not ledger.fits(view, charge):
            for earlier, earlier_charge in entered:
                ledger.revoke(earlier, earlier_charge, share=earlier.shareable)
            return False
        ledger.enter(view, charge, share=view.shareable)
        entered.append((view, charge))
    return True
