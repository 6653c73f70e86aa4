"""Claims for admin access are decided beside the model."""

from __future__ import annotations

from dataclasses import replace

from dralloc.objects.errors import AllocationError
from dralloc.problem import (
    Constraint,
    ConstraintKind,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    Scope,
)
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.admin_claims import AdminClaims, admin_claims
from dralloc.solve.optimum.stopping import Stop
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    answer,
    devices_of,
    placed,
)

EVERY = AlternativeSpec(count=None, admin=True)


def decided(problem: Problem) -> AdminClaims:
    return admin_claims(problem, Stop())


def test_a_pod_that_looks_after_devices_goes_where_some_are_and_asks_for_none() -> (
    None
):
    builder = ProblemBuilder(3)
    for node in (0, 0, 2):
        builder.device(node)
    builder.pod(builder.claim(EVERY))
    decision = decided(builder.problem())
    assert [
        (demand.claims, demand.nodes) for demand in decision.problem.demands
    ] == [((), (0, 2))]


def test_what_is_decided_comes_back_in_the_order_of_the_claims() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    builder.pod(
        builder.claim(AlternativeSpec()),
        builder.claim(AlternativeSpec(admin=True)),
        builder.claim(EVERY),
    )
    decision = decided(builder.problem())
    whole = Placement(
        DemandIndex(0),
        NodeIndex(0),
        (
            (Grant(0, 0, DeviceIndex(1)),),
            (Grant(0, 0, DeviceIndex(0)),),
            (Grant(0, 0, DeviceIndex(0)), Grant(0, 0, DeviceIndex(1))),
        ),
    )
    part = Placement(
        DemandIndex(0), NodeIndex(0), ((Grant(0, 0, DeviceIndex(1)),),)
    )
    assert decision.without([whole]) == (part,)
    assert (
        decision.granted(solve(decision.problem)).placements[0].grants[1:]
        == whole.grants[1:]
    )


def test_devices_in_use_can_be_looked_after() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.pod(builder.claim(AlternativeSpec()))
    builder.pod(builder.claim(EVERY))
    solution = answer(builder)
    assert placed(solution) == [0, 1]
    assert devices_of(solution) == [[0], [0]]


def test_what_depends_on_others_is_left_to_the_model() -> None:
    """Of all with consumable capacity, what others take decides; of a claim for two, one request for the other."""
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 2})
    builder.pod(
        builder.claim(
            AlternativeSpec(count=None, admin=True, capacity={"memory": 1})
        )
    )
    builder.pod(
        builder.claim(AlternativeSpec(admin=True), AlternativeSpec(admin=True))
    )
    problem = builder.problem()
    assert decided(problem).problem.demands == problem.demands


def test_a_capacity_decides_where_its_demand_could_take_more_of_it() -> None:
    """A device with consumable capacity on the first node, one without on the second."""
    builder = ProblemBuilder(2)
    builder.device(0, capacity={"memory": 2})
    builder.device(1)
    watching = AlternativeSpec(admin=True, capacity={"memory": 2})
    builder.pod(builder.claim(watching))
    builder.pod(
        builder.claim(AlternativeSpec(only=[1])), builder.claim(watching)
    )
    builder.pod(
        builder.claim(AlternativeSpec(capacity={"memory": 1})),
        builder.claim(watching),
    )
    problem = builder.problem()
    alone, elsewhere, beside = decided(problem).problem.demands
    assert (alone.claims, alone.nodes) == ((), None)
    assert len(elsewhere.claims) == 1
    assert elsewhere.nodes == (1,)
    assert beside == problem.demands[DemandIndex(2)]


def test_all_devices_cannot_be_had_while_a_tainted_one_has_room() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.device(capacity={"memory": 1})
    builder.pod(
        builder.claim(AlternativeSpec(count=None, admin=True, refused=[1]))
    )
    assert placed(answer(builder)) == []


def test_a_selector_that_fails_is_told() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    broken = AllocationError("no such key")
    builder.pod(builder.claim(AlternativeSpec(admin=True, fails={0: broken})))
    solution = solve(builder.problem())
    assert devices_of(solution) == [[1]]
    assert solution.warnings == ("no such key",)


def test_a_claim_that_pods_share_under_different_constraints_is_left_to_the_model() -> (
    None
):
    """One of the pods has a constraint over all of its claims, the other has not: it is one claim all the same."""
    builder = ProblemBuilder()
    builder.device(attributes={"rail": [1]})
    claim = builder.claim(AlternativeSpec(admin=True))
    across = Constraint(ConstraintKind.DISTINCT, "rail", scope=Scope(0))
    builder.pod(replace(claim, constraints=(across,)))
    builder.pod(claim)
    solution = answer(builder)
    assert placed(solution) == [0, 1]
    assert devices_of(solution) == [[0], []]
