"""What the documentation shows is true: every command runs and prints this, every Python example holds."""

from __future__ import annotations

import doctest
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

import benchmarks.cli
import dralloc.cli
from conftest import ROOT

PAGES: Final = sorted(
    page for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "models").glob("*/README.md")]
)
_FENCE: Final = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_EQUALLY_GOOD: Final = re.compile(r"^(Utilisation|Only the optimum places) *\n.*?(\n\n|\Z)", re.DOTALL | re.MULTILINE)
_SECONDS: Final = re.compile(r"\d+(\.\d+)? s\b")
_RULES: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def fences(page: Path, *languages: str) -> Iterator[str]:
    return (found["text"] for found in _FENCE.finditer(page.read_text()) if found["language"] in languages)


def commands() -> dict[str, dict[Path, str]]:
    """By command the pages that show it, each with what it says is printed: nothing if the page leaves that out.

    Commands have a prompt; in the READMEs of models some have none, and their output follows elsewhere.
    """
    found: dict[str, dict[Path, str]] = defaultdict(dict)
    for page in PAGES:
        for text in fences(page, "", "console"):
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found[command][page] = output
            if text.startswith("dralloc "):
                found.update({line: {page: ""} for line in text.splitlines() if line not in found})
    return found


SHOWN: Final = commands()


def settled(text: str) -> str:
    """The text without what differs from run to run, or from one version of the solver to the next: of many
    optimal answers any may come.
    """
    return _SECONDS.sub("0.0 s", _EQUALLY_GOOD.sub("", text))


def answered(command: str) -> tuple[int, str]:
    """Exit code and output of a command line."""
    words = shlex.split(command)
    if words[:3] == ["python", "-m", "benchmarks"]:
        result = CliRunner().invoke(benchmarks.cli.app, words[3:])
    else:
        assert words[0] == "dralloc", command
        result = CliRunner().invoke(dralloc.cli.app, words[1:])
    return result.exit_code, result.stdout


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are shown as given in the checkout; what they write goes to build/."""
    monkeypatch.chdir(ROOT)
    (ROOT / "build").mkdir(exist_ok=True)


@pytest.mark.parametrize("command", SHOWN)
def test_a_command_prints_what_is_shown(command: str) -> None:
    code, output = answered(command)
    assert code == 0, output
    for page, shown in SHOWN[command].items():
        same = doctest.OutputChecker().check_output(settled(shown or "..."), settled(output), _RULES)
        assert same, f"{page} shows\n{shown}\nbut it is\n{output}"


@pytest.mark.parametrize("page", [page for page in PAGES if any(fences(page, "python"))], ids=lambda page: page.stem)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path) -> None:
    names: dict[str, Any] = {}
    for text in fences(page, "python"):
        exec(compile(text, str(page), "exec"), names)
