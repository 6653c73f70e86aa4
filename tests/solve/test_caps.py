"""What is left of an answer within caps keeps all other rules as well."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from budget_strategies import renamed
from dralloc.check.problem import violations
from dralloc.objects.user_rules import Budget
from dralloc.problem import DemandIndex, DeviceIndex, NodeIndex, Problem
from dralloc.problem.inter_pod import Affinity, Role, Spread
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder
from tied_strategies import tied_pods


@settings(
    max_examples=examples(1000),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(tied_pods())
def test_what_is_left_of_first_fit_keeps_all_rules(problem: Problem) -> None:
    admitted = within_caps(problem, first_fit(problem).placements)
    assert violations(problem, Solution(tuple(admitted))) == []


def test_who_may_only_come_beside_others_is_left_out_with_them() -> None:
    """Three pods are spread evenly over two nodes. Without the second one, the third would be one too many."""
    builder = ProblemBuilder(nodes=2)
    memory = AlternativeSpec(capacity={"memory": 1})
    for node in (0, 0, 1):
        builder.device(node, capacity={"memory": 1})
        builder.pod(builder.claim(memory))
    even = Spread({"node-0": "node-0", "node-1": "node-1"}, {}, 1)
    first, second, third = (
        demand.by_itself(roles=(Role(even, carries=True, counts=True),))
        for demand in builder.demands
    )
    builder.demands = [first, renamed(second, "capped"), third]
    cap = Budget("capped", "memory", used=0, total=3, most=0)
    problem = replace(builder.problem(), budgets=(cap,))
    placements = first_fit(problem).placements
    assert [placement.node for placement in placements] == [0, 1, 0]
    admitted = within_caps(problem, placements)
    assert [placement.demand for placement in admitted] == [0]


def test_who_came_in_another_order_is_not_left_out() -> None:
    """The first pod came after the second, which is spread evenly; and in a gang the first one came beside the other.

    Caps leave out somebody whom none of them needs.
    """
    builder = ProblemBuilder(nodes=2)
    memory = AlternativeSpec(capacity={"memory": 1})
    for node in (0, 0, 0, 0, 1):
        builder.device(node, capacity={"memory": 1})
    for gang in ("", "", "pair", "pair", ""):
        builder.pod(builder.claim(memory), gang=gang)
    names = {"node-0": "node-0", "node-1": "node-1"}
    even = Spread(names, {}, 1)
    near = Affinity((names,), (frozenset(),))
    roles = (
        Role(even, carries=False, counts=True),
        Role(even, carries=True, counts=True),
        Role(near, carries=True, counts=False),
        Role(near, carries=False, counts=True),
    )
    *others, last = builder.demands
    builder.demands = [
        *(
            replace(demand, roles=(role,))
            for demand, role in zip(others, roles, strict=True)
        ),
        renamed(last, "capped"),
    ]
    cap = Budget("capped", "memory", used=0, total=5, most=0)
    problem = replace(builder.problem(), budgets=(cap,))
    placements = [
        Placement(
            DemandIndex(index),
            NodeIndex(index // 4),
            ((Grant(0, 0, DeviceIndex(index)),),),
        )
        for index in range(5)
    ]
    uncapped = replace(problem, budgets=())
    assert violations(uncapped, Solution(tuple(placements))) == []
    assert within_caps(problem, placements) == placements[:-1]


def test_who_passed_over_a_device_that_has_room_now_is_left_out() -> None:
    """A claim for all devices got what another one had left, which is beyond its cap."""
    builder = ProblemBuilder()
    memory = AlternativeSpec(capacity={"memory": 1})
    for _ in range(2):
        builder.device(capacity={"memory": 1})
    builder.pod(builder.claim(memory))
    builder.pod(builder.claim(replace(memory, count=None)))
    filling, for_all = builder.demands
    builder.demands = [renamed(filling, "capped"), for_all]
    cap = Budget("capped", "memory", used=0, total=2, most=0)
    problem = replace(builder.problem(), budgets=(cap,))
    placements = first_fit(problem).placements
    assert [placement.demand for placement in placements] == [0, 1]
    assert within_caps(problem, placements) == []
