"""A real control plane takes what is written, and its scheduler binds every planned pod to its node and devices."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dralloc.cli import app
from dralloc.live.snapshot import key_of
from dralloc.objects.load import load_objects
from live.apply.schedules import devices_of
from live_plane import KINDS, LivePlane, live
from wire import Json

PATIENCE = 120
GATE = {"name": "dralloc.dev/batch"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePlane]:
    with live(tmp_path_factory.mktemp("plane")) as live_plane:
        yield live_plane


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def gated(manifest: Json) -> Json:
    """The object with pods that wait for dralloc."""
    pods = (
        [manifest]
        if manifest["kind"] == "Pod"
        else [manifest["spec"]["template"]]
        if manifest["kind"] in ("Deployment", "Job")
        else []
    )
    for pod in pods:
        if not pod["spec"].get("nodeName"):
            pod["spec"]["schedulingGates"] = [GATE]
    return manifest


def apply(plane: LivePlane, tmp_path: Path, *options: str) -> Json:
    """What the command says that it did."""
    arguments = [
        "apply",
        "--kubeconfig",
        str(plane.kubeconfig),
        "--yes",
        "--json",
        "-q",
        *options,
    ]
    result = CliRunner().invoke(
        app, [*arguments, "--journal", str(tmp_path / "journal")]
    )
    assert result.exit_code == 0, result.output
    answer: Json = json.loads(result.stdout)
    return answer


def state(
    plane: LivePlane,
) -> tuple[dict[str, str], dict[str, list[tuple[str, str]]], int]:
    """The node of every bound pod, the devices of every claim, and how many fences there are."""
    with plane.objects() as (_, objects):
        pods, claims, rules = (
            objects.listed(KINDS[kind])["items"]
            for kind in ("Pod", "ResourceClaim", "DeviceTaintRule")
        )
    nodes = {
        str(key_of(pod)): pod["spec"]["nodeName"]
        for pod in pods
        if pod["spec"].get("nodeName")
    }
    return (
        nodes,
        {str(key_of(claim)): devices_of(claim) for claim in claims},
        len(rules),
    )


def settled(
    plane: LivePlane, planned: dict[str, str]
) -> tuple[dict[str, str], dict[str, list[tuple[str, str]]], int]:
    """The state once all planned pods are bound."""
    end = time.monotonic() + PATIENCE
    while (
        planned.keys() - (current_state := state(plane))[0].keys()
        and time.monotonic() < end
    ):
        time.sleep(0.5)
    return current_state


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("h100-mig", []),
        ("gang", []),
        ("fair-share", ["--fair", "memory"]),
        ("gpu-nic", ["--mode", "first-fit"]),
    ],
)
def test_planned_pods_are_bound_as_planned_while_the_scheduler_runs(
    plane: LivePlane, root: Path, tmp_path: Path, model: str, options: list[str]
) -> None:
    plane.wipe()
    files = [
        path
        for path in sorted((root / "models" / model).rglob("*.yaml"))
        if path.name != "expected.yaml"
    ]
    with plane.running_scheduler():
        plane.add(gated(manifest) for manifest in load_objects(*files))
        answer = apply(plane, tmp_path, *options)
        pods = {
            placement["demand"]: placement["node"]
            for placement in answer["plan"]["placed"]
            if [*placement["claims"]] != [placement["demand"]]
        }
        nodes, devices, fences = settled(plane, pods)
    assert answer["placed"]
    assert {pod: nodes.get(pod) for pod in pods} == pods
    for placement in answer["plan"]["placed"]:
        for claim, allocation in placement["claims"].items():
            assert devices[claim] == devices_of(
                {"status": {"allocation": allocation}}
            )
    assert fences == 0
    held = Counter(
        device for claim_devices in devices.values() for device in claim_devices
    )
    if model != "fair-share":
        assert max(held.values()) == 1
