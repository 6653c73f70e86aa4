"""What demands share: those that share nothing with each other, directly or through others, are solved apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from networkx.utils import UnionFind

from dralloc.objects.choices import Goal
from dralloc.problem import Charge, CounterIndex, DeviceIndex, Problem
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.solve.optimum.candidates import (
    Candidate,
    CandidateSite,
    CandidateSurvey,
)
from dralloc.solve.optimum.stopping import Stop

__all__ = ["components", "touched", "touched_before", "units"]


def components(
    problem: Problem,
    survey: CandidateSurvey,
    goal: Goal = Goal.NONE,
    stop: Stop | None = None,
) -> list[tuple[DemandIndex, ...]]:
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
        view = problem.demands[demand]
        links: list[Hashable] = []
        if view.placed_with:
            links.append(("gang", view.placed_with))
        links += [("rule", role.rule) for role in view.roles]
        links += [("scope", scope) for scope in view.group_scopes]
        # Which claims are shared is the same on all sites.
        links += [
            ("claim", view.claims[claim].key) for claim in sites[0].shared
        ]
        links += _budgets(problem, demand)
        forest.union(("demand", demand), *links)
        for site in stop.each(sites):
            resources = dict.fromkeys(_shared(problem, site, goal))
            forest.union(("demand", demand), *resources)
            # What is behind a slot is linked once, by whichever demand comes first.
            for slot, behind_slot in _behind_slots(problem, site, goal, joined):
                forest.union(("slot", slot), *behind_slot)
    members = grouped(
        (forest[("demand", demand)], demand) for demand in survey.sites
    )
    return [tuple(demands) for demands in members.values()]


def _budgets(problem: Problem, demand: DemandIndex) -> Iterator[Hashable]:
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


def _shared(
    problem: Problem, site: CandidateSite, goal: Goal
) -> Iterator[Hashable]:
    """Yield the resources that a demand on the site shares; with admin access, slots that ``All`` omits when full."""
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
    """Yield the resources that each slot which is not joined yet shares with others as soon as it is in use."""
    for choice in site.choices():
        if choice.spec.admin:
            continue
        for candidate in choice.candidates:
            slot = problem.devices[candidate.device].slot
            if slot not in joined:
                joined.add(slot)
                yield slot, tuple(_drawn(problem, candidate, goal))


def _drawn(
    problem: Problem, candidate: Candidate, goal: Goal
) -> Iterator[Hashable]:
    for version in problem.versions[problem.devices[candidate.device].slot]:
        yield from problem.devices[version].resources
    yield from (
        ("counter", counter) for counter, _ in candidate.charge.counters
    )
    if goal is Goal.LEAST_FRAGMENTATION:
        yield from (("unit", unit) for unit in units(problem, *candidate))


def units(
    problem: Problem, device: DeviceIndex, charge: Charge
) -> tuple[Hashable, ...]:
    """Return the units that an allocation breaks (``least-fragmentation``): counter sets (KEP-4815), or the device."""
    slot = problem.devices[device].slot
    drawn: list[CounterIndex] = []
    for version in problem.versions[slot]:
        drawn += [counter for counter, _ in problem.devices[version].consumes]
    drawn += [counter for counter, _ in charge.counters]
    sets = dict.fromkeys(problem.counters[counter].id[:3] for counter in drawn)
    return tuple(sets) if sets else (slot,)


def touched_before(problem: Problem) -> frozenset[Hashable]:
    """The units that allocated claims draw on."""
    sets = {
        counter.id[:3]
        for counter in problem.counters
        if counter.free < counter.total
    }
    return frozenset(sets | problem.usage.held | set(problem.usage.shares))
