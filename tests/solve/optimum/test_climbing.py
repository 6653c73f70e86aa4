"""Bounds in the meantime: of whatever is not easy, however it is solved."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from benchmarks.workloads.mixed import mixed
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Thresholds
from dralloc.objects.errors import ModelError
from dralloc.problem import Problem, indices
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, parallel, solve
from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.classes.component import CountedComponent
from dralloc.solve.optimum.climbing import Climb, bounds_in_turn
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.improve import SearchedComponent
from dralloc.solve.optimum.improve import component as improve_component
from dralloc.solve.optimum.objective import DemandSubset, placed_weight
from dralloc.solve.optimum.packing.component import PackedComponent
from dralloc.solve.optimum.relax import Bound
from dralloc.solve.optimum.relax.component import (
    ComponentRelaxation,
    Relaxable,
)
from dralloc.solve.optimum.stage import Split
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
    for batch_index, batch in enumerate(batches):
        time.sleep(max(0.0, batch.end - time.time()))
        yield batch_index, batch.run()


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
    with Climb([component], stop):
        while not (component.relaxation.is_at_the_top or stop.reached()):
            time.sleep(0.01)
    assert is_proven(component, 1)


def test_bounds_of_components_come_in_turn() -> None:
    """The one that has most to prove does not keep the others waiting."""
    climbs: Any = {"slow": [1, 2, 3], "quick": [4], "": []}
    in_turn: Iterator[Any] = bounds_in_turn(
        climbs, lambda name: iter(climbs[name])
    )
    assert list(in_turn) == [
        ("slow", 1),
        ("quick", 4),
        ("slow", 2),
        ("slow", 3),
    ]


def test_small_components_are_bounded_beside_the_starts_of_large_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search for answers takes what time there is, and theirs came after it."""
    bounded: list[int] = []

    class Counting(Climb):
        def __init__(
            self, components: Sequence[Relaxable], stop: Stop, **when: Any
        ) -> None:
            super().__init__(components, stop, **when)
            # Beside the search for answers to start from, nobody has to be patient.
            if "before_search" in when:
                bounded.append(len(components))

    monkeypatch.setattr("dralloc.solve.optimum.Climb", Counting)
    monkeypatch.setattr(improve_component, "_TINY", 0)
    first: list[SearchedComponent] = []

    def is_large(component: SearchedComponent) -> bool:
        first[:] = first or [component]
        return component is first[0]

    monkeypatch.setattr(SearchedComponent, "is_large", property(is_large))
    # Which of them classes can count in that time depends on the machine.
    monkeypatch.setattr(Split, "_by_class", lambda split: split._demands)
    # Pods ask for one of two sorts of hardware that has room for some of them.
    problem = compile_cluster(mixed(9, 1, {"cpu"})).whole
    solve(problem, Options(jobs=2, time_limit=2.0))
    assert bounded == [2]


class Rungs(ComponentRelaxation):
    """A ladder of three rungs; the last one is not climbed before somebody lets it be."""

    def __init__(self) -> None:
        super().__init__(DemandSubset(ProblemBuilder().problem(), ()), ())
        self.let = Event()
        self.appraised = 0

    def climb(self, stop: Stop, *_: object, **__: object) -> Iterator[Bound]:
        yield Bound((1,), "first", (), ())
        yield Bound((2,), "second", (), ())
        while not (stop.reached() or self.let.wait(0.01)):
            pass
        yield Bound((3,), "third", (), ())

    def appraise(self, stop: Stop) -> None:
        del stop
        self.appraised += 1


class Ladder:
    """A component that is nothing but a ladder."""

    def __init__(self) -> None:
        self.relaxation = Rungs()
        self.tiers = ()
        self.bounds = [0]

    def cost(self, level: int) -> int:
        return 9 + level


def test_a_rung_that_takes_long_is_climbed_on_beside_the_search() -> None:
    component: Any = Ladder()
    rungs = component.relaxation
    before_search = Stop.after(0.3)
    with Climb([component], Stop(), before_search=before_search) as climb:
        for _ in climb.wait_before_search():
            assert not before_search.reached()
        assert before_search.reached()
        assert component.bounds == [2]
        assert rungs.appraised == 2
        rungs.let.set()
        while rungs.appraised < 3:
            time.sleep(0.01)
        climb.take_over()
        assert component.bounds == [3]


def test_prices_of_the_last_rung_are_used_though_it_proves_no_more() -> None:
    component: Any = Ladder()
    component.relaxation.let.set()
    with Climb([component], Stop(), before_search=Stop()) as climb:
        for _ in climb.wait_before_search():
            pass
        assert component.relaxation.appraised == 4


def test_nobody_waits_before_a_search_for_what_is_known() -> None:
    component: Any = Ladder()
    component.relaxation.let.set()
    with Climb([component], Stop(), before_search=Stop()) as climb:
        for _ in climb.wait_before_search():
            pass
        assert component.bounds == [3]
    with Climb([component], Stop()) as climb:
        assert list(climb.wait_before_search()) == []


def test_nobody_waits_before_a_search_for_what_has_failed() -> None:
    class Failing(Rungs):
        def climb(self, *_: object, **__: object) -> Iterator[Bound]:
            raise ModelError("amounts are too large")

    component: Any = Ladder()
    component.relaxation = Failing()
    waiting = Stop.after(60)
    climb = Climb([component], Stop(), before_search=waiting)
    with pytest.raises(ModelError), climb:
        list(climb.wait_before_search())
    assert not waiting.reached()
