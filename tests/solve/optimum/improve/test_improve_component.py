"""Components that are searched: bounds, while answers are searched for elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from dralloc.objects.errors import ModelError
from dralloc.problem import DemandIndex, indices
from dralloc.solve.optimum.candidates import CandidateSite
from dralloc.solve.optimum.improve import SearchedComponent, climbing_on
from dralloc.solve.optimum.objective import DemandSubset, placed_weight
from dralloc.solve.optimum.relax import Bound
from dralloc.solve.optimum.stopping import Stop
from solve.optimum.problem_builder import rack_with_a_waiting_gang


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
