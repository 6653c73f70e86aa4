"""Gangs that have no room, even where nobody else comes.

To a relaxation such a gang looks as if most of it fitted, and a search looks for room for it again and again. Whether
it fits is decided by the exact model of the gang alone, which is small.

Whoever is placed beside a gang takes something away from it, except

- who is meant by an affinity, or by a spread, which allows for more where there are more everywhere: of rules in which
  others have a role, only that is left which holds whoever comes;
- who has allocated a claim that a member uses, too, and who fills a device with consumable capacity, which ``All``
  leaves out then (KEP-5075): gangs with such claims are not asked about.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from dralloc.objects.choices import Options
from dralloc.problem import Demand, DemandIndex, Problem
from dralloc.problem.indices import grouped
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    InterPodRule,
    OneDomain,
    Spread,
)
from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.candidates import CandidateSite
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.objective import DemandSubset, placed_weight
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop

__all__ = ["demands_without_room"]

_PART: Final = 0.05
"""The part of the time that all gangs together may take."""

_EFFORT: Final = 0.1
"""What the solver may do about a gang (see `Stop.effort`): most often it takes far less."""


def demands_without_room(
    problem: Problem,
    sites: Mapping[DemandIndex, tuple[CandidateSite, ...]],
    placed: Set[DemandIndex],
    options: Options,
    stop: Stop,
) -> Iterator[DemandIndex]:
    """Yield the members of gangs that no answer places, of as many gangs as a small part of the time is enough for.

    Where steps are counted, of all gangs: what is known then must not depend on the clock.

    Parameters
    ----------
    sites
        The demands that are asked about, and where they can go.
    placed
        Demands that some answer places: there is room for their gangs.
    """
    gangs = grouped(
        (problem.demands[demand].placed_with, demand) for demand in sites
    )
    waiting = [
        members
        for gang, members in gangs.items()
        if gang and placed.isdisjoint(members)
    ]
    if not waiting:
        return
    company = _Company(problem)
    # The solver is imported when it is used first: no gang is to blame for that.
    cp_model.CpModel()
    if options.steps is None:
        stop = stop.within(_PART * stop.seconds())

    def size(members: Sequence[DemandIndex]) -> int:
        return sum(len(sites[member]) for member in members)

    # What takes long comes last: there may be no time for it.
    for members in sorted(waiting, key=size):
        if stop.reached():
            break
        demands = [problem.demands[member] for member in members]
        if not company.may_make_room(demands):
            gang_sites = {member: sites[member] for member in members}
            gang = DemandSubset(company.without(members), members, gang_sites)
            if _is_without_room(gang, options, stop):
                yield from members


def _is_without_room(gang: DemandSubset, options: Options, stop: Stop) -> bool:
    """Whether it is proven that none of the demands can be placed."""
    component = Component(gang, placed_weight(gang.problem), ())
    component.improve(0, options, stop.limited(_EFFORT), None)
    return not component.placements and is_proven(component, 0)


class _Company:
    """What demands have to do with others, beyond what both of them could take."""

    def __init__(self, problem: Problem) -> None:
        # Any member that is placed tells that there is room, whatever it is worth, and whatever its namespace may use.
        equals = tuple(replace(demand, weight=1) for demand in problem.demands)
        self._problem = replace(problem, demands=equals, budgets=())
        self._users = Tally(
            claim.key for demand in problem.demands for claim in demand.claims
        )
        self._concerned = Tally(
            role.rule for demand in problem.demands for role in demand.roles
        )

    def may_make_room(self, gang: Sequence[Demand]) -> bool:
        """Whether a gang may find room just because of what others have got."""
        own_users = Tally(
            claim.key for demand in gang for claim in demand.claims
        )
        shares_claims = any(
            self._users[key] > users for key, users in own_users.items()
        )
        return shares_claims or any(demand.asks_for_all for demand in gang)

    def without(self, gang: Sequence[DemandIndex]) -> Problem:
        """Return the problem with rules for the members of a gang that they keep whoever else is placed."""
        demands = list(self._problem.demands)
        own_concerned = Tally(
            role.rule for member in gang for role in demands[member].roles
        )
        kept_rules = {
            rule: rule
            if concerned == self._concerned[rule]
            else self._whoever_comes(rule)
            for rule, concerned in own_concerned.items()
        }
        for member in gang:
            demand = demands[member]
            roles = [
                role._replace(rule=rule)
                for role in demand.roles
                if (rule := kept_rules[role.rule]) is not None
            ]
            demands[member] = replace(demand, roles=tuple(roles))
        return replace(self._problem, demands=tuple(demands))

    def _whoever_comes(self, rule: InterPodRule) -> InterPodRule | None:
        """Return what is left of a rule if others may come whom it means, or None."""
        match rule:
            case AntiAffinity() | OneDomain():
                return rule
            case Affinity():
                return None
            case Spread():
                # In the domain with the fewest there are no more than on average, if all come who are meant.
                domains = len(rule.every)
                all_counted = sum(rule.counted.values()) + self._concerned[rule]
                fewest = all_counted // max(1, domains)
                # With fewer domains than there have to be, none are taken for the fewest.
                return Spread(
                    rule.domains,
                    rule.counted,
                    rule.max_skew + fewest,
                    domains + 1,
                )
