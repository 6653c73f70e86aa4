"""Two replicas, 30 nodes, wave after wave: whatever happens to the leader or the API server, no queue is blocked."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from live.batch.test_batch_live import account
from live.trials.clusters import crowd, rows_of_gpus
from live.trials.planes import SCHEDULERS, Plane, planes, say, until
from live.trials.replicas import Look, Replicas

NODES, DEVICES, WAVE = 30, 12, 24
TAKEOVER = 30.0
"""Seconds in which somebody leads again."""
PAUSED = 25.0
"""Longer than the Lease lasts."""
PATIENCE = 240.0
pytestmark = pytest.mark.filterwarnings(
    "ignore::urllib3.exceptions.InsecureRequestWarning"
)
STEPS = ("fence", "write", "release")
OPTIONS = (
    "--interval", "3", "--at-least", str(WAVE), "--port", "0", "--settle", "0.5", "--time-limit", "10",
    "--probe", "dralloc-system",
)  # fmt: skip
STRENGTH = os.environ.get("DRALLOC_LIVE")
EVENTS = [
    *((action, step) for step in STEPS for action in ("kill", "pause", "stop")),
    *(
        (f"{name} away", seconds)
        for name in ("kube-apiserver", "etcd")
        for seconds in ("5", "30")
    ),
]


@dataclass
class Trial:
    """Two replicas at work on a control plane."""

    plane: Plane
    replicas: Replicas
    look: Look
    waves: int = 0

    def start_replica(self) -> None:
        """Begin another one, and wait until it is at work: at its start it must reach the API server."""
        name = self.replicas.start()
        until(lambda: "metrics and health" in self.replicas.log(name), PATIENCE)

    def send_wave(self) -> str:
        """Make pods that wait; the start of their names."""
        self.waves += 1
        wave = f"w{self.waves}"
        self.plane.live.add(
            crowd(f"{wave}-{pod_index}" for pod_index in range(WAVE))
        )
        return wave

    def reach(self, step: str, wave: str) -> None:
        """Wait until a batch is at a step."""
        match step:
            case "fence":
                until(lambda: self.look.is_fenced, PATIENCE, 0.01)
            case "write":
                until(lambda: self.look.is_written(wave), PATIENCE, 0.01)
            case _:
                until(lambda: self.look.is_released(wave), PATIENCE, 0.01)

    def settle(self, wave: str) -> None:
        """Wait until a wave is bound and nothing is fenced; look whether all is well."""
        until(lambda: self.look.is_bound(wave), PATIENCE, 0.2)
        until(lambda: not self.look.is_fenced, 60, 0.2)
        state = self.plane.state()
        assert state.broken() == []
        assert state.stranded == []
        assert self.replicas.ended == []
        assert self.plane.is_scheduled


@pytest.fixture(scope="module", params=SCHEDULERS)
def trial(
    request: pytest.FixtureRequest,
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Trial]:
    folder = tmp_path_factory.mktemp("replicas")
    with (
        pytest.MonkeyPatch.context() as patch,
        planes(tmp_path_factory.mktemp("plane"), request.param) as plane,
        plane.live.objects() as (_, objects),
    ):
        patch.setenv("NO_PROXY", "127.0.0.1")
        plane.begin(rows_of_gpus(NODES, DEVICES))
        replicas = Replicas(account(plane.live, root, folder), OPTIONS, folder)
        running_trial = Trial(plane, replicas, Look(objects))
        try:
            running_trial.start_replica()
            until(lambda: running_trial.look.holder != "", PATIENCE)
            running_trial.start_replica()
            yield running_trial
        finally:
            replicas.stop()


@pytest.mark.parametrize(("event", "where"), EVENTS if STRENGTH else EVENTS[:2])
def test_the_queue_goes_on(trial: Trial, event: str, where: str) -> None:
    wave = trial.send_wave()
    begun = time.monotonic()
    if where in STEPS:
        trial.reach(where, wave)
        seconds = disturbed(trial, event)
    else:
        trial.reach("write", wave)
        seconds = without(trial, event.partition(" ")[0], float(where))
    assert seconds < TAKEOVER
    trial.settle(wave)
    say(
        f"{trial.plane.name}, {event} ({where}): led again after {seconds:.1f} s, "
        f"{WAVE} pods bound after {time.monotonic() - begun:.1f} s"
    )


def disturbed(trial: Trial, action: str) -> float:
    """Kill, pause or stop the leader; the seconds until another one leads."""
    leader = trial.look.holder
    start = time.monotonic()
    match action:
        case "kill":
            trial.replicas.send(leader, signal.SIGKILL)
        case "pause":
            trial.replicas.send(leader, signal.SIGSTOP)
        case _:
            trial.replicas.send(leader, signal.SIGTERM)
    if action != "pause":
        trial.replicas.forget(leader)
    until(lambda: trial.look.holder not in ("", leader), PATIENCE)
    seconds = time.monotonic() - start
    if action != "pause":
        trial.start_replica()
    if action == "pause":
        time.sleep(max(0.0, PAUSED - seconds))
        trial.replicas.send(leader, signal.SIGCONT)
        time.sleep(5)
    return seconds


def without(trial: Trial, name: str, seconds: float) -> float:
    """Take the API server or its store away; the seconds until somebody leads once it is back."""
    daemon = trial.plane.live.plane.daemons[name]
    daemon.kill()
    time.sleep(seconds)
    daemon.start()
    start = time.monotonic()
    before = trial.look.renewed
    while before == "":
        before = trial.look.renewed
        time.sleep(0.1)
    until(lambda: trial.look.renewed not in ("", before), PATIENCE, 0.1)
    return time.monotonic() - start
