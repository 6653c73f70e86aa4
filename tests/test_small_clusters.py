"""Small clusters as users write them: every mode against a referee that reads the objects by itself."""

from __future__ import annotations

from itertools import chain, combinations

from hypothesis import HealthCheck, assume, event, given, settings

import dralloc
from brute_clusters import Answer, Grant, SmallCluster
from dralloc import Mode, Plan
from dralloc.compile.compiler import compile_cluster
from dralloc.problem.solution import Solution, Status
from dralloc.solve.optimum import Options, solve
from examples import INDEPENDENT, examples
from small_strategies import (
    across_claims,
    gangs_over_others,
    grouped_pods,
    limited_pods,
)
from wire import Json, cluster

FAMILY = settings(
    max_examples=examples(40),
    backend=INDEPENDENT,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def answered(plan: Plan) -> Answer:
    """A plan in the referee's words."""
    grants = {}
    for key, allocation in plan.allocations.items():
        [result] = allocation.devices.results
        grants[key.name] = (result.request, result.pool, result.device)
    choices = {
        claim.key.name: [
            str(alternative.name)
            for alternative in claim.requests[0].alternatives
        ]
        for demand in plan.demands
        for claim in demand.claims
        if claim.requests
    }
    return Answer(
        {placed.demand.name: placed.node for placed in plan.placed},
        {
            name: Grant(choices[name].index(asked), node, device)
            for name, (asked, node, device) in grants.items()
        },
    )


def tiers(solution: Solution) -> tuple[int, ...]:
    """The values of an answer, all of which are proven."""
    assert solution.status is Status.OPTIMAL
    assert all(tier.value == tier.bound for tier in solution.tiers)
    *counts, ranks = (tier.value for tier in solution.tiers)
    return (*counts, -ranks)


def compare(objects: list[Json]) -> None:
    """All modes are right, and the optimum is the best that there is."""
    referee, ours = SmallCluster(objects), cluster(objects)
    best = dralloc.allocate(ours, Mode.OPTIMAL)
    event(f"{len(best.solution.placements)} of {len(best.demands)}")
    assert referee.is_right(answered(best))
    expected = referee.best()
    if referee.asking:
        assert tiers(best.solution) == expected == referee.worth(answered(best))
    compiled = compile_cluster(ours)
    alone = solve(compiled.whole, Options(per_device=True))
    assert compiled.worth.tiers(alone.tiers) == best.tiers
    first = answered(dralloc.allocate(ours, Mode.FIRST_FIT))
    assert referee.is_right(first)
    assert referee.worth(first) <= expected
    assert referee.is_right(answered(dralloc.allocate(ours, Mode.SCHEDULER)))


@FAMILY
@given(grouped_pods())
def test_groups_and_trees_of_groups(objects: list[Json]) -> None:
    compare(objects)


@FAMILY
@given(limited_pods())
def test_requests_of_pods_as_a_whole_and_what_devices_take(
    objects: list[Json],
) -> None:
    compare(objects)


@FAMILY
@given(across_claims())
def test_claims_that_pods_share_under_constraints_over_claims(
    objects: list[Json],
) -> None:
    compare(objects)


@FAMILY
@given(gangs_over_others())
def test_victims_for_gangs_with_alternatives(objects: list[Json]) -> None:
    referee = SmallCluster(objects)
    assume(referee.asking)
    for name in referee.asking:
        preemption = dralloc.preempt(cluster(objects), pod=f"default/{name}")
        assert preemption.exact
        expected = fewest_victims(referee, name)
        assert preemption.possible == (expected is not None)
        if expected is not None:
            assert expected == sorted(
                (referee.priority(key.name) for key in preemption.evicted),
                reverse=True,
            )


def fewest_victims(referee: SmallCluster, newcomer: str) -> list[int] | None:
    """The priorities of the fewest pods that must go for a pod to be placed, of equally many the lowest."""
    below = [
        name
        for name in referee.running
        if referee.priority(name) < referee.priority(newcomer)
    ]
    admitting = []
    for gone in chain.from_iterable(
        combinations(below, size) for size in range(len(below) + 1)
    ):
        remaining = referee.without(gone)
        if any(newcomer in answer.homes for answer in remaining.answers()):
            admitting.append(sorted(map(referee.priority, gone), reverse=True))
    return min(
        admitting,
        key=lambda priorities: (len(priorities), priorities),
        default=None,
    )
