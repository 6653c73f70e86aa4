"""Completion for a shell that is named, which need not be the one that dralloc is called from."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dralloc.cli import app

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
