"""Completion for a shell that is named, which need not be the one that dralloc is called from."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dralloc.cli import app
from dralloc.objects.load import load

SCRIPTS = {
    "bash": "COMPREPLY",
    "zsh": "#compdef dralloc",
    "fish": "complete --command dralloc",
    "pwsh": "PSReadLine",
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="dralloc")


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_is_for_the_shell_that_is_named(shell: str) -> None:
    result = run("--show-completion", shell)
    assert result.exit_code == 0
    assert {
        name for name, mark in SCRIPTS.items() if mark in result.stdout
    } == {shell}


def test_it_is_installed_for_the_shell_that_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    result = run("--install-completion", "zsh")
    assert result.exit_code == 0
    assert (tmp_path / ".zshrc").exists()
    assert not (tmp_path / ".bashrc").exists()


def test_an_unknown_shell_is_named() -> None:
    result = run("--show-completion", "tcsh")
    assert result.exit_code == 2
    assert (
        "there is no shell 'tcsh'; known shells: bash, zsh, " in result.stderr
    )


def completed(line: str) -> set[str]:
    """Return what bash offers for the last word of a line."""
    words = line.split(" ")
    environment = {
        "_DRALLOC_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    result = CliRunner().invoke(app, [], prog_name="dralloc", env=environment)
    return set(filter(None, result.stdout.splitlines()))


MODEL = "models/gang"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("dralloc explain {} --claim ", "claims"),
        ("dralloc explain {} --pod ", "pods"),
        ("dralloc explain {} --node ", "nodes"),
        ("dralloc allocate {} --node ", "nodes"),
        ("dralloc plan headroom {} --template ", "templates"),
        ("dralloc plan headroom {} --claim ", "claims and templates"),
        ("dralloc plan drain -f {} ", "nodes"),
        ("dralloc capacity {} --by ", "attributes"),
    ],
)
def test_names_are_those_of_the_files_on_the_command_line(
    line: str, names: str
) -> None:
    cluster = load(MODEL)
    of_cluster = {
        "claims": {str(claim.key) for claim in cluster.claims},
        "templates": {str(made.key) for made in cluster.templates},
        "pods": {str(pod.key) for pod in cluster.pods},
        "nodes": {node.name for node in cluster.nodes},
        "attributes": {
            name
            for published in cluster.slices
            for device in published.spec.devices
            for name in device.attributes
        },
    }
    kinds = names.split(" and ")
    expected = set().union(*(of_cluster[kind] for kind in kinds))
    assert expected
    assert completed(line.format(MODEL)) == set(sorted(expected)[:100])
    name = min(expected)
    assert name in completed(line.format(MODEL) + name[:-1])


def test_without_files_no_names_are_offered(tmp_path: Path) -> None:
    assert completed("dralloc explain --claim ") == set()
    assert completed(f"dralloc explain {tmp_path} --claim ") == set()
