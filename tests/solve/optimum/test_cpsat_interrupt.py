"""Ctrl-C in the middle of a solve."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.export import export
from benchmarks.registry import WORKLOADS
from benchmarks.workloads import bundles
from dralloc.check import check
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Choices
from dralloc.objects.load import load
from dralloc.problem import Problem
from dralloc.problem.solution import Status
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import (
    Options,
    Progress,
    candidates,
    search,
    solve,
)
from dralloc.solve.optimum.stopping import Stop
from solve.optimum.test_cpsat_solve import hard, in_order, weight

pytestmark = pytest.mark.usefixtures("ctrl_c")


def press(times: int = 1) -> Callable[[Progress], None]:
    """A listener that presses Ctrl-C at the first good news."""
    remaining = [None] * times

    def listen(news: Progress) -> None:
        while remaining and news.best:
            remaining.pop()
            signal.raise_signal(signal.SIGINT)

    return listen


def test_one_ends_the_search_with_the_best_so_far() -> None:
    problem = hard()
    solution = solve(problem, progress=press())
    check(problem, solution)
    assert solution.status is Status.FEASIBLE
    assert 0 < solution.tiers[0].value < solution.tiers[0].bound


def test_two_end_everything() -> None:
    with pytest.raises(KeyboardInterrupt):
        solve(hard(), progress=press(2))


def test_bundles_end_with_the_best_so_far(tmp_path: Path) -> None:
    assert bundles
    export(WORKLOADS["bundles"].objects(30, 4), tmp_path)
    problem = compile_cluster(load(tmp_path)).problem
    hint = first_fit(problem)
    solution = solve(problem, hint=hint, progress=press())
    check(problem, solution)
    assert solution.status is Status.FEASIBLE
    assert (
        weight(problem, hint)
        <= solution.tiers[0].value
        < solution.tiers[0].bound
    )


@pytest.mark.parametrize("looks", [0, 30, 1_000])
@pytest.mark.parametrize(
    "name", ["bundles", "fair-plain", "goal-least-fragmentation", "racks"]
)
def test_at_any_moment_it_is_an_answer(
    name: str, looks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C as often as the clock has been looked at so often: after that, nothing is looked for any more."""
    workload, later, seconds = WORKLOADS[name], [None] * looks, Stop.seconds
    export(workload.objects(3, 1), tmp_path)
    choices = Choices.of(None, workload.words(3))
    problem = compile_cluster(load(tmp_path), choices).whole
    first = first_fit(problem)
    hint = replace(
        first, placements=tuple(within_caps(problem, first.placements))
    )

    def look(self: Stop) -> float:
        if later:
            later.pop()
        elif not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)
        return seconds(self)

    def begin(self: search._SolverRun, *arguments: Any) -> None:
        runs.append(bool(pressed))
        run(self, *arguments)

    pressed: list[bool] = []
    runs: list[bool] = []
    run = search._SolverRun.__init__
    monkeypatch.setattr(search._SolverRun, "__init__", begin)
    monkeypatch.setattr(Stop, "seconds", look)
    solution = solve(problem, choices, hint)
    monkeypatch.undo()
    check(problem, solution)
    assert weight(problem, hint) <= weight(problem, solution)
    assert {tier.why for tier in solution.tiers} <= {"", "it was interrupted"}
    assert not any(runs)


def test_before_anything_is_found_it_is_the_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = hard()
    hint = in_order(problem)
    surveys: list[Problem] = []

    def survey(*arguments: object, **options: object) -> object:
        if not surveys:
            signal.raise_signal(signal.SIGINT)
        surveys.append(problem)
        return candidates.survey(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("dralloc.solve.optimum.stage.survey", survey)
    solution = solve(
        problem, hint=hint, progress=lambda _: pytest.fail("went on")
    )
    assert solution.placements == hint.placements
    assert (
        solution.tiers[0].value
        == weight(problem, hint)
        < solution.tiers[0].bound
    )


def test_who_has_a_handler_keeps_it() -> None:
    heard: list[int] = []

    def mine(signal_number: int, _: FrameType | None) -> None:
        heard.append(signal_number)

    signal.signal(signal.SIGINT, mine)
    try:
        solution = solve(hard(pods=8, gpus=2), progress=press())
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert heard == [signal.SIGINT]
    assert solution.status is Status.OPTIMAL


def test_other_threads_do_not_hear_of_it() -> None:
    with ThreadPoolExecutor() as pool:
        assert (
            pool.submit(solve, hard(), Options(time_limit=0.3)).result().status
            is Status.FEASIBLE
        )
