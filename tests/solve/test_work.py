"""Many tasks: results come as they are done, and whoever does not wait for all of them stops the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from dralloc.objects.choices import Backend
from dralloc.solve.work import phase, run_all


@dataclass(frozen=True)
class Sleep:
    """A task that takes some time, and returns how much."""

    seconds: float

    def run(self) -> float:
        """Sleep."""
        time.sleep(self.seconds)
        return self.seconds


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_result_has_its_number(jobs: int) -> None:
    tasks = [Sleep(seconds / 1000) for seconds in range(9)]
    results = dict(run_all(tasks, Backend.LOKY, jobs))
    assert results == {index: task.seconds for index, task in enumerate(tasks)}


def test_results_come_as_they_are_done() -> None:
    tasks = [Sleep(1.0), Sleep(0.0), Sleep(0.0)]
    indices = [index for index, _ in run_all(tasks, Backend.LOKY, 2)]
    assert indices[-1] == 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_are_made_as_they_are_needed(jobs: int) -> None:
    made: list[float] = []

    def tasks() -> Iterator[Sleep]:
        for _ in range(100):
            made.append(0.0)
            yield Sleep(0.0)

    results = run_all(tasks(), Backend.LOKY, jobs)
    next(results)
    assert len(made) <= 2 * jobs
    assert len(list(results)) == 99


def test_what_nobody_waits_for_is_stopped() -> None:
    started = time.perf_counter()
    results = run_all([Sleep(0.0), Sleep(60.0)], Backend.LOKY, 2)
    assert next(results) == (0, 0.0)
    results.close()
    assert time.perf_counter() - started < 30


def test_phases_add_up() -> None:
    timings: dict[str, float] = {}
    for _ in range(2):
        with phase(timings, "sleep"):
            time.sleep(0.01)
    assert timings["sleep"] >= 0.02
