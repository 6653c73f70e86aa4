"""``dralloc explain`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dralloc.cli import app
from dralloc.cli.console import Exit
from wire import claim, device_class, gpus, node, pod, request, resource_slice


def dralloc(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["explain", *map(str, arguments)])


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """Two nodes, one device, and two claims for it."""
    path = tmp_path / "cluster.yaml"
    objects = [
        node("node-0"),
        node("node-1"),
        device_class(),
        resource_slice(gpus(1)),
        claim("a", request()),
    ]
    path.write_text(
        yaml.safe_dump_all([*objects, claim("b", request()), pod("user", "b")])
    )
    return path


def test_it_prints_reasons_conflict_and_changes(full: Path) -> None:
    result = dralloc(full, "--claim", "default/a")
    assert result.exit_code == Exit.DONE
    assert "first-fit: default/a is not placed" in result.stdout
    assert "request gpu: in use" in result.stdout
    assert "release who holds the devices, or add nodes" in " ".join(
        result.stdout.split()
    )
    assert "node-1" in result.stdout
    assert "held by default/b (placed in this batch)" in result.stdout
    assert "Minimal conflict" in result.stdout
    assert "asks for 1 device of class gpu" in result.stdout
    assert "holds gpu.example.com/pool-0/gpu-0" in result.stdout
    assert "release claim default/b" in result.stdout


def test_lines_can_be_read(root: Path) -> None:
    result = dralloc(
        root / "models/h100-mig-smallest", "--pod", "default/large"
    )
    assert max(len(line.rstrip()) for line in result.stdout.splitlines()) <= 140


def test_it_prints_json(full: Path) -> None:
    explanation = json.loads(
        dralloc(full, "--claim", "default/a", "--json").stdout
    )
    assert explanation["demand"] == "default/a"
    assert [node["fits"] for node in explanation["nodes"]] == [False, False]
    assert {
        member["kind"] for member in explanation["conflict"]["members"]
    } == {
        "request",
        "holder",
    }
    assert explanation["suggestions"][0]["kind"] == "release"


def test_it_explains_some_nodes_only(full: Path) -> None:
    explanation = json.loads(
        dralloc(
            full,
            "--claim",
            "default/a",
            "--json",
            "--node",
            "node-1",
            "--no-changes",
        ).stdout
    )
    assert [node["node"] for node in explanation["nodes"]] == ["node-1"]
    assert explanation["suggestions"] == []
    assert explanation["conflict"] is None


def test_it_says_where_a_pod_goes(full: Path) -> None:
    assert (
        "first-fit: default/user is placed on node-0"
        in dralloc(full, "--pod", "default/user").stdout
    )
    assert (
        "optimal: default/user is placed on"
        in dralloc(full, "--pod", "default/user", "--mode", "optimal").stdout
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--claim", "default/none"],
            "error: ResourceClaim default/none: not found",
        ),
        (
            ["--claim", "default/a", "--node", "gone"],
            'error: node "gone" does not exist',
        ),
    ],
)
def test_what_it_refuses(
    full: Path, arguments: list[str], message: str
) -> None:
    result = dralloc(full, *arguments)
    assert result.exit_code == Exit.INPUT
    assert message in result.stderr


def test_pods_of_another_scheduler_are_explained_by_its_profile(
    full: Path, tmp_path: Path
) -> None:
    objects = list(yaml.safe_load_all(full.read_text()))
    for read in objects:
        if read["kind"] == "Pod":
            read["spec"]["schedulerName"] = "of-gangs"
    full.write_text(yaml.safe_dump_all(objects))
    config = tmp_path / "scheduler.yaml"
    version = "kubescheduler.config.k8s.io/v1"
    configuration = {
        "apiVersion": version,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "of-gangs"}],
    }
    config.write_text(yaml.safe_dump(configuration))
    asked = (full, "--pod", "default/user", "--mode", "scheduler")
    assert "--scheduler-config" in dralloc(*asked).stdout
    explained = dralloc(*asked, "--scheduler-config", config)
    assert "scheduler: default/user is placed on node-0" in explained.stdout
