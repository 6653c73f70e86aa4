"""Demands that only look alike do not stand in for each other: what others leave them must serve both."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from dralloc.problem import Problem
from dralloc.problem.solution import Status
from dralloc.solve.optimum import Options, solve
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

CAPACITY = {"memory": 10}


def asking(*specs: AlternativeSpec, devices: int = 2) -> Problem:
    """One node with devices that all share, and a pod with a claim for each of these."""
    builder = ProblemBuilder()
    for _ in range(devices):
        builder.device(0, capacity=CAPACITY)
    for spec in specs:
        builder.pod(builder.claim(spec))
    return builder.problem()


def assert_best(problem: Problem) -> None:
    """Both the search and the model of every device find and prove what is best."""
    best = brute_force.best(problem)
    for per_device in (False, True):
        solution = solve(problem, Options(per_device=per_device))
        assert solution.status is Status.OPTIMAL
        assert tuple(tier.value for tier in solution.tiers) == best


FILLER = AlternativeSpec(only=[0], capacity={"memory": 6})
TWO = AlternativeSpec(count=2, capacity={"memory": 6})
ALL = AlternativeSpec(count=None, capacity={"memory": 6})


@pytest.mark.parametrize("specs", [(FILLER, TWO, ALL), (FILLER, ALL, TWO)])
def test_all_can_do_with_less_than_as_many_as_there_are(
    specs: tuple[AlternativeSpec, ...],
) -> None:
    assert_best(asking(*specs))


@pytest.mark.parametrize("refusing_first", [True, False])
def test_all_that_match_are_not_all_that_are_admitted(
    refusing_first: bool,
) -> None:
    # The first matches the second device, too, which has no room for it: only if others fill that is it served.
    refusing = AlternativeSpec(count=None, refused=[1], capacity={"memory": 6})
    modest = AlternativeSpec(count=None, only=[0], capacity={"memory": 6})
    specs = [refusing, modest]
    assert_best(asking(*(specs if refusing_first else specs[::-1])))


@st.composite
def lookalikes(draw: st.DrawFn) -> Problem:
    """Draw pods that ask for one, some or all of a few shared devices, mostly for as much of each."""
    devices = draw(st.integers(1, 3))
    some_devices = st.sets(st.integers(0, devices - 1), min_size=1)
    specs = []
    for _ in range(draw(st.integers(2, 4))):
        is_choosy = draw(st.booleans())
        specs.append(
            AlternativeSpec(
                count=draw(st.sampled_from((1, devices, None))),
                only=draw(some_devices) if is_choosy else None,
                refused=draw(st.sampled_from(([], [], [devices - 1]))),
                capacity={"memory": draw(st.sampled_from((6, 6, 3)))},
            )
        )
    return asking(*specs, devices=devices)


@settings(max_examples=examples(500), deadline=None)
@given(lookalikes())
def test_lookalikes_are_told_apart(problem: Problem) -> None:
    assert_best(problem)
