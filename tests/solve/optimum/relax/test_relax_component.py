"""What relaxations prove of a part, however it is solved, and what is read from its costs for that."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import weighted
from dralloc.objects.choices import Goal, Thresholds
from dralloc.problem import Problem, indices
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.objective import (
    DemandSubset,
    after_weight,
    placed_weight,
)
from dralloc.solve.optimum.relax.component import known_of, take_over
from dralloc.solve.optimum.relax.levels import levels_of
from dralloc.solve.optimum.stage import Split, Stage, Surveys
from dralloc.solve.optimum.standing import Standing
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder


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


def test_a_level_is_in_one_tier() -> None:
    """The last demand is worth less than each other, but more than the difference of these."""
    builder = ProblemBuilder()
    for weight in (2**40 + 1, 2**40, 3):
        builder.pod(builder.claim(AlternativeSpec()), weight=weight)
    problem = builder.problem()
    everything = DemandSubset(problem, indices(problem.demands))
    component = Component(everything, placed_weight(problem), ())
    [level] = levels_of(demand.weight for demand in problem.demands)
    assert len(component.tiers) == 1
    assert known_of(component, [level]) == ([0], [level.total])
