from __future__ import annotations

import pytest

from dralloc.check import check
from dralloc.objects.choices import Goal, Options
from dralloc.problem import SlotIndex, Usage
from dralloc.problem.solution import Tier
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    answer,
    devices_of,
    placed,
)


def values(builder: ProblemBuilder, goal: Goal = Goal.NONE) -> list[int]:
    return [tier.value for tier in answer(builder, goal).tiers]


def test_weight_comes_before_alternatives() -> None:
    builder = ProblemBuilder()
    small, large = builder.device(), builder.device()
    builder.pod(
        builder.claim(
            [AlternativeSpec(only=[large]), AlternativeSpec(only=[small])]
        )
    )
    assert answer(builder).tiers == (
        Tier("weight", 1, 1),
        Tier("alternatives", 0, 0, -1),
    )
    builder.pod(builder.claim(AlternativeSpec(only=[large])))
    assert answer(builder).tiers == (
        Tier("weight", 2, 2),
        Tier("alternatives", 1, 1, -1),
    )


def test_one_heavy_demand_is_worth_several_light_ones() -> None:
    builder = ProblemBuilder()
    for _ in range(3):
        builder.device()
        builder.pod(builder.claim(AlternativeSpec()))
    heavy = builder.pod(builder.claim(AlternativeSpec(3)), weight=4)
    assert placed(answer(builder)) == [heavy]


def test_of_equal_demands_the_first_are_placed() -> None:
    builder = ProblemBuilder()
    for _ in range(4):
        builder.pod(builder.claim(AlternativeSpec()))
    builder.device()
    builder.device()
    assert placed(answer(builder)) == [0, 1]
    assert devices_of(answer(builder)) == [[0], [1]]


def test_nothing_to_place() -> None:
    assert answer(ProblemBuilder()).tiers == (
        Tier("weight", 0, 0),
        Tier("alternatives", 0, 0, -1),
    )


def test_fewest_nodes() -> None:
    builder = ProblemBuilder(nodes=3)
    for node in (0, 1, 1, 2, 2, 2):
        builder.device(node)
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec()))
    assert values(builder, Goal.FEWEST_NODES) == [3, 0, 1]
    builder.pod(builder.claim(AlternativeSpec()))
    assert values(builder, Goal.FEWEST_NODES) == [4, 0, 2]


def test_spread_keeps_the_fullest_node_small() -> None:
    builder = ProblemBuilder(nodes=3)
    for node in (0, 1, 1, 2, 2, 2):
        builder.device(node)
    for _ in range(5):
        builder.pod(builder.claim(AlternativeSpec()))
    assert values(builder, Goal.SPREAD) == [5, 0, 2]
    builder.pod(builder.claim(AlternativeSpec()))
    assert values(builder, Goal.SPREAD) == [6, 0, 3]


def test_fewest_devices_prefers_those_in_use() -> None:
    builder = ProblemBuilder()
    for _ in range(3):
        builder.device(capacity={"memory": 4})
    builder.usage = Usage(
        frozenset(), {SlotIndex(2): 1}, {SlotIndex(2): {"memory": 3}}
    )
    for _ in range(4):
        builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 1})))
    assert values(builder, Goal.FEWEST_DEVICES) == [4, 0, 1]
    builder.pod(
        builder.claim(
            AlternativeSpec(admin=True, only=[0], capacity={"memory": 0})
        )
    )
    builder.device()
    builder.pod(builder.claim(AlternativeSpec(only=[3])))
    assert values(builder, Goal.FEWEST_DEVICES) == [6, 0, 2]


def gpus(builder: ProblemBuilder, count: int) -> None:
    """GPUs of four slices, each as a whole or cut in four."""
    for gpu in range(count):
        counter = builder.counter(4, counter_set=f"gpu-{gpu}")
        builder.device(consumes={counter: 4})
        for _ in range(4):
            builder.device(consumes={counter: 1})


@pytest.mark.parametrize(
    ("slices", "touched"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3)]
)
def test_least_fragmentation_keeps_gpus_whole(
    slices: int, touched: int
) -> None:
    builder = ProblemBuilder()
    gpus(builder, 3)
    whole = {0, 5, 10}
    for _ in range(slices):
        builder.pod(builder.claim(AlternativeSpec(only=set(range(15)) - whole)))
    assert values(builder, Goal.LEAST_FRAGMENTATION) == [slices, 0, touched]


def test_least_fragmentation_prefers_what_is_touched() -> None:
    builder = ProblemBuilder()
    gpus(builder, 2)
    builder.device()
    builder.counters[1] = builder.counters[1].__class__(
        builder.counters[1].id, 4, 2, 0
    )
    builder.usage = Usage(frozenset({SlotIndex(6), SlotIndex(7)}), {}, {})
    for _ in range(2):
        builder.pod(
            builder.claim(AlternativeSpec(only={1, 2, 3, 4, 6, 7, 8, 9}))
        )
    assert values(builder, Goal.LEAST_FRAGMENTATION) == [2, 0, 0]
    builder.pod(builder.claim(AlternativeSpec(only={10})))
    assert values(builder, Goal.LEAST_FRAGMENTATION) == [3, 0, 1]


@pytest.mark.parametrize("goal", [Goal.NONE, Goal.FEWEST_NODES, Goal.SPREAD])
def test_who_has_no_weight_may_be_missed(goal: Goal) -> None:
    """A gang that needs one member: only that is worth anything, and the other would get its second choice."""
    builder = ProblemBuilder(nodes=2)
    any_device = AlternativeSpec()
    for node in (0, 1):
        builder.device(node)
    builder.pod(builder.claim(any_device), gang="g", quorum=1)
    builder.pod(
        builder.claim([AlternativeSpec(only=[]), any_device]),
        gang="g",
        quorum=1,
        weight=0,
    )
    assert values(builder, goal)[:2] == [1, 0]
    problem = builder.problem()
    hint = first_fit(problem)
    assert len(hint.placements) == 2
    for per_device in (False, True):
        solution = solve(
            problem, Options(goal=goal, per_device=per_device), hint
        )
        check(problem, solution)
        assert [tier.value for tier in solution.tiers][:2] == [1, 0]


def test_a_demand_of_no_weight_alone_has_no_floor() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.pod(builder.claim(AlternativeSpec()), weight=0)
    problem = builder.problem()
    solution = solve(
        problem, Options(goal=Goal.FEWEST_NODES), first_fit(problem)
    )
    check(problem, solution)
    assert [tier.value for tier in solution.tiers] == [0, 0, 0]
