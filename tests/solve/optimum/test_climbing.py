"""Bounds in the meantime: of whatever is not easy, however it is solved."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import weighted
from dralloc.objects.choices import Goal, Thresholds
from dralloc.problem import Problem, indices
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, parallel, solve
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.objective import (
    DemandSubset,
    after_weight,
    placed_weight,
)
from dralloc.solve.optimum.relax.component import known_of, take_over
from dralloc.solve.optimum.relax.prices import levels_of
from dralloc.solve.optimum.stage import Split, Stage, Surveys
from dralloc.solve.optimum.standing import Standing
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

LIMIT = Options(
    jobs=2, time_limit=2.0, thresholds=Thresholds(components=1, seconds=0)
)


def shared_by_priorities() -> Problem:
    """Two devices have room for two demands with priority each, and then for none without."""
    builder = ProblemBuilder(nodes=2)
    gpus = [builder.device(node, capacity={"memory": 10}) for node in range(2)]
    for weight, amount in ((100, 5), (1, 4)):
        for _ in range(6):
            share = AlternativeSpec(only=gpus, capacity={"memory": amount})
            builder.pod(builder.claim(share), weight=weight)
    return builder.problem()


def work_until_the_end(
    batches: Sequence[Any], *_: object
) -> Iterator[tuple[int, Any]]:
    """Processes that have come to nothing when the time is over."""
    for number, batch in enumerate(batches):
        time.sleep(max(0.0, batch.end - time.time()))
        yield number, batch.run()


@pytest.mark.parametrize("effort", [0, 10_000])
def test_what_comes_back_without_a_proof_has_a_bound(
    effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "run_all", work_until_the_end)
    thresholds = replace(LIMIT.thresholds, pattern_effort=effort)
    problem = shared_by_priorities()
    solution = solve(problem, replace(LIMIT, thresholds=thresholds))
    assert "components" in solution.timings
    assert solution.most_placed == 4


def test_the_referee_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "run_all", work_until_the_end)
    problem = shared_by_priorities()
    solution = solve(problem, replace(LIMIT, per_device=True))
    assert "components" in solution.timings
    assert solution.most_placed == len(problem.demands)


def parts_of(problem: Problem, packed: bool) -> Standing:
    """The parts of a problem, which start from first fit."""
    effort = 0 if packed else Thresholds().pattern_effort
    options = Options(thresholds=Thresholds(pattern_effort=effort))
    weight = placed_weight(problem)
    tiers = (*weight, *after_weight(Goal.NONE))
    standing = Standing(problem, weight, tiers, first_fit(problem).placements)
    split = Split(
        Stage(problem, tiers, len(tiers)),
        standing.components,
        options,
        Surveys(options),
        Stop(),
    )
    split.run({})
    standing.begin(split.components, len(tiers))
    return standing


@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(weighted(), st.booleans())
def test_the_optimum_is_within_the_bounds_of_all_parts(
    problem: Problem, packed: bool
) -> None:
    standing = parts_of(problem, packed)
    for part in standing.components:
        for bound in part.relaxation.climb_and_look(part, Stop(), 0.0):
            take_over(part, bound)
    optimum = solve(problem)
    weights = Counter(
        problem.demands[placement.demand].weight
        for placement in optimum.placements
    )
    known, *_ = standing.tiers()
    assert known.bound >= optimum.tiers[0].value
    assert standing.most_placed() >= weights.total()
    for weight, limit in known.limits:
        assert limit >= weights[weight]


@given(weighted())
def test_what_an_answer_has_of_each_level_is_in_its_costs(
    problem: Problem,
) -> None:
    placements = first_fit(problem).placements
    everything = DemandSubset(problem, indices(problem.demands))
    component = Component(everything, placed_weight(problem), placements)
    levels = levels_of(demand.weight for demand in problem.demands)
    reached, _ = known_of(component, levels)
    weights = [
        problem.demands[placement.demand].weight for placement in placements
    ]
    assert reached == [sum(map(level.of, weights)) for level in levels]


def test_of_a_level_in_two_tiers_nothing_is_known() -> None:
    """The last demand is worth less than each other, but more than the difference of these."""
    builder = ProblemBuilder()
    for weight in (2**40 + 1, 2**40, 3):
        builder.pod(builder.claim(AlternativeSpec()), weight=weight)
    problem = builder.problem()
    everything = DemandSubset(problem, indices(problem.demands))
    component = Component(everything, placed_weight(problem), ())
    [level] = levels_of(demand.weight for demand in problem.demands)
    assert len(component.tiers) == 2
    assert known_of(component, [level]) == ([0], [level.total])
