"""``dralloc snapshot`` and ``dralloc redact`` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dralloc.cli import app
from dralloc.cli.console import Exit
from dralloc.objects.load import load_objects
from live.snapshot.recorded import Recorded, serving
from wire import Json, claim, device_class, gpus, node, request, resource_slice

DRA = "/apis/resource.k8s.io/v1"


def dralloc(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], input=stdin
    )


def cluster() -> list[Json]:
    return [
        node(),
        device_class(),
        resource_slice(gpus(2)),
        claim("a", request()),
    ]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    nodes, classes, slices, claims = ([item] for item in cluster())
    return Recorded(
        {
            "/api/v1/nodes": nodes,
            f"{DRA}/deviceclasses": classes,
            f"{DRA}/resourceslices": slices,
            f"{DRA}/resourceclaims": claims,
        }
    )


def test_a_snapshot_can_be_allocated(
    recorded: Recorded, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.yaml"
    with serving(recorded, tmp_path) as kubeconfig:
        result = dralloc(
            "snapshot",
            "--to",
            path,
            "--kubeconfig",
            kubeconfig,
            "--context",
            "test",
        )
    assert result.exit_code == Exit.DONE, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith(
        "4 objects: namespaces 0, nodes 1, priorityclasses 0, deviceclasses 1,"
    )
    plan = json.loads(dralloc("allocate", path, "-o", "json").stdout)
    assert [placement["demand"] for placement in plan["placed"]] == [
        "default/a"
    ]


def test_a_snapshot_on_standard_output(
    recorded: Recorded, tmp_path: Path
) -> None:
    with serving(recorded, tmp_path) as kubeconfig:
        result = dralloc(
            "snapshot", "--to", "-", "--kubeconfig", kubeconfig, "--quiet"
        )
    assert list(yaml.safe_load_all(result.stdout)) == cluster()
    assert result.stderr == ""


def test_a_redacted_snapshot(recorded: Recorded, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    with serving(recorded, tmp_path) as kubeconfig:
        result = dralloc(
            "snapshot", "--redact", "--to", path, "--kubeconfig", kubeconfig
        )
    assert result.exit_code == Exit.DONE, result.stderr
    names = [item["metadata"]["name"] for item in load_objects(path)]
    assert names == ["node-0001", "gpu", "slice-0001", "claim-0001"]


def test_nothing_is_written_when_reading_fails(
    recorded: Recorded, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.yaml"
    recorded.refusals[f"{DRA}/resourceclaims"] = 403
    with serving(recorded, tmp_path) as kubeconfig:
        result = dralloc("snapshot", "--to", path, "--kubeconfig", kubeconfig)
    assert result.exit_code == Exit.INPUT
    assert result.stderr.startswith(
        "error: cannot list resourceclaims.resource.k8s.io in all namespaces: denied"
    )
    assert not path.exists()


def test_denied_kinds_are_warnings(recorded: Recorded, tmp_path: Path) -> None:
    recorded.refusals["/api/v1/nodes"] = 403
    with serving(recorded, tmp_path) as kubeconfig:
        result = dralloc(
            "snapshot", "--to", tmp_path / "x.yaml", "--kubeconfig", kubeconfig
        )
    assert result.exit_code == Exit.DONE
    assert result.stderr.startswith(
        "warning: cannot list nodes, which are left out: denied"
    )


def test_redact_reads_files_and_leaves_out_secrets(tmp_path: Path) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"password": "aHVudGVyMg=="},
    }
    given = yaml.safe_dump_all([*cluster(), secret])
    result = dralloc("redact", "-", stdin=given)
    assert result.exit_code == Exit.DONE, result.stderr
    assert (
        "warning: 1 objects of kinds that dralloc does not read are left out: Secret (1)"
        in result.stderr
    )
    assert "aHVudGVyMg" not in result.stdout
    kinds = [item["kind"] for item in yaml.safe_load_all(result.stdout)]
    assert kinds == ["Node", "DeviceClass", "ResourceSlice", "ResourceClaim"]
    path = tmp_path / "shared.yaml"
    assert (
        dralloc("redact", "-", "--to", path, "--quiet", stdin=given).stderr
        == ""
    )
    assert path.read_text() == result.stdout


def test_redact_tells_what_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("just: text")
    result = dralloc("redact", path)
    assert result.exit_code == Exit.INPUT
    assert (
        result.stderr
        == f"error: {path}:1:1: is no Kubernetes object: it needs apiVersion and kind\n"
    )
    assert dralloc("redact", tmp_path / "missing").exit_code == Exit.INPUT


@pytest.mark.parametrize("output", ["-", "shared.yaml"])
def test_nothing_is_written_when_a_name_would_be_left(
    tmp_path: Path, output: str
) -> None:
    given = yaml.safe_dump_all(
        [
            node("rack-7"),
            *cluster(),
            device_class("broken", "device.driver == 'rack-7"),
        ]
    )
    path = output if output == "-" else tmp_path / output
    result = dralloc("redact", "-", "--to", path, stdin=given)
    assert result.exit_code == Exit.INPUT
    assert result.stdout == ""
    assert result.stderr.startswith(
        'error: DeviceClass broken: spec.selectors[0].cel.expression: the name "rack-7"'
    )
    assert not list(tmp_path.iterdir())


def test_conditions_of_devices_are_no_obstacle() -> None:
    reported = {
        "driver": "d",
        "pool": "p",
        "device": "x",
        "conditions": [{"type": "Ready", "message": "acme"}],
    }
    given = yaml.safe_dump_all(
        [*cluster(), claim("b", request(), status={"devices": [reported]})]
    )
    result = dralloc("redact", "-", stdin=given)
    assert result.exit_code == Exit.DONE, result.stderr
    assert "acme" not in result.stdout
