"""On drawn clusters all released pods are bound as planned with each fence, or a run refuses before its first write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dralloc.live.apply.marks import RUN
from live.apply.schedules import devices_of
from live.trials.clusters import GANG, drawn_cluster
from live.trials.planes import SCHEDULERS, Done, Plane, planes, run, say, until
from live_plane import trials

CLUSTERS = trials(6)
FENCES = ("node-taints", "device-taints", "auto")


@pytest.fixture(scope="module", params=SCHEDULERS)
def plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Plane]:
    with planes(tmp_path_factory.mktemp("plane"), request.param) as trial_plane:
        yield trial_plane


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_released_pods_are_bound_as_planned(
    plane: Plane, tmp_path: Path, seed: int, fence: str
) -> None:
    plane.begin(drawn_cluster(seed))
    running = {"default/runs-0"}
    until(lambda: plane.state().bound.keys() == running)
    done = run(plane, tmp_path, "--yes", "--fence", fence, "--time-limit", "10")
    if fence == "device-taints" and plane.name == "kube-scheduler":
        check_refused(plane, done)
        say(f"{plane.name}, cluster {seed}, {fence}: refused")
        return
    assert done.code == 0, done.said
    state = plane.state()
    planned = {
        placement["demand"]: placement
        for placement in done.answer["plan"]["placed"]
        if [*placement["claims"]] != [placement["demand"]]
        or f"{placement['demand']}" in state.released
    }
    as_planned = [
        name
        for name, placement in planned.items()
        if state.bound.get(name) == placement["node"]
    ]
    assert len(as_planned) == len(planned)
    assert set(done.answer["released"]) <= set(as_planned)
    for placement in planned.values():
        for claim, allocation in placement["claims"].items():
            given = devices_of({"status": {"allocation": allocation}})
            assert devices_of(state.held[claim]) == given
    assert state.broken() == []
    assert (state.fenced, state.stranded) == ([], [])
    gang = [name for name in as_planned if name.startswith("default/gang-")]
    assert len(gang) in (0, GANG)
    assert plane.is_scheduled
    waiting = len(done.answer["unplaced"])
    say(
        f"{plane.name}, cluster {seed}, {fence} ({done.answer['fence']}): "
        f"{len(done.answer['released'])} released and bound as planned, {waiting} without a place, gang {len(gang)}"
    )


def check_refused(plane: Plane, done: Done) -> None:
    """The run said why, and has written nothing."""
    state = plane.state()
    assert done.code == 2
    assert (
        "--fence device-taints: kube-scheduler ignores DeviceTaintRules"
        in done.said
    )
    assert state.fenced == []
    assert [
        claim
        for claim in state.claims
        if RUN in (claim["metadata"].get("annotations") or {})
    ] == []
    assert state.bound.keys() == {"default/runs-0"}
