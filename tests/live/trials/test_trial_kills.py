"""Runs are killed at random moments, rivals beside them; who resumes them, or rolls them back, leaves all clean."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from live.trials.crowds import PLANNED, planned_crowd, rivals
from live.trials.planes import (
    SCHEDULERS,
    Plane,
    begun,
    command,
    planes,
    run,
    say,
    until,
)
from live_plane import trials

KILLS = trials(50)
OPTIONS = ("--yes", "-l", PLANNED, "--settle", "0.3", "--watch", "5")
AGAIN = ("-l", PLANNED, "--settle", "0.3", "--watch", "5")
NODES, DEVICES = 4, 4
FENCES = {
    "kube-scheduler": "node taints",
    "kube-scheduler-fixed": "taint rules",
}
"""That of a default 1.34 to 1.36, whose API server serves no DeviceTaintRules, and that of later ones."""


@dataclass
class Trial:
    """A control plane, and how long a run writes there that nobody disturbs."""

    plane: Plane
    seconds: float = 0.0


@pytest.fixture(scope="module", params=SCHEDULERS)
def trial(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trial]:
    rules = request.param != "kube-scheduler"
    folder = tmp_path_factory.mktemp("plane")
    with (
        pytest.MonkeyPatch.context() as patch,
        planes(folder, request.param, rules=rules) as plane,
    ):
        patch.setenv("NO_PROXY", "127.0.0.1")
        plane.begin(planned_crowd(NODES, DEVICES))
        journal = tmp_path_factory.mktemp("undisturbed")
        process = started(plane, journal)
        until(lambda: bool(begun(journal / "journal")), pause=0.005)
        start = time.monotonic()
        assert process.wait() == 0
        yield Trial(plane, time.monotonic() - start)


def started(plane: Plane, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(plane, folder, *OPTIONS),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def killed(trial: Trial, folder: Path, random: Random) -> list[str]:
    """Kill a run at a random moment of what it writes; the steps that it noted."""
    journal = folder / "journal"
    while True:
        process = started(trial.plane, folder)
        until(lambda: bool(begun(journal)), pause=0.005)
        time.sleep(random.uniform(0, trial.seconds))
        process.kill()
        process.wait()
        steps = [str(entry["step"]) for entry in begun(journal)]
        if steps[-1] != "end":
            return steps
        # It was quicker than the one that nobody disturbed. Without its journal the next one is known to have begun.
        journal.unlink()
        trial.plane.begin(planned_crowd(NODES, DEVICES))


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_run_is_finished_or_undone(
    trial: Trial, tmp_path: Path, seed: int
) -> None:
    random, plane = Random(seed), trial.plane
    plane.begin(planned_crowd(NODES, DEVICES))
    with rivals(plane, 4, 0.5):
        steps = killed(trial, tmp_path, random)
        fence = begun(tmp_path / "journal")[0]["fence"]
        then = random.choice(["--resume", "--rollback"])
        done = run(plane, tmp_path, then, *AGAIN)
    assert fence == FENCES[plane.name]
    assert done.code in (0, 1), done.said
    until(lambda: plane.state().stranded_of("train") == [], 20)
    state = plane.state()
    assert state.broken() == []
    assert state.fenced == []
    gang = [f"default/gang-{pod_index}" for pod_index in range(3)]
    assert len(set(gang) & state.released) in (0, 3)
    held = [name for name in gang if state.has_claims(name)]
    assert len(held) in (0, 3)
    if then == "--resume" and done.code == 0:
        assert all(name in state.bound for name in gang)
    assert run(plane, tmp_path, "--status").code == 0
    assert plane.is_scheduled
    bound = sum(not name.startswith("default/rival") for name in state.bound)
    say(
        f"{plane.name}, {fence}, killed after {len(steps)} steps ({steps[-1]}), {then} {done.code}: "
        f"{bound} planned pods and {len(state.bound) - bound} rivals bound"
    )
