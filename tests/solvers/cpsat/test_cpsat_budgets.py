"""Caps and fairness, against trying everything."""

from __future__ import annotations

import os
from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import brute_force
import strategies
from dralloc.budget import Budget
from dralloc.check import check, violations
from dralloc.names import ClaimKey
from dralloc.problem import Alternative, Claim, Demand, Problem, Request
from dralloc.solution import Solution
from dralloc.solvers.cpsat import solve, within_caps
from dralloc.solvers.first_fit import first_fit
from dralloc.spending import spent

EXAMPLES = int(os.environ.get("DRALLOC_BUDGET_EXAMPLES", "60"))
THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
NAMESPACES = ("blue", "green", "red")


@st.composite
def with_budgets(draw: st.DrawFn) -> Problem:
    """A small problem of several namespaces with caps, with something to share, or both."""
    drawn = draw(strategies.problems(max_demands=3, max_devices=4))
    demands = tuple(renamed(demand, draw(st.sampled_from(NAMESPACES))) for demand in drawn.demands)
    fair, capped = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    resource = draw(st.sampled_from(["memory", "counter-0", "counter-1"]))
    budgets = tuple(
        Budget(
            namespace=namespace,
            resource=resource,
            used=draw(st.integers(0, 2)),
            total=12,
            most=draw(st.integers(0, 5)) if capped else None,
            fair=fair and any(demand.key.namespace == namespace for demand in demands),
        )
        for namespace in NAMESPACES
    )
    return replace(drawn, demands=demands, budgets=budgets)


def renamed(demand: Demand, namespace: str) -> Demand:
    """The demand in another namespace, with claims of its own and without defects of single alternatives."""
    claims = tuple(
        replace(claim, key=ClaimKey(namespace, f"{demand.key.name}-{claim.key.name}"), requests=sound(claim))
        for claim in demand.claims
    )
    return replace(demand, key=ClaimKey(namespace, demand.key.name), claims=claims)


def sound(claim: Claim) -> tuple[Request, ...]:
    return tuple(replace(one, alternatives=tuple(map(without_defect, one.alternatives))) for one in claim.requests)


def without_defect(alternative: Alternative) -> Alternative:
    return replace(alternative, defect="")


def worth(problem: Problem, solution: Solution) -> tuple[int, ...]:
    """The tiers of a solution: weight, what the poorest share, ranks."""
    weight = sum(problem.demands[one.demand].weight for one in solution.placements)
    sharing = [budget for budget in problem.budgets if budget.fair]
    uses = sorted(
        budget.used + spent(problem, solution.placements, budget.resource).get(budget.namespace, 0)
        for budget in sharing
    )
    ranks = {
        (one.demand, number, grant.request): problem.demands[one.demand]
        .claims[number]
        .requests[grant.request]
        .alternatives[grant.alternative]
        .rank
        for one in solution.placements
        for number, grants in enumerate(one.grants)
        for grant in grants
    }
    return weight, *(sum(uses[:number]) for number in range(1, len(uses) + 1)), -sum(ranks.values())


@THOROUGH
@given(with_budgets())
def test_against_trying_everything(problem: Problem) -> None:
    found = solve(problem)
    check(problem, found)
    allowed = (one for one in brute_force.every_solution(problem) if not violations(problem, one))
    best = max(worth(problem, one) for one in allowed)
    assert worth(problem, found) == best
    assert [tier.value * (1 if tier.sense > 0 else -1) for tier in found.tiers] == list(best)
    assert all(tier.proven for tier in found.tiers)


@THOROUGH
@given(with_budgets())
def test_what_first_fit_exceeds_is_left_out(problem: Problem) -> None:
    greedy = first_fit(problem)
    kept = within_caps(problem, greedy.placements)
    broken = violations(problem, Solution(tuple(kept)))
    assert not any(line.startswith("namespace") for line in broken)
    if len(kept) < len(greedy.placements):
        assert any(line.startswith("namespace") for line in violations(problem, greedy))
    assert set(kept) <= set(greedy.placements)
