"""Demands of the highest levels alone: what is proven of them holds for all, and their answer is part of one to all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import PROBLEMS
from dralloc.check.problem import violations
from dralloc.objects.choices import Options
from dralloc.objects.user_rules import Budget
from dralloc.problem import Claim, DemandIndex, Problem
from dralloc.problem.inter_pod import Affinity, AntiAffinity, Role
from dralloc.problem.solution import Placement, Solution
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.improve import SearchedComponent, upper_levels
from dralloc.solve.optimum.improve import component as searched_component
from dralloc.solve.optimum.improve import nodes_first as by_nodes
from dralloc.solve.optimum.improve.upper_levels import UpperLevels
from dralloc.solve.optimum.objective import (
    DemandSubset,
    placed_weight,
)
from dralloc.solve.optimum.stopping import Stop, Stopped
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
    subset = everything(problem)
    return SearchedComponent(
        subset, placed_weight(problem), placements, lambda *_: subset.sites
    )


def solved_levels(problem: Problem, largest: int = ANY_SIZE) -> list[Component]:
    component = component_of(problem)
    levels = UpperLevels(component.subset, component.tiers, largest)
    return list(levels.solved(component, Options(), Stop()))


@THOROUGH
@given(in_levels(), st.sampled_from((ANY_SIZE, 0)))
def test_what_is_proven_of_the_highest_levels_holds_for_all(
    problem: Problem, largest: int
) -> None:
    """Also of those that are too large for the exact model, and are solved by nodes."""
    optimum = solve(problem, Options(per_device=True)).placements
    weight = placed_weight(problem)[0]
    for component in solved_levels(problem, largest):
        if largest:
            assert is_proven(component, 0)
        members = set(component.subset.demands)
        own = [
            placement for placement in optimum if placement.demand in members
        ]
        assert component.bounds[0] <= weight.cost(component.subset, own)


@THOROUGH
@given(in_levels(), st.sampled_from((ANY_SIZE, 0)))
def test_their_answer_is_part_of_an_answer_to_all(
    problem: Problem, largest: int
) -> None:
    """That is not better where all that they gain is worth less than who has no room beside them."""
    start = within_caps(problem, first_fit(problem).placements)
    levels = UpperLevels(everything(problem), placed_weight(problem), largest)
    for component in levels.solved(component_of(problem), Options(), Stop()):
        answer = levels.answer_with(component, start)
        if answer is not None:
            assert violations(problem, Solution(tuple(answer))) == []
            assert set(component.placements) <= set(answer)


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


def two_levels() -> ProblemBuilder:
    """Two devices of 10. First fit gives both to pods of the lower level, so that those of the higher one wait.

    There is room for one of the higher ones, of 8 each, on either device.
    """
    builder = ProblemBuilder(nodes=1)
    for _ in range(2):
        builder.device(capacity={"memory": 10})
    for memory, weight in ((6, 1), (6, 1), (8, 100), (8, 100), (8, 100)):
        builder.pod(asking(builder, memory), weight=weight)
    return builder


def asking(builder: ProblemBuilder, memory: int) -> Claim:
    return builder.claim(AlternativeSpec(capacity={"memory": memory}))


def levels_of_problem(problem: Problem, largest: int = ANY_SIZE) -> UpperLevels:
    return UpperLevels(everything(problem), placed_weight(problem), largest)


def demands_of_levels(problem: Problem) -> list[Sequence[DemandIndex]]:
    """Those of each component, where nothing is solved."""
    demands: list[Sequence[DemandIndex]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Component, "improve", lambda *_: None)
        patch.setattr(upper_levels, "is_proven", lambda *_: True)
        demands += [
            component.subset.demands for component in solved_levels(problem)
        ]
    return demands


def together(problem: Problem, upper: Sequence[int]) -> list[DemandIndex]:
    """Who is placed if the optimum of some demands is put in place of what first fit gives them."""
    levels = levels_of_problem(problem)
    [component] = levels.solved(component_of(problem), Options(), Stop())
    assert list(component.subset.demands) == list(upper)
    start = within_caps(problem, first_fit(problem).placements)
    answer = levels.answer_with(component, start)
    assert answer is not None
    assert violations(problem, Solution(tuple(answer))) == []
    return [placement.demand for placement in answer]


def test_searching_takes_over_what_is_proven_of_the_highest_level(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here nothing else helps: neither a bound, nor neighbourhoods, nor a model of all demands."""
    problem = two_levels().problem()
    component = component_of(problem, first_fit(problem).placements[:2])

    def give_up(*_: object) -> NoReturn:
        raise Stopped

    again: list[Sequence[Placement]] = []
    component.take_starts_again = lambda *_: again.append(component.placements)
    monkeypatch.setattr(SearchedComponent, "_decide", give_up)
    monkeypatch.setattr(SearchedComponent, "_by_nodes", lambda *_, **__: None)
    monkeypatch.setattr(SearchedComponent, "climb", lambda *_: None)
    monkeypatch.setattr(SearchedComponent, "_search", lambda *_, **__: None)
    component.improve(0, Options(jobs=2), Stop.after(60.0), None)
    # Two of three of the higher level, of 100 each.
    assert component.cost(0) == 102
    assert component.bounds[0] == 100
    assert again == [component.placements]


def test_who_counts_for_a_rule_of_a_demand_is_kept_with_it() -> None:
    """A pod wants to be near one of the lower level; another one is of no use to it."""
    builder = ProblemBuilder()
    for weight in (1, 1, 100):
        builder.device()
        builder.pod(builder.claim(AlternativeSpec()), weight=weight)
    problem = builder.problem()
    rule = Affinity(({"node-0": "node-0"},), (frozenset(),))
    roles = {0: Role(rule, False, True), 2: Role(rule, True, False)}
    demands = tuple(
        replace(demand, roles=(roles[demand_index],))
        if demand_index in roles
        else demand
        for demand_index, demand in enumerate(problem.demands)
    )
    problem = replace(problem, demands=demands)
    assert demands_of_levels(problem) == [[0, 2]]


def test_who_passes_over_devices_is_left_out_with_all_who_need_him() -> None:
    """A claim for all may be placed because others fill a device; one for devices that nobody shares may not."""
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 10})
    builder.device()
    memory = {"memory": 6}
    specs = (
        (AlternativeSpec(only=[0], capacity=memory), 1),
        (AlternativeSpec(None, only=[0], capacity=memory), 100),
        (AlternativeSpec(only=[1]), 100),
        (AlternativeSpec(None, only=[1]), 100),
        (AlternativeSpec(only=[1]), 100),
    )
    for spec, weight in specs:
        builder.pod(builder.claim(spec), weight=weight)
    problem = builder.problem()
    assert demands_of_levels(problem) == [[2, 3, 4]]
    # The last one wants to be near the first one that asks for all.
    rule = Affinity(({"node-0": "node-0"},), (frozenset(),))
    roles = {1: Role(rule, False, True), 4: Role(rule, True, False)}
    demands = tuple(
        replace(demand, roles=(roles[index],)) if index in roles else demand
        for index, demand in enumerate(problem.demands)
    )
    problem = replace(problem, demands=demands)
    assert demands_of_levels(problem) == [[2, 3]]


def test_levels_that_are_decided_are_not_solved() -> None:
    problem = two_levels().problem()
    start = solve(problem, Options(per_device=True)).placements
    component = component_of(problem, start)
    component.bounds[0] = component.cost(0)
    levels = levels_of_problem(problem)
    assert list(levels.solved(component, Options(), Stop())) == []


def test_after_a_level_that_is_not_decided_no_more_follow() -> None:
    builder = two_levels()
    builder.pod(asking(builder, 8), weight=10_000)
    problem = builder.problem()
    assert len(demands_of_levels(problem)) == 2
    levels = levels_of_problem(problem)
    no_time = Stop.after(0.0)
    solved = levels.solved(component_of(problem), Options(), no_time)
    assert len(list(solved)) == 1


def test_levels_that_are_too_large_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They have three sites, and six candidates."""
    problem = two_levels().problem()
    monkeypatch.setattr(by_nodes, "_MOST_SITES", 2)
    assert levels_of_problem(problem, largest=5).is_empty
    assert not levels_of_problem(problem, largest=6).is_empty
    monkeypatch.setattr(by_nodes, "_MOST_SITES", 3)
    assert not levels_of_problem(problem, largest=5).is_empty


def test_levels_that_are_too_large_for_the_exact_model_are_solved_by_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Component, "improve", lambda *_: None)
    problem = two_levels().problem()
    [component] = solved_levels(problem, largest=5)
    assert component.bounds[0] == 100


def test_of_others_stay_those_who_have_room() -> None:
    """A gang leaves as a whole: one of it has room, and then somebody else has."""
    builder = ProblemBuilder()
    for _ in range(2):
        builder.device(capacity={"memory": 10})
    on_first, on_second = (
        AlternativeSpec(only=[device], capacity={"memory": 5})
        for device in range(2)
    )
    for spec in (on_second, on_first):
        builder.pod(builder.claim(spec), gang="pair")
    builder.pod(builder.claim(on_second))
    builder.pod(
        builder.claim(
            AlternativeSpec(only=[0], capacity={"memory": 8}), on_second
        ),
        weight=100,
    )
    problem = builder.problem()
    start = first_fit(problem).placements
    assert [placement.demand for placement in start] == [0, 1, 2]
    assert together(problem, upper=[3]) == [2, 3]


def test_who_passes_over_devices_or_knows_others_leaves() -> None:
    builder = ProblemBuilder()
    for _ in range(2):
        builder.device(capacity={"memory": 10})
    memory = {"memory": 1}
    all_devices = AlternativeSpec(None, only=[1], capacity=memory)
    # Of the first device too little is left beside who fills it.
    passing_over = AlternativeSpec(None, capacity={"memory": 6})
    one_device = AlternativeSpec(only=[1], capacity=memory)
    watching = AlternativeSpec(only=[1], admin=True, capacity=memory)
    filling = AlternativeSpec(only=[0], capacity={"memory": 5})
    for spec in (
        filling,
        all_devices,
        one_device,
        watching,
        one_device,
        passing_over,
    ):
        builder.pod(builder.claim(spec))
    wanting = AlternativeSpec(only=[0], capacity={"memory": 8})
    builder.pod(builder.claim(wanting), weight=100)
    problem = builder.problem()
    rule = AntiAffinity({})
    demands = list(problem.demands)
    for demand_index in (4, 6):
        role = Role(rule, carries=False, counts=True)
        demands[demand_index] = replace(demands[demand_index], roles=(role,))
    problem = replace(problem, demands=tuple(demands))
    assert len(first_fit(problem).placements) == 6
    assert together(problem, upper=[6]) == [1, 2, 6]


def test_beside_admin_access_nobody_else_is_placed() -> None:
    builder = ProblemBuilder()
    for _ in range(2):
        builder.device(capacity={"memory": 10})
    for device in range(2):
        spec = AlternativeSpec(only=[device], capacity={"memory": 5})
        builder.pod(builder.claim(spec))
    watching = AlternativeSpec(only=[1], admin=True, capacity={"memory": 8})
    taking = AlternativeSpec(only=[0], capacity={"memory": 8})
    builder.pod(builder.claim(taking, watching), weight=100)
    assert together(builder.problem(), upper=[2]) == [2]


def test_an_answer_with_others_keeps_caps() -> None:
    builder = ProblemBuilder()
    for _ in range(2):
        builder.device(capacity={"memory": 10})
    builder.pod(asking(builder, 5))
    builder.pod(asking(builder, 5))
    builder.pod(asking(builder, 8), weight=100)
    budget = Budget("default", "memory", used=0, total=20, most=13)
    problem = replace(builder.problem(), budgets=(budget,))
    assert together(problem, upper=[2]) == [0, 2]
