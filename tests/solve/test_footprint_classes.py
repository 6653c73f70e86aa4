"""Devices that take something of their nodes (KEP-5517), over classes: what each device says is the referee."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from dralloc.check import check
from dralloc.objects.choices import Options, Thresholds
from dralloc.objects.names import PoolID
from dralloc.objects.quantity import NANOS
from dralloc.problem import (
    NodeFootprint,
    NodeIndex,
    PoolAccess,
    PoolState,
    Problem,
    numbered,
)
from dralloc.problem.node_claims import NodeStock, node_resource
from dralloc.problem.node_footprints import PodUse
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from examples import examples
from pod_strategies import BoundPods, bound_pods
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

TAKING = bound_pods(max_pods=5, max_rules=0, footprints=st.just(True))
PACKED = Options(thresholds=Thresholds(pattern_effort=0, listed_patterns=0))


def worth(problem: Problem, options: Options) -> list[int]:
    solution = solve(problem, options)
    check(problem, solution)
    assert all(tier.proven for tier in solution.tiers)
    return [tier.value for tier in solution.tiers]


@settings(max_examples=examples(300))
@given(TAKING)
def test_counts_and_packings_are_worth_what_devices_are(
    pods: BoundPods,
) -> None:
    expected = worth(pods.whole, Options(per_device=True))
    assert worth(pods.whole, Options()) == expected
    assert worth(pods.whole, PACKED) == expected


def with_invalid_pools(
    problem: Problem, nodes: Collection[NodeIndex]
) -> Problem:
    """The problem in which these nodes have an invalid pool beside their own."""
    invalid = PoolAccess(PoolID("driver", "invalid"), PoolState.INVALID, ())
    return replace(
        problem,
        nodes=tuple(
            replace(node, pools=(*node.pools, invalid))
            if node_index in nodes
            else node
            for node_index, node in numbered(problem.nodes)
        ),
    )


@settings(max_examples=examples(200))
@given(TAKING, st.frozensets(st.integers(0, 3).map(NodeIndex)))
def test_first_fit_does_not_try_again_where_all_devices_take_the_same(
    pods: BoundPods, invalid: frozenset[NodeIndex]
) -> None:
    problem = with_invalid_pools(pods.whole, invalid)
    quick, plain = first_fit(problem), first_fit(problem, pruning=False)
    assert quick.placements == plain.placements
    messages = [
        {demand: str(error) for demand, error in answer.errors.items()}
        for answer in (quick, plain)
    ]
    assert messages[0] == messages[1]


def test_an_invalid_pool_is_not_to_blame_for_what_a_node_lacks() -> None:
    """The device is found, and takes more CPU than there is: the invalid pool beside it is no reason."""
    builder = ProblemBuilder()
    builder.device()
    builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    [device] = problem.devices
    part = NodeFootprint("cpu", "", 0, 2 * NANOS, 0)
    problem = replace(problem, devices=(replace(device, footprint=(part,)),))
    pods = BoundPods(
        problem,
        [NodeStock({node_resource("cpu"): NANOS}, {})],
        {},
        {0: PodUse({}, {})},
    )
    whole = with_invalid_pools(pods.whole, {NodeIndex(0)})
    assert first_fit(whole).errors == {}
    assert first_fit(whole, pruning=False).errors == {}
