"""First the nodes of demands, then their devices: nothing is lost, and what is proven holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, given, settings

from any_problem import weighted
from dralloc.check.problem import violations
from dralloc.objects.choices import Options
from dralloc.problem import Problem
from dralloc.problem.solution import Placement, Solution
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.improve import SearchedComponent
from dralloc.solve.optimum.improve.nodes_first import nodes_first
from dralloc.solve.optimum.objective import (
    DemandSubset,
    placed_weight,
)
from dralloc.solve.optimum.relax.component import ComponentRelaxation
from dralloc.solve.optimum.stopping import Stop, Stopped
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

THOROUGH = settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def component_of(
    problem: Problem, placements: Sequence[Placement] = ()
) -> SearchedComponent:
    sites = survey(problem).sites
    subset = DemandSubset(problem, sorted(sites), sites)
    component = SearchedComponent(
        subset, placed_weight(problem), placements, lambda *_: sites
    )
    component.climb(Stop(), Stop())
    return component


@THOROUGH
@given(weighted())
def test_the_answer_keeps_all_rules_and_costs_no_more(
    problem: Problem,
) -> None:
    start = within_caps(problem, first_fit(problem).placements)
    component = component_of(problem, start)
    outcome = nodes_first(component, 0, Options(), Stop())
    assert outcome is not None
    assert violations(problem, Solution(tuple(outcome.placements))) == []
    objective = component.tiers[0]
    cost = objective.cost(component.subset, outcome.placements)
    assert cost <= component.cost(0)
    best = solve(problem, Options(per_device=True)).placements
    assert outcome.bound <= objective.cost(component.subset, best)


def with_somebody_in_the_way() -> SearchedComponent:
    """First fit lets somebody in on the node that two others need."""
    builder = ProblemBuilder(nodes=2)
    for node in (0, 0, 1):
        builder.device(node=node)
    builder.pod(builder.claim(AlternativeSpec()))
    for _ in range(2):
        spec = AlternativeSpec(only=[0, 1])
        builder.pod(builder.claim(spec), gang="pair")
    problem = builder.problem()
    start = first_fit(problem).placements
    assert [placement.demand for placement in start] == [0]
    return component_of(problem, start)


def test_who_is_in_the_way_goes_to_another_node() -> None:
    component = with_somebody_in_the_way()
    outcome = nodes_first(component, 0, Options(), Stop())
    assert outcome is not None
    assert outcome.bound == 0
    nodes = [placement.node for placement in outcome.placements]
    assert nodes == [1, 0, 0]


def test_it_needs_no_relaxation_before_it() -> None:
    component = with_somebody_in_the_way()
    component.relaxation = ComponentRelaxation(
        component.subset, component.tiers
    )
    assert nodes_first(component, 0, Options(), Stop.after(0.0)) is None
    outcome = nodes_first(component, 0, Options(), Stop())
    assert outcome is not None
    assert len(outcome.placements) == 3


def test_searching_takes_it_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nothing else helps: neither a bound, nor neighbourhoods, nor the model of all demands."""
    component = with_somebody_in_the_way()
    monkeypatch.setattr(SearchedComponent, "climb", lambda *_: None)
    monkeypatch.setattr(SearchedComponent, "_search", lambda *_, **__: None)
    monkeypatch.setattr(SearchedComponent, "_decide", give_up)
    component.improve(0, Options(jobs=2), Stop.after(60.0), None)
    assert len(component.placements) == 3
    assert is_proven(component, 0)


def give_up(*_: object) -> NoReturn:
    raise Stopped
