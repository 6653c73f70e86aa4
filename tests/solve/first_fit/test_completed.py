"""First fit beside an earlier answer: who has a place keeps it, the others come after."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from any_problem import weighted
from dralloc.check import check
from dralloc.problem import Problem, numbered
from dralloc.problem.solution import Solution, translated
from dralloc.solve.first_fit import completed, first_fit
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

THOROUGH = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def equally_heavy(problem: Problem) -> Problem:
    """The problem in which everybody weighs the same, so that nobody makes room for others."""
    demands = (replace(demand, weight=1) for demand in problem.demands)
    return replace(problem, demands=tuple(demands))


@THOROUGH
@given(weighted())
def test_beside_nothing_it_is_first_fit(problem: Problem) -> None:
    problem = equally_heavy(problem)
    assert completed(problem, ()).placements == first_fit(problem).placements


@THOROUGH
@given(weighted(), st.randoms(use_true_random=False))
def test_what_is_left_of_an_answer_is_completed(
    problem: Problem, random: Random
) -> None:
    problem = equally_heavy(problem)
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
        for demand_index, demand in numbered(problem.demands)
        for claim in demand.claims
        if any(
            claim.key == further.key
            for mate_index, mate in numbered(problem.demands)
            if mate_index != demand_index
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
def test_who_weighs_more_comes_first(problem: Problem, random: Random) -> None:
    """It is worth no less than if nobody made room."""
    earlier = first_fit(problem).placements
    present = [placement for placement in earlier if random.random() < 0.7]
    answer = completed(problem, present)
    check(replace(problem, budgets=()), answer)
    plain = completed(equally_heavy(problem), present)
    event(f"better {worth(problem, answer) > worth(problem, plain)}")
    assert worth(problem, answer) >= worth(problem, plain)


def worth(problem: Problem, answer: Solution) -> int:
    return sum(
        problem.demands[placement.demand].weight
        for placement in answer.placements
    )


def test_the_lighter_make_room() -> None:
    """Both GPUs are taken when somebody heavier comes."""
    builder = ProblemBuilder(nodes=2)
    gpus = [builder.device(node) for node in (0, 1)]
    for weight in (1, 1, 5):
        builder.pod(builder.claim(AlternativeSpec(only=gpus)), weight=weight)
    problem = builder.problem()
    first_two = first_fit(problem).placements
    assert [placement.demand for placement in first_two] == [0, 1]
    answer = completed(problem, first_two)
    assert [placement.demand for placement in answer.placements] == [1, 2]


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
