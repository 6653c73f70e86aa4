"""Scaled demand: how many, which, and in what order."""

from __future__ import annotations

from collections import Counter as Tally

from hypothesis import given, settings
from hypothesis import strategies as st

from dralloc.check import check
from dralloc.lab.study import scaled
from dralloc.problem import Problem
from dralloc.solve.first_fit import first_fit
from examples import examples
from strategies import problems

shares = st.sampled_from([0.0, 0.3, 0.5, 1.0, 1.25, 2.0, 2.6])


@settings(max_examples=examples(25))
@given(problems(), shares, st.integers(0, 3))
def test_numbers_names_and_rules(
    problem: Problem, share: float, seed: int
) -> None:
    found = scaled(problem, share, seed)
    gang = sum(demand.gang != "" for demand in problem.demands)
    assert (
        0
        <= round(share * len(problem.demands)) - len(found.demands)
        <= max(gang - 1, 0)
    )
    assert len({demand.key for demand in found.demands}) == len(found.demands)
    for name, size in Tally(
        demand.gang for demand in found.demands if demand.gang
    ).items():
        assert name
        assert size == gang
    check(found, first_fit(found))


@settings(max_examples=examples(25))
@given(problems(), shares, st.integers(0, 3))
def test_copies_ask_for_the_same(
    problem: Problem, share: float, seed: int
) -> None:
    times = Tally(
        demand.key.name.split("+")[0]
        for demand in scaled(problem, share, seed).demands
    )
    assert all(
        share - 1 < times[demand.key.name] < share + 1
        for demand in problem.demands
    )
    assert (
        scaled(problem, share, seed).demands
        == scaled(problem, share, seed).demands
    )


@settings(max_examples=examples(25))
@given(problems())
def test_once_is_the_problem_itself(problem: Problem) -> None:
    assert scaled(problem, 1.0, 5).demands == problem.demands


@settings(max_examples=examples(25))
@given(problems(), st.integers(0, 3))
def test_what_is_left_keeps_its_order(problem: Problem, seed: int) -> None:
    kept = scaled(problem, 0.6, seed).demands
    assert [demand for demand in problem.demands if demand in kept] == list(
        kept
    )
