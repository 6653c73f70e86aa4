"""Whole demands on nodes: what is proven of them holds for every answer, and is more than prices prove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import weighted
from benchmarks.workloads.varied import varied
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Choices, Goal, Options
from dralloc.problem import DemandIndex, NodeIndex, Problem, indices
from dralloc.problem.inter_pod import OneDomain, Role
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.objective import (
    DemandSubset,
    after_weight,
    placed_weight,
)
from dralloc.solve.optimum.relax import node_model, relaxed_bounds
from dralloc.solve.optimum.relax.halves import with_halves
from dralloc.solve.optimum.relax.levels import levels_of
from dralloc.solve.optimum.relax.market import market_of
from dralloc.solve.optimum.relax.node_model import NodeAssignment, NodeModel
from dralloc.solve.optimum.relax.patterns import with_patterns
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

THOROUGH = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def model_of(problem: Problem) -> NodeModel:
    market = market_of(problem, Stop(), with_patterns, with_halves)
    return NodeModel(market, Stop())


def assigned(
    problem: Problem, present: Mapping[DemandIndex, NodeIndex] | None = None
) -> NodeAssignment:
    tier = placed_weight(problem)[0].weights
    assert tier is not None
    assignment = model_of(problem).solve(tier, present or {}, Options(), Stop())
    assert assignment is not None
    return assignment


def placed_alone(problem: Problem, placements: Sequence[Placement]) -> Problem:
    """The problem with nobody but those who are placed, who may go nowhere else."""
    demands = tuple(
        replace(problem.demands[placement.demand], nodes=(placement.node,))
        for placement in placements
    )
    return replace(problem, demands=demands)


def cost_of_optimum(problem: Problem) -> int:
    solution = solve(problem, Options(per_device=True))
    everything = DemandSubset(problem, indices(problem.demands))
    return placed_weight(problem)[0].cost(everything, solution.placements)


def least_missed_in_fractions(problem: Problem) -> int:
    tiers = (*placed_weight(problem), *after_weight(Goal.NONE))
    *_, bound = relaxed_bounds(problem, tiers, Stop())
    return bound.costs[0]


@THOROUGH
@given(weighted())
def test_no_answer_costs_less(problem: Problem) -> None:
    start = first_fit(problem).placements
    present = {placement.demand: placement.node for placement in start}
    assignment = assigned(problem, present)
    assert assignment.bound == assignment.missing
    assert assignment.bound <= cost_of_optimum(problem)
    tier = placed_weight(problem)[0].weights
    assert tier is not None
    missing = (
        tier.of(demand.weight)
        for index, demand in enumerate(problem.demands)
        if index not in assignment.nodes
    )
    assert assignment.missing == sum(missing)


@THOROUGH
@given(weighted())
def test_no_answer_with_as_much_of_a_level_costs_less(
    problem: Problem,
) -> None:
    best = solve(problem, Options(per_device=True)).placements
    weights = [problem.demands[placement.demand].weight for placement in best]
    model = model_of(problem)
    for level in levels_of(demand.weight for demand in problem.demands):
        model.require(level, sum(map(level.of, weights)))
    objective = placed_weight(problem)[0]
    assert objective.weights is not None
    assignment = model.solve(objective.weights, {}, Options(), Stop())
    assert assignment is not None
    everything = DemandSubset(problem, indices(problem.demands))
    assert assignment.bound <= objective.cost(everything, best)


@THOROUGH
@given(weighted())
def test_every_answer_keeps_the_rows(problem: Problem) -> None:
    best = solve(problem, Options(per_device=True)).placements
    assert assigned(placed_alone(problem, best)).missing == 0


@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(4, 40), st.integers(0, 2**32))
def test_first_fit_keeps_the_rows_whatever_is_mixed(
    nodes: int, seed: int
) -> None:
    problem = compile_cluster(varied(nodes, seed), Choices()).whole
    first = first_fit(problem).placements
    assert assigned(placed_alone(problem, first)).missing == 0


def test_users_of_a_claim_are_on_all_nodes_of_its_device() -> None:
    problem = with_users_on_nodes(2)
    assert assigned(problem).missing == 0


def test_parts_of_more_users_than_are_counted_are_rounded_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_model, "_MOST_PARTS", 2)
    assert assigned(with_users_on_nodes(3)).missing == 0


def with_users_on_nodes(nodes: int) -> Problem:
    """One device that all nodes reach, and a pod on each of them that uses the same claim for it."""
    builder = ProblemBuilder(nodes)
    builder.device(node=None)
    claim = builder.claim(AlternativeSpec())
    for node in range(nodes):
        builder.pod(claim, nodes=(NodeIndex(node),))
    return builder.problem()


def test_a_demand_is_on_one_node_as_a_whole() -> None:
    """Two nodes have three devices each, and each pod needs two: in fractions there is room for three of them."""
    builder = ProblemBuilder(nodes=2)
    for node in (0, 0, 0, 1, 1, 1):
        builder.device(node=node)
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec(2)))
    problem = builder.problem()
    assert least_missed_in_fractions(problem) == 0
    assignment = assigned(problem)
    assert assignment.bound == assignment.missing == 1


def with_gangs(*, in_one_domain: bool = False) -> Problem:
    """Three devices on two nodes, and two gangs of two pods."""
    builder = ProblemBuilder(nodes=2)
    for node in (0, 1, 1):
        builder.device(node=node)
    for gang in ("red", "red", "blue", "blue"):
        builder.pod(builder.claim(AlternativeSpec()), gang=gang)
    problem = builder.problem()
    if not in_one_domain:
        return problem
    rules = {
        gang: OneDomain({"node-0": "node-0", "node-1": "node-1"})
        for gang in ("red", "blue")
    }
    demands = [
        replace(demand, roles=(Role(rules[demand.gang or ""], True, True),))
        for demand in problem.demands
    ]
    return replace(problem, demands=tuple(demands))


def test_gangs_are_placed_as_a_whole() -> None:
    problem = with_gangs()
    assert least_missed_in_fractions(problem) == 1
    assignment = assigned(problem)
    assert assignment.bound == assignment.missing == 2


def test_gangs_that_need_it_are_in_one_domain() -> None:
    assignment = assigned(with_gangs(in_one_domain=True))
    assert assignment.missing == 2
    assert set(assignment.nodes.values()) == {1}


def test_who_is_somewhere_stays_there_if_it_can() -> None:
    builder = ProblemBuilder(nodes=3)
    for node in range(3):
        builder.device(node=node)
    for _ in range(2):
        builder.pod(builder.claim(AlternativeSpec()))
    present = {DemandIndex(1): NodeIndex(2)}
    assert assigned(builder.problem(), present).nodes[DemandIndex(1)] == 2


def test_so_much_of_a_level_is_placed_as_is_required() -> None:
    """Of two pods for one device, that of the lower priority has to be placed."""
    builder = ProblemBuilder()
    builder.device()
    for weight in (100, 1):
        builder.pod(builder.claim(AlternativeSpec()), weight=weight)
    problem = builder.problem()
    assert set(assigned(problem).nodes) == {0}
    model = model_of(problem)
    _, lower = levels_of(demand.weight for demand in problem.demands)
    model.require(lower, 1)
    tier = placed_weight(problem)[0].weights
    assert tier is not None
    assignment = model.solve(tier, {}, Options(), Stop())
    assert assignment is not None
    assert set(assignment.nodes) == {1}


def test_rows_are_rounded_where_they_are_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then they may say less: 3, 4 and 4 fit on 10 if each of them counts as one of three."""
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 10})
    for memory in (3, 4, 4):
        amounts = {"memory": memory}
        builder.pod(builder.claim(AlternativeSpec(capacity=amounts)))
    problem = builder.problem()
    assert assigned_by_rows(problem) == cost_of_optimum(problem) == 1
    monkeypatch.setattr(node_model, "SAFE_SUM", 10)
    assert assigned_by_rows(problem) == 0


def assigned_by_rows(problem: Problem) -> int:
    """What is missing at least, as plain rows say."""
    model = NodeModel(market_of(problem, Stop()), Stop())
    tier = placed_weight(problem)[0].weights
    assert tier is not None
    assignment = model.solve(tier, {}, Options(), Stop())
    assert assignment is not None
    return assignment.bound
