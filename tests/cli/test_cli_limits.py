"""Every command that reads files takes limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from conftest import ROOT
from dralloc.cli import app
from dralloc.cli.console import Exit

MODEL = str(ROOT / "models" / "gang")
COMMANDS = (
    "allocate",
    "compare",
    "explain --pod ml/worker-0",
    "plan defragment --moves 1",
    "plan drain n",
    "plan fewest-nodes",
    "plan headroom --claim ml/a",
    "plan partition-layout",
    "plan preempt --pod ml/a",
    "redact",
    "report",
    "stranded",
    "study",
    "validate",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_limits_hold(command: str, tmp_path: Path) -> None:
    text = tmp_path / "aliases.yaml"
    text.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: m, labels: &a {a: b}, annotations: *a}\n"
    )
    file = (
        ["-f", str(text)] if command.startswith("plan drain") else [str(text)]
    )
    output = ["--to", str(tmp_path / "out.html")] if command == "report" else []
    ended = CliRunner().invoke(
        app, [*command.split(), *file, *output, "--limit", "aliases=4"]
    )
    assert ended.exit_code == Exit.INPUT
    assert (
        "aliases stand for more than 4 characters; --limit aliases=AMOUNT allows more"
        in ended.stderr
    )


def test_a_limit_that_does_not_exist() -> None:
    ended = CliRunner().invoke(app, ["allocate", MODEL, "--limit", "nodes=4"])
    assert ended.exit_code == Exit.INPUT
    assert ended.stderr == (
        "error: --limit nodes=4: expected NAME=AMOUNT with one of pods, unpacked, aliases\n"
    )
