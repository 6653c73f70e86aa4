"""Small changes and neighbourhoods take turns: who gains nothing makes way for the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from dralloc.objects.choices import Options
from dralloc.problem import Problem
from dralloc.problem.indices import indices
from dralloc.solve.optimum import turns
from dralloc.solve.optimum.improve import SearchedComponent
from dralloc.solve.optimum.objective import DemandSubset, placed_weight
from dralloc.solve.optimum.stopping import Stop
from dralloc.solve.optimum.turns import Turns
from solve.optimum.problem_builder import ProblemBuilder

SECONDS = 100.0
DEMANDS = 50


class Clock:
    """A clock that stands still unless it is told to go on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stopped = Clock()
    monkeypatch.setattr(turns, "perf_counter", stopped)
    return stopped


def problem() -> Problem:
    builder = ProblemBuilder()
    builder.device()
    for _ in range(DEMANDS):
        builder.pod()
    return builder.problem()


class Searched:
    """Demands of one weight, whose neighbourhoods take a turn of time, and gain what is said."""

    def __init__(
        self, clock: Clock, missing: int, gains: Iterator[int]
    ) -> None:
        whole = problem()
        self.subset = DemandSubset(whole, tuple(indices(whole.demands)))
        self.tiers = placed_weight(whole)
        self.bounds = [0]
        self.missing = missing
        self.turns = 0
        self.turn_seconds = turns._TURN * SECONDS
        self._clock = clock
        self._gains = gains

    def cost(self, _level: int) -> int:
        return self.missing

    def search_neighbourhoods(self, _options: Options, stop: Stop) -> None:
        assert stop.seconds() <= turns._TURN * SECONDS
        assert self.turns < 20, "nothing ends the turns"
        self._clock.now += self.turn_seconds
        self.missing -= next(self._gains, 0)
        self.turns += 1


def begin(component: Searched) -> Turns:
    components = [cast("SearchedComponent", component)]
    return Turns(components, Stop.after(SECONDS))


def small_changes(turns_taken: Turns, clock: Clock, seconds: float) -> bool:
    """Whether neighbourhoods are next after small changes that gained nothing."""
    clock.now += seconds
    return turns_taken.end_of_small_changes()


def test_neighbourhoods_are_next_when_small_changes_gain_nothing(
    clock: Clock,
) -> None:
    component = Searched(clock, missing=10, gains=iter(()))
    taken = begin(component)
    component.missing -= 1
    assert not small_changes(taken, clock, 50)
    assert small_changes(taken, clock, 1)


def test_small_changes_have_some_time_first(clock: Clock) -> None:
    taken = begin(Searched(clock, missing=10, gains=iter(())))
    assert not small_changes(taken, clock, 1)
    assert small_changes(taken, clock, 20)


def test_neighbourhoods_that_gain_go_on_for_as_long_as_small_changes_did(
    clock: Clock,
) -> None:
    component = Searched(clock, missing=10, gains=iter([1] * 10))
    taken = begin(component)
    # Two turns are for small changes alone.
    assert small_changes(taken, clock, 5 * turns._TURN * SECONDS)
    taken.search_neighbourhoods(Options())
    assert component.turns == 4
    assert not small_changes(taken, clock, 0.5 * turns._TURN * SECONDS)


def test_neighbourhoods_in_vain_wait_for_long(clock: Clock) -> None:
    component = Searched(clock, missing=10, gains=iter(()))
    taken = begin(component)
    assert small_changes(taken, clock, 2 * turns._TURN * SECONDS)
    taken.search_neighbourhoods(Options())
    assert component.turns == 1
    assert not small_changes(taken, clock, 7 * turns._TURN * SECONDS)
    assert small_changes(taken, clock, turns._TURN * SECONDS)


def test_neighbourhoods_that_take_no_time_end(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In vain, as there is none left to try; or because everything is placed."""
    monkeypatch.setattr(turns, "_FIRST_TURNS", 0)
    for gains in ([], [10]):
        component = Searched(clock, missing=10, gains=iter(gains))
        component.turn_seconds = 0.0
        taken = begin(component)
        assert small_changes(taken, clock, 50)
        taken.search_neighbourhoods(Options())
        assert component.turns == 1


@pytest.mark.parametrize(("missing", "is_next"), [(0, False), (1, True)])
def test_they_have_no_turn_where_hardly_anything_is_missing(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, missing: int, is_next: bool
) -> None:
    taken = begin(Searched(clock, missing, gains=iter(())))
    assert small_changes(taken, clock, 50) is is_next
    monkeypatch.setattr(turns, "_MANY", DEMANDS)
    assert not small_changes(taken, clock, 50)


def test_without_anybody_to_search_small_changes_have_all_turns(
    clock: Clock,
) -> None:
    assert not small_changes(Turns((), Stop.after(SECONDS)), clock, 50)
