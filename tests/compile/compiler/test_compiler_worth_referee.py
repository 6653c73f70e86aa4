"""Priorities, objectives and who is kept, against trying everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import brute_force
import strategies
from budget_strategies import budgeted
from dralloc.check import check, violations
from dralloc.compile.compiler.worth import Worth, worth_of
from dralloc.objects.choices import ObjectiveWord, Priorities
from dralloc.problem import DemandIndex, Problem, indices
from dralloc.problem.inter_pod import OneDomain, Role
from dralloc.problem.solution import Solution, Status, spent
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from examples import examples

THOROUGH = settings(
    max_examples=examples(60),
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@st.composite
def with_priorities(
    draw: st.DrawFn,
) -> tuple[Problem, str, dict[DemandIndex, int]]:
    """A small problem with demands of few priorities, what to maximise, and values.

    There are gangs, some of them in one domain, and shared claims, or caps and fairness.
    """
    drawn = draw(strategies.problems(max_demands=4, max_devices=4))
    drawn = draw(budgeted(drawn)) if draw(st.booleans()) else drawn
    rule = OneDomain(
        {
            node.name: draw(st.sampled_from(["east", "west"]))
            for node in drawn.nodes
        }
    )
    together = (
        (Role(rule, carries=True, counts=True),) if draw(st.booleans()) else ()
    )
    drawn = replace(
        drawn,
        demands=tuple(
            replace(demand, roles=together) if demand.gang else demand
            for demand in drawn.demands
        ),
    )
    demands = tuple(
        replace(demand, priority=draw(st.sampled_from([-1, 0, 1000])))
        for demand in drawn.demands
    )
    problem = replace(
        drawn,
        demands=tuple(sorted(demands, key=lambda demand: -demand.priority)),
    )
    known = [counter.id.counter for counter in problem.counters]
    known += [name for device in problem.devices for name in device.capacity]
    objective = draw(st.sampled_from([*map(str, ObjectiveWord), *known]))
    values = (
        draw(
            st.dictionaries(
                st.sampled_from(indices(problem.demands)), st.integers(0, 5)
            )
        )
        if demands
        else {}
    )
    return problem, objective, values


def reached(
    problem: Problem, worth: Worth, objective: str, solution: Solution
) -> list[int]:
    """From the highest priority on: what is reached of the objective, and how many are placed; then who has least.

    Last come the ranks.
    """
    placed = [placement.demand for placement in solution.placements]

    def of(priority: int) -> Iterator[int]:
        here = [
            demand
            for demand in placed
            if problem.demands[demand].priority == priority
        ]
        yield sum(worth.values[objective][demand] for demand in here)
        yield len(here)

    priorities = sorted(
        {demand.priority for demand in problem.demands}, reverse=True
    )
    return [
        *(figure for priority in priorities for figure in of(priority)),
        *shares(problem, solution),
        -ranks(problem, solution),
    ]


def shares(problem: Problem, solution: Solution) -> Iterator[int]:
    """What the poorest namespaces use together: one, two, ..."""
    sharing = [budget for budget in problem.budgets if budget.fair]
    uses = [
        budget.used
        + spent(problem, solution.placements, budget.resource).get(
            budget.namespace, 0
        )
        for budget in sharing
    ]
    return accumulate(sorted(uses))


def ranks(problem: Problem, solution: Solution) -> int:
    picked = {
        (placement.demand, claim_index, grant.request): problem.demands[
            placement.demand
        ]
        .claims[claim_index]
        .requests[grant.request]
        .alternatives[grant.alternative]
        .rank
        for placement in solution.placements
        for claim_index, grants in enumerate(placement.grants)
        for grant in grants
    }
    return sum(picked.values())


@THOROUGH
@given(with_priorities(), st.booleans(), st.booleans())
def test_against_trying_everything(
    drawn: tuple[Problem, str, dict[DemandIndex, int]],
    keep: bool,
    per_device: bool,
) -> None:
    problem, objective, values = drawn
    worth = worth_of(problem, Priorities.STRICT, objective, values)
    hint = first_fit(problem)
    hint = replace(
        hint, placements=tuple(within_caps(problem, hint.placements))
    )
    assume(not violations(problem, hint))
    kept = (
        {placement.demand for placement in hint.placements} if keep else set()
    )
    worth = worth.keeping(frozenset(kept)) if kept else worth
    weighted = worth.applied(problem)
    solution = solve(weighted, Options(per_device=per_device), hint)
    check(weighted, solution)
    assert solution.status is Status.OPTIMAL
    allowed = (
        candidate
        for candidate in brute_force.every_solution(problem)
        if kept <= {placement.demand for placement in candidate.placements}
    )
    best = max(
        reached(problem, worth, objective, candidate)
        for candidate in allowed
        if not violations(problem, candidate)
    )
    assert reached(problem, worth, objective, solution) == best
    if objective != ObjectiveWord.PODS:
        assert [
            tier.value * tier.sense for tier in worth.tiers(solution.tiers)
        ] == best
