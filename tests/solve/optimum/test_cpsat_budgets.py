"""Caps and fairness, against trying everything."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings

import brute_force
import strategies
from budget_strategies import budgeted
from dralloc.check import check, violations
from dralloc.problem import Problem
from dralloc.problem.solution import Solution, spent
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from examples import examples

EXAMPLES = examples(60)
THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
PROBLEMS = strategies.problems(max_demands=3, max_devices=4).flatmap(budgeted)


def worth(problem: Problem, solution: Solution) -> tuple[int, ...]:
    """The tiers of a solution: weight, what the poorest share, ranks."""
    weight = sum(
        problem.demands[placement.demand].weight
        for placement in solution.placements
    )
    sharing = [budget for budget in problem.budgets if budget.fair]
    uses = sorted(
        budget.used
        + spent(problem, solution.placements, budget.resource).get(
            budget.namespace, 0
        )
        for budget in sharing
    )
    ranks = {
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
    return (
        weight,
        *(sum(uses[:count]) for count in range(1, len(uses) + 1)),
        -sum(ranks.values()),
    )


@THOROUGH
@given(PROBLEMS)
def test_against_trying_everything(problem: Problem) -> None:
    solution = solve(problem)
    check(problem, solution)
    allowed = (
        candidate
        for candidate in brute_force.every_solution(problem)
        if not violations(problem, candidate)
    )
    best = max(worth(problem, candidate) for candidate in allowed)
    assert worth(problem, solution) == best
    assert [
        tier.value * (1 if tier.sense > 0 else -1) for tier in solution.tiers
    ] == list(best)
    assert all(tier.proven for tier in solution.tiers)


@THOROUGH
@given(PROBLEMS)
def test_what_first_fit_exceeds_is_left_out(problem: Problem) -> None:
    greedy = first_fit(problem)
    kept = within_caps(problem, greedy.placements)
    broken = violations(problem, Solution(tuple(kept)))
    assert not any(line.startswith("namespace") for line in broken)
    if len(kept) < len(greedy.placements):
        assert any(
            line.startswith("namespace") for line in violations(problem, greedy)
        )
    assert set(kept) <= set(greedy.placements)
