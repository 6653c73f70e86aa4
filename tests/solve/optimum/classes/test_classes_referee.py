"""Counting over classes against deciding on every device, on problems with few kinds of pods and nodes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowd_strategies import crowds
from dralloc.check import check
from dralloc.objects.choices import Goal
from dralloc.problem import NodeIndex, Problem, SlotIndex
from dralloc.problem.solution import Solution, Status
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.division import divide
from examples import examples
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    placed,
)

THOROUGH = settings(
    max_examples=examples(500),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def answer(
    problem: Problem, *, per_device: bool, goal: Goal = Goal.NONE
) -> Solution:
    solution = solve(problem, Options(per_device=per_device, goal=goal))
    check(problem, solution)
    assert solution.status is Status.OPTIMAL
    return solution


@THOROUGH
@given(crowds())
def test_classes_are_as_good_as_devices(problem: Problem) -> None:
    counted = answer(problem, per_device=False)
    assert not divide(
        problem, lambda demands: survey(problem, demands)
    ).per_device
    one_by_one = answer(problem, per_device=True)
    assert [tier.value for tier in counted.tiers] == [
        tier.value for tier in one_by_one.tiers
    ]


@THOROUGH
@given(
    crowds(gangs=True) | crowds(budgets=True) | crowds(gangs=True, budgets=True)
)
def test_gangs_and_budgets_are_counted_as_well(problem: Problem) -> None:
    counted = answer(problem, per_device=False)
    one_by_one = answer(problem, per_device=True)
    assert [tier.value for tier in counted.tiers] == [
        tier.value for tier in one_by_one.tiers
    ]


@settings(THOROUGH, max_examples=examples(100))
@given(crowds(sharing=True) | crowds(sharing=True, gangs=True))
def test_claims_that_pods_share_are_counted_as_well(problem: Problem) -> None:
    counted = answer(problem, per_device=False)
    one_by_one = answer(problem, per_device=True)
    assert [tier.value for tier in counted.tiers] == [
        tier.value for tier in one_by_one.tiers
    ]


@settings(THOROUGH, max_examples=examples(100))
@given(
    crowds(every=True)
    | crowds(every=True, sharing=True)
    | crowds(every=True, gangs=True)
)
def test_requests_for_all_devices_are_counted_as_well(problem: Problem) -> None:
    counted = answer(problem, per_device=False)
    one_by_one = answer(problem, per_device=True)
    assert [tier.value for tier in counted.tiers] == [
        tier.value for tier in one_by_one.tiers
    ]


@settings(THOROUGH, max_examples=examples(200))
@given(
    crowds(daemons=True)
    | crowds(daemons=True, gangs=True)
    | crowds(daemons=True, budgets=True)
)
def test_pods_that_are_bound_to_nodes_or_look_after_devices_are_counted_as_well(
    problem: Problem,
) -> None:
    counted = answer(problem, per_device=False)
    one_by_one = answer(problem, per_device=True)
    assert [tier.value for tier in counted.tiers] == [
        tier.value for tier in one_by_one.tiers
    ]


def test_all_devices_are_as_many_as_match_on_the_node() -> None:
    """Nodes with one, two and three devices, and three of which one is in use: three whole nodes, and two devices."""
    builder = ProblemBuilder(4)
    for node in (0, 1, 1, 2, 2, 2, 3, 3, 3):
        builder.device(node)
    builder.usage = replace(builder.usage, held=frozenset({SlotIndex(8)}))
    for _ in range(4):
        builder.pod(builder.claim(AlternativeSpec(count=None)), weight=3)
    for _ in range(9):
        builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    division = divide(problem, lambda demands: survey(problem, demands))
    assert not division.per_device
    asked = {
        (
            len(component.classes),
            component.requirements[mode.requirement].devices,
        )
        for component in division.counted
        for mode in component.classes[0].modes
    }
    assert asked == {(2, 1), (2, 2), (2, 3)}
    assert [tier.value for tier in answer(problem, per_device=False).tiers] == [
        3 * 3 + 2,
        0,
    ]


def test_pods_that_share_a_claim_are_counted_together() -> None:
    """Two claims for two devices, with three pods each that want one more of their own; a node has four devices."""
    builder = ProblemBuilder(2)
    for node in (0, 0, 0, 0, 1, 1, 1, 1):
        builder.device(node)
    for _ in range(2):
        shared = builder.claim(AlternativeSpec(count=2))
        for _ in range(3):
            builder.pod(shared, builder.claim(AlternativeSpec()))
    problem = builder.problem()
    division = divide(problem, lambda demands: survey(problem, demands))
    [joint] = [
        demand_class
        for component in division.counted
        for demand_class in component.classes
    ]
    assert joint.joint_demands == [(0, 1, 2), (3, 4, 5)]
    assert [mode.places for mode in joint.modes] == [(0,), (0, 1)]
    assert placed(answer(problem, per_device=False)) == [0, 1, 3, 4]


def test_claims_of_devices_that_several_nodes_can_use_are_left_to_devices() -> (
    None
):
    builder = ProblemBuilder(2)
    builder.device(None)
    shared = builder.claim(AlternativeSpec())
    builder.pod(shared, nodes=(NodeIndex(0),))
    builder.pod(shared, nodes=(NodeIndex(1),))
    problem = builder.problem()
    assert divide(
        problem, lambda demands: survey(problem, demands)
    ).per_device == (
        0,
        1,
    )
    assert placed(answer(problem, per_device=False)) == [0, 1]


def test_equal_gangs_are_one_class_however_their_members_are_mixed() -> None:
    """Three gangs of a small and a large pod, two of which fit, and one of two small pods."""
    builder = ProblemBuilder()
    for _ in range(2):
        builder.device()
        builder.device()
    for gang in ("a", "b", "c"):
        builder.pod(builder.claim(AlternativeSpec()), gang=gang)
        builder.pod(
            builder.claim(AlternativeSpec(count=2)), gang=gang, weight=2
        )
    builder.pod(builder.claim(AlternativeSpec()), gang="d")
    builder.pod(builder.claim(AlternativeSpec()), gang="d")
    problem = builder.problem()
    division = divide(problem, lambda demands: survey(problem, demands))
    assert not division.per_device
    [component] = division.counted
    shapes = {
        (demand_class.gang, tuple(demand_class.members))
        for demand_class in component.classes
    }
    assert shapes == {
        ((0, 1, None), (0, 2, 4)),
        ((0, 1, None), (1, 3, 5)),
        ((1, 2, None), (6, 7)),
    }
    assert placed(solve(problem)) == [0, 1]


def test_members_are_dealt_out_so_that_each_gang_has_its_quorum() -> None:
    """Two gangs of two small pods and two that only one node can hold: five of the eight fit, and each needs two."""
    builder = ProblemBuilder(2)
    for _ in range(3):
        builder.device(node=0)
    for _ in range(2):
        builder.device(node=1)
    for gang in ("a", "b", "a", "b"):
        builder.pod(builder.claim(AlternativeSpec(only=[0, 1, 2])), gang=gang)
        builder.pod(builder.claim(AlternativeSpec(only=[3, 4])), gang=gang)
    problem = builder.problem()
    problem = replace(
        problem,
        demands=tuple(replace(demand, quorum=2) for demand in problem.demands),
    )
    assert not divide(
        problem, lambda demands: survey(problem, demands)
    ).per_device
    assert len(answer(problem, per_device=False).placements) == 5


@THOROUGH
@given(
    crowds(),
    st.sampled_from(
        [goal for goal in Goal if goal not in (Goal.NONE, Goal.SPREAD)]
    ),
)
def test_goals_are_counted_as_well(problem: Problem, goal: Goal) -> None:
    counted = answer(problem, per_device=False, goal=goal)
    one_by_one = answer(problem, per_device=True, goal=goal)
    assert [tier.value for tier in counted.tiers] == [
        tier.value for tier in one_by_one.tiers
    ]


@THOROUGH
@given(crowds())
def test_an_even_answer_is_no_better_than_its_bound(problem: Problem) -> None:
    """Names are given evenly, but not always as evenly as could be: then the goal stays unproven."""
    counted = solve(problem, Options(goal=Goal.SPREAD))
    check(problem, counted)
    one_by_one = answer(problem, per_device=True, goal=Goal.SPREAD)
    *before, spread = counted.tiers
    assert [tier.value for tier in before] == [
        tier.value for tier in one_by_one.tiers[:-1]
    ]
    assert spread.bound <= one_by_one.tiers[-1].value <= spread.value
