"""What reaches a terminal: text that fits it, and no commands out of the input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from conftest import ROOT
from dralloc.cli import app
from dralloc.cli.console import Exit
from wire import claim, device_class, node, pod, request, resource_slice

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
    objects = [
        node(f"node{EVIL}"),
        device_class(f"gpu{EVIL}", expression),
        slices,
    ]
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


LONG = "x" * 55
"""What names of 60 characters end in."""


@pytest.fixture
def long_names(tmp_path: Path) -> Path:
    """Two nodes with a device each and three pods; each name has 60 characters."""
    objects = [device_class(f"clas-{LONG}")]
    for number in range(2):
        node_name = f"nod{number}-{LONG}"
        devices = [
            {
                "name": f"dev{number}-{LONG}",
                "attributes": {"model": {"string": f"mod{number}-{LONG}"}},
            }
        ]
        published = resource_slice(
            devices,
            name=f"slc{number}-{LONG}",
            pool=f"poo{number}-{LONG}",
            nodeName=node_name,
        )
        objects += [node(node_name), published]
    for number in range(3):
        asked = request(f"req-{LONG}", device_class=f"clas-{LONG}")
        objects += [
            claim(f"cla{number}-{LONG}", asked),
            pod(f"pod{number}-{LONG}", f"cla{number}-{LONG}"),
        ]
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


ASKING = {
    "allocate": [],
    "capacity": [],
    "compare": ["--modes", "scheduler,first-fit,optimal"],
    "explain": [],
    "explain --pod": ["--pod", f"default/pod2-{LONG}"],
    "stranded": [],
    "validate": [],
    "plan headroom": ["--pod", f"default/pod0-{LONG}"],
    "plan fewest-nodes": [],
    "plan defragment": ["--moves", "1"],
    "plan partition-layout": [],
    "plan preempt": ["--pod", f"default/pod2-{LONG}"],
    "plan drain": [f"nod0-{LONG}", "-f"],
}
"""All commands that print tables about a cluster, with what they need."""


@pytest.mark.parametrize("columns", ["80", ""])
@pytest.mark.parametrize("command", ASKING)
def test_no_name_is_split_and_no_line_is_wrapped(
    command: str,
    columns: str,
    long_names: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    words = [word for word in command.split() if not word.startswith("--")]
    result = run(*words, *ASKING[command], long_names)
    assert result.exit_code in (Exit.DONE, Exit.FAILED), result.output
    shown = result.stdout + result.stderr
    assert {len(run_of_x) for run_of_x in re.findall("xx+", shown)} <= {
        len(LONG)
    }
    tables = [
        line for line in result.stdout.splitlines() if line.startswith(" ")
    ]
    assert not any(line.endswith(" ") for line in tables)
    warnings = [line for line in result.stderr.splitlines() if line]
    assert all(line.startswith(("warning: ", "error: ")) for line in warnings)


def test_forms_of_an_answer(long_names: Path) -> None:
    names = run("explain", long_names, "-o", "name").stdout.split()
    assert names == [f"default/pod2-{LONG}"]
    assert (
        json.loads(run("explain", long_names, "-o", "json").stdout)["pending"]
        == 1
    )
    assert (
        yaml.safe_load(run("explain", long_names, "-o", "yaml").stdout)[
            "pending"
        ]
        == 1
    )
    rows = run("capacity", long_names, "--no-headers").stdout.splitlines()
    assert len(rows) == 4
    assert all(
        line.split()[0] in {"gpu.example.com", f"nod0-{LONG}", f"nod1-{LONG}"}
        for line in rows
    )
    wide = run("capacity", long_names, "-o", "wide").stdout
    assert "\nPools\n" in wide
    assert "\nPools\n" not in run("capacity", long_names).stdout
