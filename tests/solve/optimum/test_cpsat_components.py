from __future__ import annotations

from dralloc.objects.choices import Goal
from dralloc.problem.indices import DemandIndex
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.sharing import components
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    answer,
)


def split(
    builder: ProblemBuilder, goal: Goal = Goal.NONE
) -> list[tuple[DemandIndex, ...]]:
    problem = builder.problem()
    return components(problem, survey(problem), goal)


def pairs() -> ProblemBuilder:
    """Two nodes with two devices, and a pod for each device."""
    builder = ProblemBuilder(nodes=2)
    counter = builder.counter(2)
    for node in (0, 0, 1, 1):
        device = builder.device(node, consumes={counter: 1} if node else {})
        builder.pod(builder.claim(AlternativeSpec(only=[device])))
    return builder


def test_slots_and_counters_join() -> None:
    builder = pairs()
    assert split(builder) == [(0,), (1,), (2, 3)]
    builder.pod(
        builder.claim([AlternativeSpec(only=[0]), AlternativeSpec(only=[2])])
    )
    assert split(builder) == [(0, 2, 3, 4), (1,)]


def test_gangs_join() -> None:
    builder = pairs()
    builder.pod(builder.claim(AlternativeSpec(admin=True)), gang="gang")
    builder.pod(builder.claim(AlternativeSpec(only=[1])), gang="gang")
    assert split(builder) == [(0,), (1, 4, 5), (2, 3)]


def test_admin_access_joins_nothing_but_sharers() -> None:
    builder = pairs()
    builder.pod(builder.claim(AlternativeSpec(only=[0], admin=True)))
    assert split(builder) == [(0,), (1,), (2, 3), (4,)]


def test_nodes_join_when_the_goal_counts_them() -> None:
    assert (
        split(pairs(), Goal.FEWEST_NODES)
        == split(pairs(), Goal.SPREAD)
        == [(0, 1), (2, 3)]
    )


def test_what_nothing_can_serve_is_in_no_component() -> None:
    builder = pairs()
    builder.pod(builder.claim(AlternativeSpec(only=[])))
    assert split(builder) == [(0,), (1,), (2, 3)]


def test_tiers_add_up_over_components() -> None:
    builder = pairs()
    builder.pod(
        builder.claim([AlternativeSpec(only=[]), AlternativeSpec(only=[0])]),
        weight=5,
    )
    solution = answer(builder, Goal.FEWEST_NODES)
    assert [tier.value for tier in solution.tiers] == [8, 1, 2]
    assert [tier.value for tier in answer(pairs(), Goal.SPREAD).tiers] == [
        4,
        0,
        2,
    ]
