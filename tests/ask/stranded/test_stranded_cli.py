"""``dralloc stranded`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dralloc.cli import app
from dralloc.cli.console import Exit
from wire import claim, device_class, gpus, node, request, resource_slice


def dralloc(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["stranded", *map(str, arguments)])


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Two devices, of which one has a taint, and a claim for one."""
    taint = {"key": "broken", "value": "fan", "effect": "NoSchedule"}
    devices = [*gpus(1), {**gpus(2)[1], "taints": [taint]}]
    path = tmp_path / "cluster.yaml"
    path.write_text(
        yaml.safe_dump_all(
            [
                node(),
                device_class(),
                resource_slice(devices),
                claim("one", request()),
            ]
        )
    )
    return path


def test_it_prints_what_strands_what(odd: Path) -> None:
    result = dralloc(odd)
    assert result.exit_code == Exit.DONE
    assert (
        "1 of 1 pools have free capacity that no claim of the mix can use"
        in result.stdout
    )
    assert "taint" in result.stdout
    assert "50.0%" in result.stdout


def test_it_prints_json(odd: Path) -> None:
    report = json.loads(
        dralloc(odd, "--json", "--claim", "default/one=3").stdout
    )
    assert report["mix"] == [{"like": "default/one", "claims": 3}]
    (row,) = report["pools"]
    assert (row["measure"], row["free"], row["usable"], row["stranded"]) == (
        "devices",
        2,
        1,
        {"taint": 1},
    )
    assert row["fragmented"] == {"sum": 3, "claims": 3}
    assert report["nodeKinds"][0]["nodeKind"] == "like node-0"


def test_what_it_refuses(odd: Path) -> None:
    result = dralloc(odd, "--claim", "default/none")
    assert result.exit_code == Exit.INPUT
    assert (
        "ResourceClaim or ResourceClaimTemplate default/none: not found"
        in result.stderr
    )
