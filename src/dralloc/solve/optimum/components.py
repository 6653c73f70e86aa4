"""Components: demands that share nothing with each other are solved apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from networkx.utils import UnionFind

from dralloc.objects.choices import Goal
from dralloc.problem import Charge, Problem
from dralloc.problem.grouping import grouped
from dralloc.solve.optimum.candidates import Candidate, CandidateSite, CandidateSurvey
from dralloc.solve.optimum.stopping import Stop

__all__ = ["components", "touched", "touched_before", "units"]


def components(
    problem: Problem,
    survey: CandidateSurvey,
    goal: Goal = Goal.NONE,
    stop: Stop | None = None,
) -> list[tuple[int, ...]]:
    """Split the demands that have sites by what they share: slots, counters, gangs, rules, budgets, for the goal.

    Returns
    -------
    The demands of each component in order, components by their first demand.

    Raises
    ------
    Stopped
        It is time to stop.
    """
    stop = stop or Stop()
    forest: UnionFind[Hashable] = UnionFind()
    joined: set[int] = set()
    for demand, sites in survey.sites.items():
        together = problem.demands[demand].placed_with
        rules = (("rule", role.rule) for role in problem.demands[demand].roles)
        shared = (
            ("claim", problem.demands[demand].claims[claim].key)
            for claim in sites[0].shared
        )
        scopes = (("scope", scope) for scope in problem.demands[demand].group_scopes)
        others = (
            *([("gang", together)] if together else []),
            *rules,
            *scopes,
            *shared,
            *_budgets(problem, demand),
        )
        forest.union(("demand", demand), *others)
        for site in stop.each(sites):
            forest.union(
                ("demand", demand), *dict.fromkeys(_shared(problem, site, goal))
            )
            for slot, resources in _behind_slots(problem, site, goal, joined):
                forest.union(("slot", slot), *resources)
    return list(
        map(
            tuple,
            grouped(
                (forest[("demand", demand)], demand) for demand in survey.sites
            ).values(),
        )
    )


def _budgets(problem: Problem, demand: int) -> Iterator[Hashable]:
    """The budgets that the demand spends from; of those that are to be fair each depends on the others."""
    for budget in problem.budgets:
        if budget.namespace == problem.demands[demand].key.namespace:
            yield ("budget", "" if budget.fair else budget.namespace)


def touched(problem: Problem, survey: CandidateSurvey) -> Iterator[Hashable]:
    """The slots and counters that the demands share with other demands for them."""
    joined: set[int] = set()
    for sites in survey.sites.values():
        for site in sites:
            yield from _shared(problem, site, Goal.NONE)
            for _, resources in _behind_slots(problem, site, Goal.NONE, joined):
                yield from resources


def _shared(problem: Problem, site: CandidateSite, goal: Goal) -> Iterator[Hashable]:
    """What a demand on the site shares: with admin access only slots that ``All`` leaves out when they are full."""
    if goal in {Goal.FEWEST_NODES, Goal.SPREAD}:
        yield ("node", site.node)
    for choice in site.choices():
        for device, charge in (*choice.candidates, *choice.blocked):
            if not choice.spec.admin or choice.loose or choice.blocked:
                yield ("slot", problem.devices[device].slot)
            if not choice.spec.admin and charge.counters:
                yield from _drawn(problem, Candidate(device, charge), goal)


def _behind_slots(
    problem: Problem, site: CandidateSite, goal: Goal, joined: set[int]
) -> Iterator[tuple[int, tuple[Hashable, ...]]]:
    """What each slot that is not joined yet shares with others as soon as it is in use."""
    for choice in site.choices():
        for candidate in () if choice.spec.admin else choice.candidates:
            slot = problem.devices[candidate.device].slot
            if slot not in joined:
                joined.add(slot)
                yield slot, tuple(_drawn(problem, candidate, goal))


def _drawn(problem: Problem, candidate: Candidate, goal: Goal) -> Iterator[Hashable]:
    for version in problem.versions[problem.devices[candidate.device].slot]:
        yield from problem.devices[version].resources
    yield from (("counter", counter) for counter, _ in candidate.charge.counters)
    if goal is Goal.LEAST_FRAGMENTATION:
        yield from (("unit", unit) for unit in units(problem, *candidate))


def units(problem: Problem, device: int, charge: Charge) -> tuple[Hashable, ...]:
    """What an allocation breaks, for ``least-fragmentation``: counter sets (KEP-4815), or else the device itself."""
    slot = problem.devices[device].slot
    drawn = [
        counter
        for version in problem.versions[slot]
        for counter, _ in problem.devices[version].consumes
    ]
    drawn += [counter for counter, _ in charge.counters]
    sets = dict.fromkeys(problem.counters[counter].id[:3] for counter in drawn)
    return tuple(sets) if sets else (slot,)


def touched_before(problem: Problem) -> frozenset[Hashable]:
    """The units that allocated claims draw on."""
    sets = {
        counter.id[:3] for counter in problem.counters if counter.free < counter.total
    }
    return frozenset(sets | problem.usage.held | set(problem.usage.shares))
