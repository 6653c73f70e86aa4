"""Who has too little room, even where nobody else comes.

To a relaxation a gang looks as if most of it fitted, and a pod as if half of it stood on this node and half on that
one; and a search looks for room for them again and again. How many of them fit is decided by the exact model of them
alone, which is small. Most often all of them do; where they do not, no answer places more, and a priority that lacks
just these is proven.

Whoever is placed beside a group takes something away from it, except

- who is meant by an affinity, or by a spread, which allows for more where there are more everywhere: of rules in which
  others have a role, only that is left which holds whoever comes;
- who has allocated a claim that a member uses, too; who fills a device with consumable capacity, which ``All`` leaves
  out then (KEP-5075); and who opens a shared device by another version of it, so that whoever comes after that draws on
  no counters (KEP-4815): groups with such claims are not asked about.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final, NamedTuple

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
from dralloc.solve.optimum.candidates import CandidateSite, may_need_others
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.objective import DemandSubset, placed_weight
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop

__all__ = ["CrampedGroup", "cramped_groups", "waiting_groups"]

_PART: Final = 0.05
"""The part of the time that all groups together may take."""

_EFFORT: Final = 0.1
"""What the solver may do about a group (see `Stop.effort`): most often it takes far less."""

_FIRST_SITES: Final = 4
"""A demand that is in no gang most often has room on one of its first nodes, if it has any."""


class CrampedGroup(NamedTuple):
    """A gang, or a demand that is in none, of which no answer places more than ``most`` members, and so not all."""

    members: Sequence[DemandIndex]
    most: int


def waiting_groups(
    problem: Problem, demands: Iterable[DemandIndex], placed: Set[DemandIndex]
) -> list[Sequence[DemandIndex]]:
    """Return the gangs of which somebody waits, with all their members, and demands that wait alone.

    A demand for a single device has room wherever it can go.
    """
    groups = grouped(
        (problem.demands[demand].placed_with or demand, demand)
        for demand in demands
    )
    return [
        members
        for members in groups.values()
        if not placed >= set(members)
        and not (len(members) == 1 and _is_simple(problem.demands[members[0]]))
    ]


def _is_simple(demand: Demand) -> bool:
    """Whether all that matters about a demand is where one device is that may serve it."""
    claims = [claim for claim in demand.claims if not claim.is_synthetic]
    requests = [request for claim in claims for request in claim.requests]
    return (
        not demand.roles
        and len(requests) == 1
        and all(spec.count == 1 for spec in requests[0].alternatives)
    )


def cramped_groups(
    problem: Problem,
    sites: Mapping[DemandIndex, tuple[CandidateSite, ...]],
    placed: Set[DemandIndex],
    options: Options,
    stop: Stop,
) -> Iterator[CrampedGroup]:
    """Yield groups that have too little room, of as many as a small part of the time is enough for.

    Where steps are counted, of all groups: what is known then must not depend on the clock.

    Parameters
    ----------
    sites
        The demands that are asked about, and where they can go.
    placed
        Demands that some answer places.
    """
    waiting = waiting_groups(problem, sites, placed)
    if not waiting:
        return
    company = _Company(problem)
    # The solver is imported when it is used first: no group is to blame for that.
    cp_model.CpModel()
    if options.steps is None:
        stop = stop.within(_PART * stop.seconds())

    def turn(members: Sequence[DemandIndex]) -> tuple[int, int]:
        """The highest priorities come first, and what takes long last: there may be no time for it."""
        highest = max(problem.demands[member].weight for member in members)
        return -highest, sum(len(sites[member]) for member in members)

    for members in sorted(waiting, key=turn):
        if stop.reached():
            break
        group = DemandSubset(
            company.without(members),
            members,
            {member: sites[member] for member in members},
        )
        if not company.may_make_room(group):
            most = _most_alone(group, options, stop)
            if most < len(members):
                yield CrampedGroup(tuple(members), most)


def _most_alone(group: DemandSubset, options: Options, stop: Stop) -> int:
    """Return how many members can be placed at most if nobody else is."""
    if len(group.demands) == 1:
        [demand] = group.demands
        first_sites = {demand: group.sites[demand][:_FIRST_SITES]}
        first = replace(group, sites=first_sites)
        if _solved(first, options, stop).placements:
            return 1
    return len(group.demands) - _solved(group, options, stop).bounds[0]


def _solved(group: DemandSubset, options: Options, stop: Stop) -> Component:
    """Solve the exact model of a group, as far as so much effort goes: what is proven by then holds."""
    component = Component(group, placed_weight(group.problem), ())
    component.improve(0, options, stop.limited(_EFFORT), None)
    return component


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

    def may_make_room(self, group: DemandSubset) -> bool:
        """Whether members may find room just because of what others have got."""
        own_users = Tally(
            claim.key
            for member in group.demands
            for claim in self._problem.demands[member].claims
        )
        shares_claims = any(
            self._users[key] > users for key, users in own_users.items()
        )
        return shares_claims or any(
            may_need_others(
                self._problem,
                self._problem.demands[member],
                group.sites[member],
            )
            for member in group.demands
        )

    def without(self, members: Sequence[DemandIndex]) -> Problem:
        """Return the problem with rules for the members of a group that they keep whoever else is placed."""
        demands = list(self._problem.demands)
        own_concerned = Tally(
            role.rule for member in members for role in demands[member].roles
        )
        kept_rules = {
            rule: rule
            if concerned == self._concerned[rule]
            else self._whoever_comes(rule)
            for rule, concerned in own_concerned.items()
        }
        for member in members:
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
