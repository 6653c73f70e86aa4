"""What the documentation shows of commands: ``python -m docs.outputs`` writes their real output into the pages.

Where a page leaves something out with ``...``, it stays as it is; tests compare all of them with what is printed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from typer.testing import CliRunner

import benchmarks.cli
import dralloc.cli

__all__ = ["COMMAND", "FENCE", "PAGES", "answered", "refreshed"]

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = sorted(
    [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "models").glob("*/README.md"),
    ]
)
FENCE: Final = re.compile(
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
COMMAND: Final = re.compile(
    r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE
)


def answered(command: str) -> tuple[int, str]:
    """Exit code and output of a command line."""
    words = shlex.split(command)
    if words[:3] == ["python", "-m", "benchmarks"]:
        result = CliRunner().invoke(benchmarks.cli.app, words[3:])
    else:
        assert words[0] == "dralloc", command
        result = CliRunner().invoke(dralloc.cli.app, words[1:])
    return result.exit_code, result.stdout


def refreshed(text: str) -> str:
    """A page with the output of its commands as it is now."""
    return FENCE.sub(_with_outputs, text)


def _with_outputs(fence: re.Match[str]) -> str:
    return (
        COMMAND.sub(_with_output, fence[0])
        if fence["language"] == "console"
        else fence[0]
    )


def _with_output(shown: re.Match[str]) -> str:
    if not shown["output"] or "..." in shown["output"]:
        return shown[0]
    lines = answered(shown["command"])[1].splitlines()
    return f"$ {shown['command']}\n" + "".join(
        f"{line.rstrip()}\n" for line in lines
    )


def _changed() -> Iterator[Path]:
    for page in PAGES:
        text = page.read_text()
        now = refreshed(text)
        if now != text:
            page.write_text(now)
            yield page


if __name__ == "__main__":
    for page in _changed():
        print(page.relative_to(ROOT))
