"""Packings that are built greedily."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from crowd_strategies import crowds
from dralloc.objects.choices import Thresholds
from dralloc.problem import Problem
from dralloc.solve.optimum import Options
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.division import divide
from dralloc.solve.optimum.packing.construction import ConstructiveHeuristic
from dralloc.solve.optimum.packing.models import guide
from dralloc.solve.optimum.stopping import Cancelled, Stop, Stopped
from examples import examples

PACKED = Options(thresholds=Thresholds(pattern_effort=0))
"""No bin's patterns are listed, as if they were too many."""


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(crowds())
def test_a_packing_that_is_under_way_stops(problem: Problem) -> None:
    packed = divide(
        problem, lambda demands: survey(problem, demands), PACKED
    ).packed
    assume(len(packed) == 1 and len(packed[0].options) > 1)
    [instance] = packed
    heuristic = ConstructiveHeuristic(instance, guide(instance, {}))
    answers = iter([False])
    stop = Stop(cancelled=Cancelled(lambda: next(answers, True)))
    with pytest.raises(Stopped):
        heuristic.construct({}, np.random.default_rng(0), 0.0, stop)
