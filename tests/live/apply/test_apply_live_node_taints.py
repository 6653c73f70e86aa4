"""A real control plane without DeviceTaintRules: nodes are tainted meanwhile, and what others cordoned stays so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dralloc.live.apply.fence import run_of
from live.apply.runs import gated
from live.apply.schedules import devices_of, is_cordoned
from live_plane import KINDS, LivePlane, live
from wire import Json, claim, device_class, gpus, node, request, resource_slice

PATIENCE = 60
NETWORK = "remote.example.com"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePlane]:
    with (
        live(tmp_path_factory.mktemp("plane"), rules=False) as live_plane,
        live_plane.running_scheduler(),
    ):
        remote = resource_slice(
            gpus(4), name="remote", pool="remote", driver=NETWORK, allNodes=True
        )
        spare = {**node("spare"), "spec": {"unschedulable": True}}
        live_plane.add(
            [node(), spare, device_class(), resource_slice(gpus(4)), remote]
        )
        yield live_plane


@pytest.fixture(autouse=True)
def _waiting(plane: LivePlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod for a device of its node, and one for a device that every node reaches."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    plane.wipe(("Pod", "ResourceClaim"))
    here, there = (
        f'device.driver == "{driver}"'
        for driver in ("gpu.example.com", NETWORK)
    )
    plane.add(
        [
            claim("a", request("gpu", here)),
            claim("b", request("gpu", there)),
            gated("p", "a"),
            gated("q", "b"),
        ]
    )


def command(plane: LivePlane, tmp_path: Path, *options: str) -> list[str]:
    where = [
        "--kubeconfig",
        str(plane.kubeconfig),
        "--journal",
        str(tmp_path / "journal"),
    ]
    return [
        sys.executable,
        "-m",
        "dralloc",
        "apply",
        "--json",
        "-q",
        *where,
        *options,
    ]


def apply(plane: LivePlane, tmp_path: Path, *options: str) -> Json:
    """What the command says that it did."""
    done = subprocess.run(
        command(plane, tmp_path, *options), capture_output=True, check=True
    )
    answer: Json = json.loads(done.stdout)
    return answer


def listed(plane: LivePlane, kind: str) -> list[Json]:
    with plane.objects() as (_, objects):
        items: list[Json] = objects.listed(KINDS[kind])["items"]
    return items


def fenced(plane: LivePlane) -> list[str]:
    return [
        item["metadata"]["name"]
        for item in listed(plane, "Node")
        if run_of({**item, "kind": "Node"})
    ]


def cordoned(plane: LivePlane) -> list[str]:
    return [
        item["metadata"]["name"]
        for item in listed(plane, "Node")
        if is_cordoned(item)
    ]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            pytest.fail("that never came")
        time.sleep(0.05)


def bound(plane: LivePlane) -> dict[str, str | None]:
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName")
        for pod in listed(plane, "Pod")
    }


def test_pods_are_bound_as_planned_and_the_node_of_others_stays_cordoned(
    plane: LivePlane, tmp_path: Path
) -> None:
    outcome = apply(plane, tmp_path, "--yes")
    assert outcome["fence"] == "node taints"
    assert sorted(outcome["placed"]) == ["default/p", "default/q"]
    until(lambda: bound(plane) == {"p": "node-0", "q": "node-0"})
    assert (fenced(plane), cordoned(plane)) == ([], ["spare"])


@pytest.mark.parametrize("then", ["--resume", "--rollback"])
@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_killed_process_leaves_its_taints_to_who_comes_next(
    plane: LivePlane, tmp_path: Path, written: int, then: str
) -> None:
    process = subprocess.Popen(
        command(plane, tmp_path, "--yes", "--settle", "3"), env={**os.environ}
    )
    until(lambda: fenced(plane) == ["node-0", "spare"])
    until(
        lambda: (
            sum(
                bool(devices_of(item))
                for item in listed(plane, "ResourceClaim")
            )
            >= written
        )
    )
    process.kill()
    process.wait()
    assert (fenced(plane), cordoned(plane)) == (["node-0", "spare"], ["spare"])
    again = subprocess.run(
        command(plane, tmp_path, then, "--settle", "0.5"),
        capture_output=True,
        check=False,
    )
    assert (fenced(plane), cordoned(plane)) == ([], ["spare"])
    if then == "--resume":
        assert again.returncode == 0
        until(lambda: bound(plane) == {"p": "node-0", "q": "node-0"})
        return
    # What was bound before the process was killed is kept, and named by the exit code; the rest is taken back.
    held = {
        item["metadata"]["name"]: bool(devices_of(item))
        for item in listed(plane, "ResourceClaim")
    }
    kept = {name: where is not None for name, where in bound(plane).items()}
    assert again.returncode == int(any(kept.values()))
    assert held == {"a": kept["p"], "b": kept["q"]}
