from __future__ import annotations

from dataclasses import replace

from dralloc.problem import Claim, DemandIndex, DeviceIndex, NodeIndex
from dralloc.problem.solution import Grant, Placement, Solution, Status
from dralloc.solve.optimum import solve
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    answer,
    devices_of,
    placed,
)


def shared(builder: ProblemBuilder, claim: Claim, *nodes: NodeIndex) -> None:
    """One pod per node, all of them with the claim."""
    for node in nodes:
        builder.pod(claim, nodes=(node,))


def test_a_claim_of_several_demands_is_granted_once() -> None:
    builder = ProblemBuilder()
    builder.device()
    shared(
        builder,
        builder.claim(AlternativeSpec()),
        NodeIndex(0),
        NodeIndex(0),
        NodeIndex(0),
    )
    solution = answer(builder)
    assert placed(solution) == [0, 1, 2]
    assert sorted(devices_of(solution)) == [[], [], [0]]


def test_the_others_go_where_its_devices_are_in_reach() -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(0)
    claim = builder.claim(AlternativeSpec())
    shared(builder, claim, NodeIndex(0), NodeIndex(1))
    assert placed(answer(builder)) == [0]
    builder.device(None)
    solution = answer(builder)
    assert placed(solution) == [0, 1]
    assert sorted(devices_of(solution)) == [[], [1]]


def test_a_device_can_be_bound_to_the_node_of_its_claim() -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(None)
    builder.devices[0] = replace(builder.devices[0], binds_to_node=True)
    shared(
        builder, builder.claim(AlternativeSpec()), NodeIndex(0), NodeIndex(1)
    )
    assert len(placed(answer(builder))) == 1


def test_a_claim_is_granted_with_a_demand_that_can_have_it() -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(None)
    builder.devices[0] = replace(
        builder.devices[0], nodes=frozenset({NodeIndex(1)})
    )
    shared(
        builder, builder.claim(AlternativeSpec()), NodeIndex(0), NodeIndex(1)
    )
    assert placed(answer(builder)) == [1]


def test_a_claim_can_be_shared_from_a_node_where_nobody_could_be_granted_it() -> (
    None
):
    """All devices can be had on one node, and the other sees them, too; but there "all" has one more, out of reach."""
    builder = ProblemBuilder(2)
    builder.device(None)
    builder.device(1, consumes={builder.counter(1): 2})
    claim = builder.claim(AlternativeSpec(count=None))
    builder.pod(claim, gang="gang")
    builder.pod(claim, gang="gang", nodes=(NodeIndex(1),))
    solution = answer(builder)
    assert placed(solution) == [0, 1]
    assert devices_of(solution) == [[0], []]
    # Who wants the same device alone is not to get it beside them.
    builder.pod(builder.claim(AlternativeSpec(only=[0])), weight=3)
    assert placed(answer(builder)) == [2]


def test_alternatives_of_a_shared_claim_count_once() -> None:
    builder = ProblemBuilder()
    builder.device()
    claim = builder.claim([AlternativeSpec(2), AlternativeSpec(1)])
    shared(builder, claim, NodeIndex(0), NodeIndex(0), NodeIndex(0))
    assert [tier.value for tier in answer(builder).tiers] == [3, 1]


def test_a_hint_with_a_shared_claim_is_kept() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    shared(
        builder,
        builder.claim([AlternativeSpec(), AlternativeSpec()]),
        NodeIndex(0),
        NodeIndex(0),
    )
    hint = Solution(
        (
            Placement(
                DemandIndex(0), NodeIndex(0), ((Grant(0, 0, DeviceIndex(1)),),)
            ),
            Placement(DemandIndex(1), NodeIndex(0), ((),)),
        )
    )
    solution = solve(builder.problem(), hint=hint)
    assert solution.placements == hint.placements
    assert solution.status is Status.OPTIMAL
