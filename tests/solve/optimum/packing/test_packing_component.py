"""When packing leads nowhere, other searches are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pytest

from dralloc.objects.choices import Thresholds
from dralloc.problem import Problem
from dralloc.problem.solution import AskAppraisal, Placement
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.packing import component
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

PACKED = Thresholds(pattern_effort=0)
"""No bin's patterns are listed, as if they were too many."""

LIMIT: Final = 3.0
"""Seconds, of which importing OR-Tools takes some."""


def problem_to_pack() -> Problem:
    builder = ProblemBuilder()
    for _ in range(3):
        builder.device()
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec()))
    return builder.problem()


@pytest.fixture
def no_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every step of packing find nothing."""
    search = component.PackingSearch
    monkeypatch.setattr(search, "construct", lambda *_: None)
    monkeypatch.setattr(search, "combine", lambda *_: None)
    monkeypatch.setattr(component.PackedComponent, "_prove", lambda *_: None)


@pytest.mark.usefixtures("no_packing")
@pytest.mark.parametrize("offered", [1, 3])
def test_another_search_is_asked_if_packing_stays_far_from_its_bound(
    offered: int,
) -> None:
    problem = problem_to_pack()
    placements = first_fit(problem).placements
    asked: list[float] = []

    def starts(
        _present: Sequence[Placement],
        _appraisal: AskAppraisal,
        seconds: Callable[[], float],
        _jobs: int,
    ) -> Iterator[Sequence[Placement]]:
        asked.append(seconds())
        yield placements[:offered]

    options = Options(time_limit=LIMIT, thresholds=PACKED)
    answer = solve(problem, options, starts=starts)
    assert len(answer.placements) == offered
    assert len(asked) == 1
    assert 0 < asked[0] < LIMIT


@pytest.mark.usefixtures("no_packing")
def test_answers_are_for_everything_that_is_packed() -> None:
    """They are made once for the whole problem, of which each part may be packed by itself."""
    builder = ProblemBuilder()
    for _ in range(4):
        builder.device()
    for devices in ((0, 1), (2, 3)):
        for _ in devices:
            builder.pod(builder.claim(AlternativeSpec(only=devices)))
    problem = builder.problem()
    placements = first_fit(problem).placements

    def starts(*_: object) -> Iterator[Sequence[Placement]]:
        yield placements

    options = Options(time_limit=LIMIT, thresholds=PACKED)
    answer = solve(problem, options, starts=starts)
    assert answer.placements == placements


@pytest.mark.usefixtures("no_packing")
def test_without_a_limit_packing_goes_on_by_itself() -> None:
    def starts(*_: object) -> Iterator[Sequence[Placement]]:
        raise AssertionError

    options = Options(thresholds=PACKED)
    answer = solve(problem_to_pack(), options, starts=starts)
    assert not answer.placements
