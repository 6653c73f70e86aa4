"""Devices that take something of their nodes (KEP-5517), over classes: what each device says is the referee."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dralloc.check import check
from dralloc.objects.choices import Options, Thresholds
from dralloc.problem import Problem
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from examples import examples
from pod_strategies import BoundPods, bound_pods

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


@settings(max_examples=examples(100))
@given(TAKING)
def test_first_fit_does_not_try_again_where_all_devices_take_the_same(
    pods: BoundPods,
) -> None:
    assert (
        first_fit(pods.whole).placements
        == first_fit(pods.whole, pruning=False).placements
    )
