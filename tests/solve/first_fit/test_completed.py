"""First fit beside an earlier answer: who has a place keeps it, the others come after."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import weighted
from dralloc.check import check
from dralloc.problem import Problem, numbered
from dralloc.problem.solution import translated
from dralloc.solve.first_fit import completed, first_fit
from examples import examples

THOROUGH = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@THOROUGH
@given(weighted())
def test_beside_nothing_it_is_first_fit(problem: Problem) -> None:
    assert completed(problem, ()).placements == first_fit(problem).placements


@THOROUGH
@given(weighted(), st.randoms(use_true_random=False))
def test_what_is_left_of_an_answer_is_completed(
    problem: Problem, random: Random
) -> None:
    earlier = first_fit(problem).placements
    present = [placement for placement in earlier if random.random() < 0.7]
    alone = {
        placement.demand
        for placement in present
        if not problem.demands[placement.demand].placed_with
        and not problem.demands[placement.demand].roles
        and not problem.has_scopes
    }
    answer = completed(problem, present)
    check(replace(problem, budgets=()), answer)
    shared = {
        claim.key
        for place, demand in numbered(problem.demands)
        for claim in demand.claims
        if any(
            claim.key == further.key
            for number, mate in numbered(problem.demands)
            if number != place
            for further in mate.claims
        )
    }
    for placement in present:
        claims = problem.demands[placement.demand].claims
        if placement.demand in alone and shared.isdisjoint(
            claim.key for claim in claims
        ):
            assert placement in answer.placements


@THOROUGH
@given(weighted(), st.randoms(use_true_random=False))
def test_numbers_of_another_problem_are_found_by_names(
    problem: Problem, random: Random
) -> None:
    demands = list(problem.demands)
    random.shuffle(demands)
    other = replace(problem, demands=tuple(demand for demand in demands[1:]))
    placements = first_fit(problem).placements
    moved = list(translated(problem, placements, other))
    names = {
        (problem.demands[placement.demand].key, placement.grants)
        for placement in placements
    }
    assert {
        (other.demands[placement.demand].key, placement.grants)
        for placement in moved
    } <= names
    assert len(moved) >= len(placements) - 1
