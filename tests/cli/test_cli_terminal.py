"""What reaches a terminal: text that fits it, and no commands out of the input."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from conftest import ROOT
from dralloc.cli import app
from dralloc.cli.console import Exit
from simulated import Simulated
from simulated_http import serving
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
        ["report", "--to", f"/nowhere{EVIL}/page.html"],
    ],
)
def test_names_are_shown_and_not_obeyed(evil: Path, command: list[str]) -> None:
    result = run(*command, evil)
    shown = result.stdout + result.stderr
    assert result.exit_code in tuple(Exit)[:3]
    assert "".join(SHOWN.split()) in "".join(shown.split())
    assert all(line.isprintable() for line in shown.split("\n"))


def test_data_for_machines_is_exact(evil: Path) -> None:
    document = json.loads(run("allocate", evil, "-o", "json").stdout)
    assert [row["demand"] for row in document["unplaced"]] == [
        f"default/b{EVIL}"
    ]
    (written,) = yaml.safe_load_all(run("allocate", evil, "-o", "yaml").stdout)
    assert written["metadata"]["name"] == f"a{EVIL}"


LONG = "x" * 55
"""What names of 60 characters end in."""


@pytest.fixture
def long_names(tmp_path: Path) -> Path:
    """Two nodes with a device each and three pods; each name has 60 characters."""
    objects = [device_class(f"clas-{LONG}")]
    for node_index in range(2):
        node_name = f"nod{node_index}-{LONG}"
        devices = [
            {
                "name": f"dev{node_index}-{LONG}",
                "attributes": {"model": {"string": f"mod{node_index}-{LONG}"}},
            }
        ]
        published = resource_slice(
            devices,
            name=f"slc{node_index}-{LONG}",
            pool=f"poo{node_index}-{LONG}",
            nodeName=node_name,
        )
        objects += [node(node_name), published]
    for pod_index in range(3):
        asked = request(f"req-{LONG}", device_class=f"clas-{LONG}")
        objects += [
            claim(f"cla{pod_index}-{LONG}", asked),
            pod(f"pod{pod_index}-{LONG}", f"cla{pod_index}-{LONG}"),
        ]
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


ABOUT_FILES = {
    "allocate": [],
    "allocate --mode first-fit": [],
    "capacity": [],
    "compare": ["--modes", "scheduler,first-fit,optimal"],
    "explain": [],
    "explain --pod": [f"default/pod2-{LONG}"],
    "report": ["--to", "/dev/null"],
    "stranded": [],
    "study": ["--modes", "first-fit,optimal"],
    "simulate": ["--mix", f"default/pod0-{LONG}", "--hours", "1"],
    "redact": [],
    "validate": [],
    "plan headroom": ["--pod", f"default/pod0-{LONG}"],
    "plan fewest-nodes": [],
    "plan defragment": ["--moves", "1"],
    "plan partition-layout": [],
    "plan preempt": ["--pod", f"default/pod2-{LONG}"],
    "plan drain": [f"nod0-{LONG}", "-f"],
}
"""The commands that are given a cluster, with what they need."""

ABOUT_SERVERS = {
    "apply": ["--dry-run", "client", "--probe", "", "--settle", "0"],
    "snapshot": [],
}
"""Those that read a live one."""

ABOUT_OTHERS = {
    "conformance": [f"cases-{LONG}.jsonl"],
    "example": [f"dir-{LONG}"],
    "export-model": [f"cluster-{LONG}.yaml", "--to", f"model-{LONG}.mps"],
}
"""Those about other things, with arguments in the folder of the test."""

OTHERS = {"batch": "a log, of which each event is a line", "schema": "JSON"}
"""Those that print no tables, and what they print."""


def commands(group: Any, *path: str) -> Iterator[str]:
    """Yield all commands that there are."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield " ".join((*path, name))


def test_every_command_is_looked_at() -> None:
    looked_at = {
        " ".join(word for word in words.split(" --")[0].split())
        for words in (*ABOUT_FILES, *ABOUT_SERVERS, *ABOUT_OTHERS, *OTHERS)
    }
    assert set(commands(typer.main.get_command(app))) == looked_at


def expect_whole_lines(of_80: Result, of_1000: Result) -> None:
    """In 80 columns and in a pipe every line is what it is in 1,000; no name is split, a warning is a line."""
    assert of_80.exit_code in (Exit.DONE, Exit.FAILED), of_80.output
    assert without_seconds(of_80.stdout) == without_seconds(of_1000.stdout)
    shown = of_80.stdout + of_80.stderr
    assert {len(run_of_x) for run_of_x in re.findall("xx+", shown)} <= {
        len(LONG)
    }
    tables = [
        line for line in of_80.stdout.splitlines() if line.startswith(" ")
    ]
    assert not any(line.endswith(" ") for line in tables)


def without_seconds(text: str) -> str:
    """Return a text without numbers, which differ as seconds do, and without the widths of their columns."""
    return re.sub(r"[-\d.]+(e-\d+)?| +", " ", text)


@pytest.mark.parametrize("columns", ["80", "", "0"])
@pytest.mark.parametrize("command", ABOUT_FILES)
def test_no_name_is_split_and_no_line_is_wrapped(
    command: str,
    columns: str,
    long_names: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if command == "report":
        pytest.importorskip("matplotlib")
    words = [*command.split(), *ABOUT_FILES[command]]
    results = []
    for width in (columns, "1000"):
        monkeypatch.setenv("COLUMNS", width)
        results.append(run(*words, long_names))
    expect_whole_lines(*results)
    told = [line for line in results[0].stderr.splitlines() if line]
    heads = ("warning: ", "error: ", "/dev/null: ")
    assert all(line.startswith(heads) for line in told), told
    assert len(told) == len(set(told))


@pytest.mark.parametrize("columns", ["80", "", "0"])
@pytest.mark.parametrize("command", ABOUT_SERVERS)
def test_neither_is_by_commands_about_live_clusters(
    command: str,
    columns: str,
    long_names: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Simulated()
    server.add(*yaml.safe_load_all(long_names.read_text()))
    results = []
    with serving(server, tmp_path) as kubeconfig:
        for width in (columns, "1000"):
            monkeypatch.setenv("COLUMNS", width)
            at = ["--kubeconfig", str(kubeconfig)]
            if command == "apply":
                at += ["--journal", str(tmp_path / "journal")]
            results.append(run(command, *at, *ABOUT_SERVERS[command]))
    expect_whole_lines(*results)


@pytest.mark.parametrize("columns", ["80", "", "0"])
@pytest.mark.parametrize("command", ABOUT_OTHERS)
def test_neither_is_by_commands_about_other_things(
    command: str,
    columns: str,
    long_names: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"cluster-{LONG}.yaml").write_text(long_names.read_text())
    cases = [
        {
            "id": f"case{case_index}-{LONG}",
            "expression": f"device.driver == 'dri{case_index}-{LONG}'",
            "device": {"driver": f"dri0-{LONG}"},
            "expect": "true",
        }
        for case_index in range(2)
    ]
    recorded = tmp_path / f"cases-{LONG}.jsonl"
    recorded.write_text("\n".join(map(json.dumps, cases)))
    results = []
    for width in (columns, "1000"):
        monkeypatch.setenv("COLUMNS", width)
        results.append(run(command, *ABOUT_OTHERS[command]))
        shutil.rmtree(tmp_path / f"dir-{LONG}", ignore_errors=True)
    expect_whole_lines(*results)
    if command == "conformance":
        assert f"case1-{LONG}" in results[0].stdout


@pytest.mark.parametrize(
    "shown",
    [
        f" node-{LONG}  3\n",
        f" node-{LONG[:30]}\n {LONG[30:]}\n",
        f" node-{LONG}  3 \n",
        f" node-{LONG}\n   3 devices\n",
    ],
)
def test_a_table_that_wraps_or_splits_would_be_seen(shown: str) -> None:
    whole = f" node-{LONG}  3 devices\n"

    def result(text: str) -> Result:
        printing = typer.Typer(add_completion=False)
        printing.command()(lambda: typer.echo(text, nl=False))
        return CliRunner().invoke(printing)

    expect_whole_lines(result(whole), result(whole))
    with pytest.raises(AssertionError):
        expect_whole_lines(result(shown), result(whole))


def expression_that_fails(expression_index: int) -> str:
    return (
        f'device.attributes["gpu.example.com"].absent{expression_index} == "a"'
    )


def test_many_failures_of_a_selector_are_one_line(long_names: Path) -> None:
    """One for each class or expression, however many claims and devices there are."""
    objects = list(yaml.safe_load_all(long_names.read_text()))
    for claim_index, number_of_expression in enumerate((0, 0, 0, 1)):
        asked = request(
            f"req-{LONG}",
            expression_that_fails(number_of_expression),
            device_class=f"clas-{LONG}",
        )
        objects.append(claim(f"fai{claim_index}-{LONG}", asked))
    long_names.write_text(yaml.safe_dump_all(objects))
    told = run("allocate", long_names).stderr.splitlines()
    assert len(told) == 2
    assert all("fails on 2 devices of driver" in line for line in told)


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
