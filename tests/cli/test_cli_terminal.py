"""What reaches a terminal: text that fits it, and no commands out of the input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from conftest import ROOT
from dralloc.cli import app
from dralloc.cli.guard import Exit
from wire import claim, device_class, node, request, resource_slice

EVIL = "\x1b[31m[red]\u202e"
SHOWN = r"\x1b[31m[red]\u202e"
MODEL = ROOT / "models" / "keps" / "4815-five-devices"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A cluster of which each name, and an expression, has commands for a terminal."""
    path = tmp_path / "cluster.yaml"
    expression = f"device.driver != '{EVIL}'"
    slices = resource_slice(
        [{"name": f"gpu{EVIL}", "colour": EVIL}],
        name=f"slice{EVIL}",
        nodeName=f"node{EVIL}",
    )
    objects = [node(f"node{EVIL}"), device_class(f"gpu{EVIL}", expression), slices]
    asked = request(f"r{EVIL}", device_class=f"gpu{EVIL}")
    path.write_text(
        yaml.safe_dump_all(
            [*objects, claim(f"a{EVIL}", asked), claim(f"b{EVIL}", asked)]
        )
    )
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["allocate"],
        ["compare"],
        ["explain", "--claim", f"default/b{EVIL}"],
        ["explain", "--claim", f"default/none{EVIL}"],
        ["stranded"],
        ["validate"],
        ["plan", "headroom", "--claim", f"default/b{EVIL}"],
        ["plan", "fewest-nodes"],
        ["allocate", "--node", EVIL],
        ["allocate", "--feature", EVIL],
        ["report", "-o", f"/nowhere{EVIL}/page.html"],
    ],
)
def test_names_are_shown_and_not_obeyed(evil: Path, command: list[str]) -> None:
    result = run(*command, evil)
    shown = result.stdout + result.stderr
    assert result.exit_code in tuple(Exit)[:3]
    assert "".join(SHOWN.split()) in "".join(shown.split())
    assert all(line.isprintable() for line in shown.split("\n"))


def test_data_for_machines_is_exact(evil: Path) -> None:
    found = json.loads(run("allocate", evil, "-o", "json").stdout)
    assert [one["demand"] for one in found["unplaced"]] == [f"default/b{EVIL}"]
    (written,) = yaml.safe_load_all(run("allocate", evil, "-o", "yaml").stdout)
    assert written["metadata"]["name"] == f"a{EVIL}"


@pytest.mark.parametrize(
    ("columns", "width"),
    [("80", 80), ("50", 50), ("0", 40), (None, 120), ("wide", 120)],
)
def test_tables_are_as_wide_as_they_may_be(
    columns: str | None, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    lines = run("validate", MODEL).stdout.splitlines()
    assert "0 errors, 1 warning, 0 remarks" in lines
    assert width // 2 < max(map(len, lines)) <= width
