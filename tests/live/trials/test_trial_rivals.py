"""While a run writes, the scheduler places rivals that have no gate: no device is given away twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from live.trials.crowds import PLANNED, planned_crowd, rivals
from live.trials.planes import SCHEDULERS, Plane, planes, run, say, until
from live_plane import trials

RUNS = trials(20)
RIVALS = 24


@pytest.fixture(scope="module", params=SCHEDULERS)
def plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Plane]:
    with planes(tmp_path_factory.mktemp("plane"), request.param) as trial_plane:
        yield trial_plane


@pytest.mark.parametrize("run_index", range(RUNS))
def test_rivals_get_nothing_that_is_planned(
    plane: Plane,
    tmp_path: Path,
    run_index: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    plane.begin(planned_crowd(6, 4))
    with rivals(plane, RIVALS, 0.25):
        done = run(plane, tmp_path, "--yes", "-l", PLANNED, "--settle", "0.5")
    assert done.code in (0, 1), done.said
    assert done.answer["findings"] == []
    until(lambda: plane.state().stranded_of("train") == [], 20)
    state = plane.state()
    assert state.broken() == []
    assert state.fenced == []
    assert plane.is_scheduled
    planned = [
        placement["demand"]
        for placement in done.answer["plan"]["placed"]
        if state.bound.get(placement["demand"]) == placement["node"]
    ]
    came = sum(name.startswith("default/rival") for name in state.bound)
    say(
        f"{plane.name}, run {run_index}, {done.answer['fence']}, exit {done.code}: {len(planned)} bound as planned, "
        f"{len(done.answer['asides'])} left alone, {came} rivals bound"
    )
