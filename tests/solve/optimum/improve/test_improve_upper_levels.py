"""Demands of the highest levels alone: what is proven of them holds for all, and their answer is part of one to all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import PROBLEMS
from dralloc.check.problem import violations
from dralloc.objects.choices import Options
from dralloc.problem import Problem
from dralloc.problem.solution import Placement, Solution
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.improve import SearchedComponent
from dralloc.solve.optimum.improve import component as searched_component
from dralloc.solve.optimum.improve.upper_levels import UpperLevels
from dralloc.solve.optimum.objective import (
    DemandSubset,
    placed_weight,
    within_caps,
)
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

THOROUGH = settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

ANY_SIZE = 10**9


@st.composite
def in_levels(draw: st.DrawFn) -> Problem:
    """Draw a problem with demands on three levels, each worth more than all below it."""
    problem: Problem = draw(PROBLEMS)
    factor = 1 + len(problem.demands)
    weights = st.sampled_from((1, factor, factor * factor))
    demands = [
        replace(demand, weight=draw(weights)) for demand in problem.demands
    ]
    return replace(problem, demands=tuple(demands))


def everything(problem: Problem) -> DemandSubset:
    """All demands that could go anywhere."""
    sites = survey(problem).sites
    return DemandSubset(problem, sorted(sites), sites)


def component_of(
    problem: Problem, placements: Sequence[Placement] = ()
) -> SearchedComponent:
    def known_sites(*_: object) -> dict[object, object]:
        raise AssertionError

    return SearchedComponent(
        everything(problem), placed_weight(problem), placements, known_sites
    )


def solved_levels(
    problem: Problem, placements: Sequence[Placement] = ()
) -> list[Component]:
    component = component_of(problem, placements)
    levels = UpperLevels(component.subset, component.tiers, ANY_SIZE)
    return list(levels.solved(component, Options(), Stop()))


@THOROUGH
@given(in_levels())
def test_what_is_proven_of_the_highest_levels_holds_for_all(
    problem: Problem,
) -> None:
    optimum = solve(problem, Options(per_device=True)).placements
    weight = placed_weight(problem)[0]
    for component in solved_levels(problem):
        assert is_proven(component, 0)
        members = set(component.subset.demands)
        own = [
            placement for placement in optimum if placement.demand in members
        ]
        assert component.bounds[0] <= weight.cost(component.subset, own)


@THOROUGH
@given(in_levels())
def test_their_answer_is_part_of_an_answer_to_all(problem: Problem) -> None:
    start = within_caps(problem, first_fit(problem).placements)
    levels = UpperLevels(everything(problem), placed_weight(problem), ANY_SIZE)
    weight = placed_weight(problem)[0]
    for component in levels.solved(component_of(problem), Options(), Stop()):
        answer = levels.answer_with(component, start)
        if answer is not None:
            assert violations(problem, Solution(tuple(answer))) == []
            whole = everything(problem)
            assert weight.cost(whole, answer) < weight.cost(whole, start)


@THOROUGH
@given(in_levels())
def test_the_optimum_is_proven_where_they_come_first(problem: Problem) -> None:
    """The first look at the exact model is left out, which decides small problems by itself."""
    optimum = solve(problem, Options(per_device=True)).tiers[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searched_component, "_FIRST_PART", 0.0)
        start = within_caps(problem, first_fit(problem).placements)
        component = component_of(problem, start)
        component.improve(0, Options(jobs=2), Stop.after(60.0), None)
    assert violations(problem, Solution(component.placements)) == []
    assert is_proven(component, 0)
    tier = component.tiers[0]
    assert tier.weights is not None
    placed = component.subset.weight(tier.weights) - component.cost(0)
    assert placed * tier.weights.unit == optimum.value


def two_levels() -> Problem:
    """One device of 10: first fit gives it to a pod of the lower level that asks for 6, so that one of 8 waits."""
    builder = ProblemBuilder(nodes=2)
    for node in range(2):
        builder.device(node, capacity={"memory": 10})
    for memory, weight in ((6, 1), (6, 1), (8, 100), (4, 1)):
        claim = builder.claim(AlternativeSpec(capacity={"memory": memory}))
        builder.pod(claim, weight=weight)
    return builder.problem()


def test_others_stay_where_there_is_room_beside_an_answer() -> None:
    problem = two_levels()
    start = first_fit(problem).placements
    assert [placement.demand for placement in start] == [0, 1, 3]
    component = component_of(problem, start)
    levels = UpperLevels(component.subset, component.tiers, ANY_SIZE)
    [upper] = levels.solved(component, Options(), Stop())
    answer = levels.answer_with(upper, start)
    assert answer is not None
    assert len(answer) == 2 + (upper.placements[0].node == 1)
    assert upper.placements[0] in answer


def test_levels_that_are_decided_are_not_solved() -> None:
    problem = two_levels()
    start = solve(problem, Options(per_device=True)).placements
    assert solved_levels(problem, start) == []


def test_levels_that_are_too_large_are_left_out() -> None:
    subset = everything(two_levels())
    tiers = placed_weight(subset.problem)
    assert UpperLevels(subset, tiers, 1).is_empty
    assert not UpperLevels(subset, tiers, 2).is_empty
