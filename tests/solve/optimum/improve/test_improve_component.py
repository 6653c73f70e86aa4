"""Components that are searched: bounds, while answers are searched for elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from dralloc.objects.choices import Goal
from dralloc.objects.errors import ModelError
from dralloc.problem import DemandIndex, indices
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum.candidates import CandidateSite
from dralloc.solve.optimum.improve import SearchedComponent, climbing_on
from dralloc.solve.optimum.objective import (
    DemandSubset,
    after_weight,
    placed_weight,
)
from dralloc.solve.optimum.relax import Bound
from dralloc.solve.optimum.stopping import Stop
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    rack_with_a_waiting_gang,
)


def no_sites(
    demands: Sequence[DemandIndex], stop: Stop
) -> dict[DemandIndex, tuple[CandidateSite, ...]]:
    del demands, stop
    return {}


def test_bounds_that_are_proven_meanwhile_count_afterwards() -> None:
    problem = rack_with_a_waiting_gang()
    component = SearchedComponent(
        DemandSubset(problem, indices(problem.demands)),
        placed_weight(problem),
        (),
        no_sites,
    )
    # There is a ladder, and nobody had time to climb.
    component.climb(Stop.after(0))
    before = component.relaxation
    with climbing_on([component], Stop()):
        while not component.is_at_the_top:
            time.sleep(0.01)
        meanwhile = component.relaxation
    assert (before, meanwhile) == ("", "")
    assert component.relaxation
    assert component.appraisal is not None


def test_a_relaxation_that_hopes_for_more_in_one_tier_says_nothing_about_later_ones() -> (
    None
):
    """Three demands want one device: it is proven that two wait, where a relaxation hopes that only one does."""
    builder = ProblemBuilder()
    builder.device()
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    component = SearchedComponent(
        DemandSubset(problem, indices(problem.demands)),
        (*placed_weight(problem), *after_weight(Goal.NONE)),
        first_fit(problem).placements,
        no_sites,
    )
    component.bounds[0] = component.cost(0)
    assert component.cost(0) == 2
    component.relax((1, 7))
    assert component.bounds == [2, 0]
    component.relax((2, 7))
    assert component.bounds == [2, 7]


def test_a_failure_while_climbing_is_not_lost() -> None:
    class Failing(SearchedComponent):
        def more_bounds(
            self, stop: Stop, least_gain: float = 0.0
        ) -> Iterator[Bound]:
            del stop, least_gain
            raise ModelError("amounts are too large")

    problem = rack_with_a_waiting_gang()
    component = Failing(
        DemandSubset(problem, indices(problem.demands)),
        placed_weight(problem),
        (),
        no_sites,
    )
    with pytest.raises(ModelError), climbing_on([component], Stop()):
        pass
