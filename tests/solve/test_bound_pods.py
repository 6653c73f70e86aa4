"""What binds pods beside devices: every search and the checker agree with the referee."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from brute_force import every_solution
from brute_pods import best_bound, is_bound_right
from dralloc.check import check, violations
from dralloc.objects.choices import Options, Thresholds
from dralloc.objects.names import ClaimKey, DeviceID, PoolID, RequestName
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Claim,
    Demand,
    Device,
    DeviceIndex,
    Node,
    PoolAccess,
    PoolState,
    Problem,
    Request,
    SlotIndex,
    Usage,
)
from dralloc.problem.inter_pod import Affinity, Role
from dralloc.problem.solution import Grant, Placement, Solution, devices_only
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from examples import examples
from pod_strategies import BoundPods, bound_pods
from strategies import TableEligibility


def worth(solution: Solution) -> tuple[int, int]:
    weight, *_ = solution.tiers
    ranks = next(tier for tier in solution.tiers if tier.name == "alternatives")
    assert all(tier.proven for tier in solution.tiers)
    return weight.value, ranks.value


@given(bound_pods())
def test_the_optimum_is_what_the_referee_finds(pods: BoundPods) -> None:
    solution = solve(pods.whole)
    check(pods.whole, solution)
    assert worth(solution) == best_bound(pods)
    assert is_bound_right(
        pods, list(devices_only(pods.whole, solution.placements))
    )


@settings(max_examples=examples(50))
@given(bound_pods(max_pods=3, max_rules=1, footprints=st.just(True)))
def test_what_devices_take_of_their_nodes_counts_for_everybody(
    pods: BoundPods,
) -> None:
    for solution in (
        solve(pods.whole),
        solve(pods.whole, Options(per_device=True)),
    ):
        check(pods.whole, solution)
        assert worth(solution) == best_bound(pods)
    upstream = first_fit(pods.whole)
    check(pods.whole, upstream)
    assert is_bound_right(
        pods, list(devices_only(pods.whole, upstream.placements))
    )


@given(bound_pods())
def test_devices_and_counts_lead_to_the_same_worth(pods: BoundPods) -> None:
    solution = solve(
        pods.whole, Options(per_device=True), hint=first_fit(pods.whole)
    )
    check(pods.whole, solution)
    assert worth(solution) == worth(solve(pods.whole))


@given(bound_pods(max_pods=6, max_rules=0))
def test_nodes_can_be_packed(pods: BoundPods) -> None:
    solution = solve(
        pods.whole,
        Options(thresholds=Thresholds(pattern_effort=0, listed_patterns=0)),
    )
    check(pods.whole, solution)
    assert worth(solution) == worth(solve(pods.whole, Options(per_device=True)))


@given(bound_pods())
def test_first_fit_keeps_what_the_referee_asks_for(pods: BoundPods) -> None:
    solution = first_fit(pods.whole)
    check(pods.whole, solution)
    assert is_bound_right(
        pods, list(devices_only(pods.whole, solution.placements))
    )
    assert (
        solution.placements == first_fit(pods.whole, pruning=False).placements
    )


@given(bound_pods(max_pods=3))
def test_the_checker_accepts_what_the_referee_accepts(pods: BoundPods) -> None:
    for solution in every_solution(pods.devices):
        whole = replace(
            solution,
            placements=tuple(
                _completed(pods.whole, placement)
                for placement in solution.placements
            ),
        )
        assert (not violations(pods.whole, whole)) == is_bound_right(
            pods, solution.placements
        )


def test_nobody_comes_before_whom_it_is_waiting_for() -> None:
    first, second = (
        Affinity(({"node-0": "a"},), (frozenset(),)) for _ in range(2)
    )
    roles = (
        (Role(first, True, False), Role(second, False, True)),
        (Role(second, True, False), Role(first, False, True)),
    )
    waiting = [
        _pod(AlternativeIndex(index), *pod_roles)
        for index, pod_roles in enumerate(roles)
    ]
    assert solve(_on_one_node(*waiting)).placements == ()
    assert (
        len(
            solve(
                _on_one_node(
                    *waiting,
                    _pod(AlternativeIndex(2), Role(first, False, True)),
                )
            ).placements
        )
        == 3
    )


def _pod(alternative: AlternativeIndex, *roles: Role) -> Demand:
    request = Request(
        "gpu", (Alternative(alternative, RequestName("gpu"), 0, 1),)
    )
    claim = Claim(ClaimKey("default", f"claim-{alternative}"), "", (request,))
    return Demand(
        ClaimKey("default", f"pod-{alternative}"), (claim,), roles=roles
    )


def _on_one_node(*demands: Demand) -> Problem:
    names = [DeviceID("gpu", "node-0", f"gpu-{index}") for index in range(4)]
    devices = tuple(
        Device(name, SlotIndex(slot), 0, False, {}, (), {}, None)
        for slot, name in enumerate(names)
    )
    pool = PoolAccess(
        PoolID("gpu", "node-0"),
        PoolState.USABLE,
        tuple(map(DeviceIndex, range(len(devices)))),
    )
    nothing = Usage(frozenset(), {}, {})
    return Problem(
        demands,
        (Node("node-0", (pool,)),),
        devices,
        (),
        nothing,
        TableEligibility(),
    )


def _completed(problem: Problem, placement: Placement) -> Placement:
    """The placement with the share of the node that the demand asks for."""
    claims = problem.demands[placement.demand].claims
    own = (
        ((Grant(0, 0, problem.nodes[placement.node].pools[-1].devices[0]),),)
        if claims[0].is_synthetic
        else ()
    )
    return replace(placement, grants=(*own, *placement.grants))
