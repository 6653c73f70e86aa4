"""Bounds in the meantime: of whatever is not easy, however it is solved."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dralloc.objects.choices import Thresholds
from dralloc.problem import Problem, indices
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, parallel, solve
from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.classes.component import CountedComponent
from dralloc.solve.optimum.climbing import climbing_on
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.objective import DemandSubset, placed_weight
from dralloc.solve.optimum.packing.component import PackedComponent
from dralloc.solve.optimum.stopping import Stop
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder
from solve.optimum.relax.test_relax_component import parts_of

LIMIT = Options(
    jobs=2, time_limit=2.0, thresholds=Thresholds(components=1, seconds=0)
)


def shared_by_priorities() -> Problem:
    """Two devices have room for two demands with priority each, and then for none without."""
    builder = ProblemBuilder(nodes=2)
    gpus = [
        builder.device(node, capacity={"memory": 10, "cores": 9})
        for node in range(2)
    ]
    for weight, amount in ((100, 5), (1, 4)):
        for _ in range(6):
            amounts = {"memory": amount, "cores": 4}
            share = AlternativeSpec(only=gpus, capacity=amounts)
            builder.pod(builder.claim(share), weight=weight)
    return builder.problem()


def work_until_the_end(
    batches: Sequence[Any], *_: object
) -> Iterator[tuple[int, Any]]:
    """Processes that have come to nothing when the time is over."""
    for number, batch in enumerate(batches):
        time.sleep(max(0.0, batch.end - time.time()))
        yield number, batch.run()


@pytest.mark.parametrize("packed", [False, True])
def test_what_comes_back_without_a_proof_has_a_bound(
    packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "run_all", work_until_the_end)
    problem = shared_by_priorities()
    [part] = parts_of(problem, packed).components
    assert isinstance(part, PackedComponent if packed else CountedComponent)
    effort = 0 if packed else Thresholds().pattern_effort
    thresholds = replace(LIMIT.thresholds, pattern_effort=effort)
    solution = solve(problem, replace(LIMIT, thresholds=thresholds))
    assert "components" in solution.timings
    assert solution.most_placed == 4


def test_the_referee_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "run_all", work_until_the_end)
    problem = shared_by_priorities()
    solution = solve(problem, replace(LIMIT, per_device=True))
    assert "components" in solution.timings
    assert solution.most_placed == len(problem.demands)


def test_a_later_tier_that_is_not_proven_is_relaxed_too() -> None:
    """Sums are too large for one tier of the weight; of the first one everything is placed."""
    builder = ProblemBuilder()
    builder.device()
    for weight in (2**40, 3, 2, 2):
        builder.pod(builder.claim(AlternativeSpec()), weight=weight)
    problem = builder.problem()
    component = Component(
        DemandSubset(problem, indices(problem.demands)),
        placed_weight(problem),
        first_fit(problem).placements,
    )
    assert len(component.tiers) == 2
    assert is_proven(component, 0)
    stop = Stop.after(5)
    with climbing_on([component], stop):
        while not (component.relaxation.is_at_the_top or stop.reached()):
            time.sleep(0.01)
    assert is_proven(component, 1)
