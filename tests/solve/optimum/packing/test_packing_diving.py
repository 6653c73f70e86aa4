"""Columns that are priced, and where they lead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from crowd_strategies import crowds
from dralloc.objects.choices import Thresholds
from dralloc.problem import Problem
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.division import divide
from dralloc.solve.optimum.packing.component import (
    DivingHeuristic,
    DivingTarget,
)
from dralloc.solve.optimum.packing.construction import (
    Columns,
    ConstructiveHeuristic,
    costs_of,
)
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.packing.models import Pricer, guide
from dralloc.solve.optimum.stopping import Cancelled, Stop, Stopped
from examples import examples

BRIEF = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


PACKED = Options(thresholds=Thresholds(pattern_effort=0))
"""No bin's patterns are listed, as if they were too many."""


def instance_of(problem: Problem) -> PackingInstance:
    """All of the problem, if it is packed as a whole."""
    packed = divide(
        problem, lambda demands: survey(problem, demands), PACKED
    ).packed
    assume(len(packed) == 1 and len(packed[0].demands) == len(problem.demands))
    return packed[0]


@BRIEF
@given(crowds(), st.data())
def test_no_packing_is_worth_more_than_what_is_priced(
    problem: Problem, data: st.DataObject
) -> None:
    instance = instance_of(problem)
    prices = data.draw(
        st.lists(
            st.integers(0, 9),
            min_size=len(instance.options),
            max_size=len(instance.options),
        )
    )
    columns = Columns(instance)
    columns.add(
        ConstructiveHeuristic(instance, guide(instance, {})).construct_densely(
            np.random.default_rng(0), Stop()
        )
    )
    priced = Pricer(instance, Options()).best(
        range(len(columns.of_bin_type)), prices, Stop()
    )
    for best, known in zip(priced, columns.of_bin_type, strict=True):
        assert best
        worth = np.dot(best.counts, prices)
        assert all(
            np.dot(column.counts, prices) <= worth for column in known.values()
        )


@BRIEF
@given(crowds(), st.booleans())
def test_a_packing_that_is_under_way_stops(
    problem: Problem, densely: bool
) -> None:
    instance = instance_of(problem)
    assume(len(instance.options) > 1)
    heuristic, random = (
        ConstructiveHeuristic(instance, guide(instance, {})),
        np.random.default_rng(0),
    )
    answers = iter([False])
    stop = Stop(cancelled=Cancelled(lambda: next(answers, True)))
    with pytest.raises(Stopped):
        heuristic.construct_densely(
            random, stop
        ) if densely else heuristic.construct({}, random, 0.0, stop)


@BRIEF
@given(crowds(), st.data())
def test_any_number_of_jobs_prices_the_same_columns(
    problem: Problem, data: st.DataObject
) -> None:
    instance = instance_of(problem)
    prices = data.draw(
        st.lists(
            st.integers(0, 9),
            min_size=len(instance.options),
            max_size=len(instance.options),
        )
    )
    priced = (
        Pricer(instance, Options(jobs=jobs)).best(
            range(len(instance.bin_types)), prices, Stop()
        )
        for jobs in (1, 3)
    )
    alone, together = (
        [column and column.counts for column in each] for each in priced
    )
    assert alone == together


@BRIEF
@given(crowds())
def test_dives_from_nothing_reach_the_optimum_of_small_problems(
    problem: Problem,
) -> None:
    instance = instance_of(problem)
    weight = sum(demand.weight for demand in problem.demands)
    least = weight - solve(problem, Options(per_device=True)).tiers[0].value
    dive = DivingHeuristic(
        Columns(instance),
        Pricer(instance, Options()),
        DivingTarget((), least, lambda: weight + 1),
    )
    found = [
        costs_of(instance, answer)[0]
        for answer in dive.run(range(len(instance.bin_types)), Stop())
    ]
    assert min(found) == least
