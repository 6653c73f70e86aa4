"""Demands that are bound to one node each are one class, and end up at home."""

from __future__ import annotations

from dataclasses import replace

from dralloc.check import check
from dralloc.problem import NodeIndex, Problem, indices, numbered
from dralloc.problem.node_claims import (
    NodeStock,
    node_resource,
    with_node_claims,
)
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.classes.component import with_tickets
from dralloc.solve.optimum.division import divide
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    placed,
)

PODS = node_resource("pods")


def daemons(weights: tuple[int, ...], pod_limit: int = 1) -> Problem:
    """A node with a device for each weight, a pod of that weight bound to it, and a pod that can go anywhere."""
    builder = ProblemBuilder(len(weights))
    for node, weight in enumerate(weights):
        builder.device(node)
        builder.pod(
            builder.claim(AlternativeSpec()),
            weight=weight,
            nodes=(NodeIndex(node),),
        )
    builder.pod(builder.claim(AlternativeSpec()), weight=2)
    problem = builder.problem()
    asked = {demand: {PODS: 1} for demand in indices(problem.demands)}
    return with_node_claims(
        problem, [NodeStock({PODS: pod_limit}, {})] * len(weights), asked
    )


def test_they_are_one_class_and_so_are_their_nodes() -> None:
    problem = daemons((3, 3, 3))
    [component] = divide(
        problem, lambda demands: survey(problem, demands)
    ).counted
    assert [demand_class.members for demand_class in component.classes] == [
        [0, 1, 2],
        [3],
    ]
    assert len(component.supplies) == 1


def test_each_is_placed_where_it_is_bound_to() -> None:
    """One of them makes room for the pod that is worth more, and its node, not another's, is where that goes."""
    problem = daemons((1, 1, 1))
    solution = solve(problem)
    assert len(placed(solution)) == 3
    assert all(
        problem.demands[placement.demand].nodes in {None, (placement.node,)}
        for placement in solution.placements
    )


def test_who_is_worth_more_is_of_another_class() -> None:
    problem = daemons((3, 1, 3))
    [component] = divide(
        problem, lambda demands: survey(problem, demands)
    ).counted
    assert [demand_class.members for demand_class in component.classes] == [
        [0, 2],
        [1],
        [3],
    ]
    assert placed(solve(problem)) == [0, 2, 3]


def test_on_one_node_tickets_make_no_difference() -> None:
    problem = daemons((3,))
    assert with_tickets(problem) is problem


def test_who_takes_more_of_a_node_is_told_from_who_is_bound_to_it() -> None:
    """Pods that take one place and are bound to their nodes, beside pods that take two: there is room for all."""
    builder = ProblemBuilder(2)
    for node in map(NodeIndex, range(2)):
        builder.device(node)
        builder.device(node)
        builder.pod(builder.claim(AlternativeSpec()), nodes=(NodeIndex(node),))
        builder.pod(builder.claim(AlternativeSpec()))
    whole = builder.problem()
    asked = {
        demand_index: {PODS: 2 if demand.nodes is None else 1}
        for demand_index, demand in numbered(whole.demands)
    }
    problem = with_node_claims(whole, [NodeStock({PODS: 3}, {})] * 2, asked)
    freed = with_tickets(problem)
    indices = {next(demand.alternatives()).index for demand in freed.demands}
    assert len({freed.eligibility.request_key(index) for index in indices}) == 2
    assert placed(solve(problem)) == [0, 1, 2, 3]


def test_who_shares_a_claim_with_others_is_at_home_wherever_they_are() -> None:
    """Pods with one claim are counted together, be one of them bound to its node and the other not."""
    builder = ProblemBuilder()
    builder.device()
    shared = builder.claim(AlternativeSpec())
    builder.pod(shared)
    builder.pod(shared, nodes=(NodeIndex(0),))
    assert placed(solve(builder.problem())) == [0, 1]


def test_one_that_can_never_be_placed_leaves_its_place_to_none_of_another_node() -> (
    None
):
    """The claim of the first is being deleted; of two pods on the other node there is room for one."""
    builder = ProblemBuilder(2)
    for node in (0, 1, 1):
        builder.device(node)
        builder.pod(builder.claim(AlternativeSpec()), nodes=(NodeIndex(node),))
    problem = builder.problem()
    doomed, *others = problem.demands
    [claim] = doomed.claims
    doomed = replace(doomed, claims=(replace(claim, defect="gone"),))
    problem = with_node_claims(
        replace(problem, demands=(doomed, *others)),
        [NodeStock({PODS: 1}, {})] * 2,
        {demand: {PODS: 1} for demand in indices(problem.demands)},
    )
    solution = solve(problem)
    check(problem, solution)
    assert placed(solution) == [1]
