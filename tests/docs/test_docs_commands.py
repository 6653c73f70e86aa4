"""What the documentation shows is true: every command runs and prints this, every Python example holds."""

from __future__ import annotations

import doctest
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import ROOT
from docs.outputs import COMMAND, FENCE, PAGES, answered, refreshed

_EQUALLY_GOOD: Final = re.compile(
    r"^(Utilisation|Only the optimum places|The optimum places, [^\n]*) *\n.*?(\n\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_SECONDS: Final = re.compile(r"\d+(\.\d+)? s\b")
_RULES: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def fences(page: Path, *languages: str) -> Iterator[str]:
    return (
        block["text"]
        for block in FENCE.finditer(page.read_text())
        if block["language"] in languages
    )


def commands() -> dict[str, dict[Path, str]]:
    """By command the pages that show it, each with what it says is printed: nothing if the page leaves that out.

    Commands have a prompt; in the READMEs of models some have none, and their output follows elsewhere.
    """
    pages_by_command: dict[str, dict[Path, str]] = defaultdict(dict)
    for page in PAGES:
        for text in fences(page, "", "console"):
            for shown in COMMAND.finditer(text):
                pages_by_command[shown["command"]][page] = shown["output"]
            if text.startswith("dralloc "):
                pages_by_command.update(
                    {
                        line: {page: ""}
                        for line in text.splitlines()
                        if line not in pages_by_command
                    }
                )
    return pages_by_command


SHOWN: Final = commands()


def writers(command: str) -> list[str]:
    """The commands that write what a command reads in build/: tests run side by side, in any order."""
    files = [word for word in command.split() if word.startswith("build/")]
    return [
        shown
        for shown in SHOWN
        if shown != command and any(f"--to {file}" in shown for file in files)
    ]


def settled(text: str) -> str:
    """The text without what differs from run to run, or from one version of the solver to the next: of many
    optimal answers any may come.
    """
    return _SECONDS.sub("0.0 s", _EQUALLY_GOOD.sub("", text))


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are shown as given in the checkout; what they write goes to build/."""
    monkeypatch.chdir(ROOT)
    (ROOT / "build").mkdir(exist_ok=True)


@pytest.mark.parametrize("command", SHOWN)
def test_a_command_prints_what_is_shown(command: str) -> None:
    for writer in writers(command):
        answered(writer)
    code, output = answered(command)
    assert code == 0, output
    for page, shown in SHOWN[command].items():
        same = doctest.OutputChecker().check_output(
            settled(shown or "..."), settled(output), _RULES
        )
        assert same, f"{page} shows\n{shown}\nbut it is\n{output}"


def test_the_first_example_of_the_readme_is_what_is_printed_line_by_line() -> (
    None
):
    """With which of many equally good answers it is: ``python -m docs.outputs`` writes it there."""
    page = ROOT / "README.md"
    shown = next(COMMAND.finditer(next(fences(page, "console"))))
    lines = [
        line.rstrip() for line in answered(shown["command"])[1].splitlines()
    ]
    assert _SECONDS.sub("0.0 s", shown["output"]).splitlines() == [
        _SECONDS.sub("0.0 s", line) for line in lines
    ]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(fences(page, "python"))],
    ids=lambda page: page.stem,
)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path) -> None:
    names: dict[str, Any] = {}
    for text in fences(page, "python"):
        exec(compile(text, str(page), "exec"), names)


def test_outputs_are_written_into_pages_unless_they_leave_something_out() -> (
    None
):
    page = "```console\n$ dralloc schema validate\nold\n```\n\n```console\n$ dralloc schema drain\nold\n...\n```\n"
    written = refreshed(page)
    assert '"title": "ValidationDocument"' in written
    assert written.endswith(
        "```console\n$ dralloc schema drain\nold\n...\n```\n"
    )
