"""``--jobs`` and ``--backend`` of the commands that look for the optimum."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import dralloc
from conftest import ROOT
from dralloc.cli import app
from dralloc.cli.console import Exit

MODEL = ROOT / "models" / "keps" / "4815-mig-profile-counts"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def without_seconds(document: Any) -> Any:
    if isinstance(document, dict):
        return {
            key: without_seconds(value)
            for key, value in document.items()
            if key != "timings"
        }
    return (
        [without_seconds(entry) for entry in document]
        if isinstance(document, list)
        else document
    )


@pytest.mark.parametrize(
    "command", [["allocate", "-o", "json"], ["compare", "--json"]]
)
def test_two_jobs_answer_as_one(command: list[str]) -> None:
    single, two = (run(*command, MODEL, "--jobs", str(jobs)) for jobs in (1, 2))
    assert single.exit_code == two.exit_code == Exit.DONE
    assert without_seconds(json.loads(single.stdout)) == without_seconds(
        json.loads(two.stdout)
    )


def test_the_model_has_work_for_two() -> None:
    assert (
        "components"
        in dralloc.allocate(dralloc.load(MODEL), jobs=2).solution.timings
    )


def test_what_is_missing_is_an_error_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "joblib.externals.loky", None)
    result = run("allocate", MODEL, "--jobs", "2", "--quiet")
    assert result.exit_code == Exit.INPUT
    assert (
        result.stderr
        == "error: several jobs need joblib: pip install 'dralloc[parallel]'\n"
    )


@pytest.mark.parametrize("options", [["--backend", "spark"], ["--jobs", "0"]])
def test_errors_of_users(options: list[str]) -> None:
    assert run("compare", MODEL, *options).exit_code == Exit.INPUT
