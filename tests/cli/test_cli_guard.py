"""However a command ends: lines for people, an exit code for programs, never a traceback that nobody asked for."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

import dralloc
from conftest import ROOT
from dralloc.cli import app
from dralloc.cli.console import Exit
from dralloc.objects.errors import CheckError, DrallocError
from wire import (
    claim,
    device_class,
    gpus,
    node,
    request,
    resource_slice,
)

MODEL = str(ROOT / "models" / "gang")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """A command line with ``dralloc`` in it, as a shell runs it."""
    defined = f'dralloc() {{ "{sys.executable}" -m dralloc "$@"; }}; set -o pipefail; {command}'
    return subprocess.run(
        ["bash", "-c", defined], capture_output=True, text=True, check=False
    )


ENDS = {
    "of the user": (
        DrallocError("no such node"),
        Exit.INPUT,
        "error: no such node",
    ),
    "two lines": (
        DrallocError("a: is wrong\nb: is wrong"),
        Exit.INPUT,
        "error: a: is wrong\nerror: b: is wrong",
    ),
    "commands for the terminal": (
        DrallocError("\x1b[31m[red]"),
        Exit.INPUT,
        r"error: \x1b[31m[red]",
    ),
    "disk": (
        OSError(errno.ENOSPC, "No space left", "out.json"),
        Exit.INPUT,
        "error: out.json: No space left",
    ),
    "nesting": (
        RecursionError("maximum depth"),
        Exit.INPUT,
        "error: the input is nested too deeply",
    ),
    "memory": (MemoryError(), Exit.INPUT, "error: there is not enough memory"),
    "encoding": (
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        Exit.INPUT,
        "error: text in another encoding: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
    ),
    "reader": (BrokenPipeError(), Exit.DONE, ""),
    "checker": (
        CheckError("device gpu-0: taken twice"),
        Exit.DEFECT,
        "error: internal error: the answer broke a rule and is withheld; please report it\n"
        "error: device gpu-0: taken twice",
    ),
    "defect": (
        ZeroDivisionError("division\nby zero"),
        Exit.DEFECT,
        "error: internal error: ZeroDivisionError: division by zero; please report it, with what dralloc --debug "
        "COMMAND prints",
    ),
}


@pytest.mark.parametrize(
    "arguments",
    [
        ("allocate", MODEL, "--mode", "best"),
        ("allocate", MODEL, "--goal", "best"),
        ("conformance", MODEL, "--kind", "best"),
        ("plan", "headroom", MODEL, "--workers", "best"),
    ],
)
def test_a_wrong_word_is_told_without_the_words_of_a_library(
    arguments: tuple[str, ...],
) -> None:
    result = run(*arguments)
    assert result.exit_code == Exit.INPUT
    assert "Value error" not in result.stderr
    assert f"Invalid value for '{arguments[-2]}': " in result.stderr


@pytest.mark.parametrize("end", ENDS)
def test_each_end_has_its_words_and_its_code(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, code, words = ENDS[end]

    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(dralloc, "load", broken)
    result = run("allocate", MODEL)
    assert (result.exit_code, result.stderr.rstrip("\n"), result.stdout) == (
        code,
        words,
        "",
    )


def test_a_traceback_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("\x1b[2J")

    monkeypatch.setattr(dralloc, "load", broken)
    result = run("--debug", "allocate", MODEL)
    assert result.exit_code == Exit.DEFECT
    assert result.stderr.startswith("Traceback (most recent call last):\n")
    assert "in broken\n" in result.stderr
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["allocate", MODEL, "--workers", "100000"], "--workers"),
        (["allocate", MODEL, "--jobs", "100000"], "--jobs"),
        (["allocate", MODEL, "--seed", "99999999999"], "--seed"),
        (["allocate", MODEL, "--time-limit", "nan"], "--time-limit"),
        (["compare", MODEL, "--workers", "many"], "--workers"),
        (["study", MODEL, "--jobs", "0"], "--jobs"),
        (["plan", "headroom", MODEL, "--points", "-1"], "--points"),
        (["allocate"], "nothing to read"),
        (["allocat", MODEL], "allocat"),
        (["allocate", MODEL, "--\x1b[31m"], r"--\x1b[31m"),
    ],
)
def test_a_command_line_that_cannot_be_used_is_one_line(
    arguments: list[str], words: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == Exit.INPUT
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert words in line


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["allocate", MODEL, "--json", "-o", "yaml"], "--json and -o yaml"),
        (["study", MODEL, "--to", "-", "--json"], "--to - and -o json"),
        (
            ["simulate", MODEL, "--recorded", "--to", "-", "-o", "yaml"],
            "--to - and -o yaml",
        ),
        (["validate", MODEL, "--sarif", "-o", "name"], "--sarif and -o name"),
    ],
)
def test_one_form_is_asked_for(arguments: list[str], options: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (
        Exit.INPUT,
        "",
        f"error: {options}: only one of them\n",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", MODEL, "--to", "-"],
        ["export-model", MODEL, "--to", "-"],
        ["simulate", MODEL, "--recorded", "--report", "-"],
    ],
)
def test_what_is_a_file_is_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """Nor does a file get the name that stands for standard output elsewhere."""
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (Exit.INPUT, "")
    assert "is written to a file, and not to standard output" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [[], ["plan"]])
def test_without_a_command_there_is_help(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == Exit.DONE
    assert result.stdout.startswith("Usage: ")


def test_the_version() -> None:
    assert run("--version").stdout == f"{dralloc.__version__}\n"


@pytest.mark.parametrize(
    "pipe",
    [
        "--help | head -1",
        "--help | true",
        f"compare {MODEL} | head -1",
        f"compare {MODEL} 2>&1 | true",
        f"allocate {MODEL} -o json | true",
    ],
)
def test_a_reader_that_leaves_is_no_failure(pipe: str) -> None:
    ended = shell(f"dralloc {pipe}")
    assert (ended.returncode, ended.stderr) == (Exit.DONE, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk here")
@pytest.mark.parametrize("command", ["--help", f"compare {MODEL}"])
def test_a_full_disk_is_one_line(command: str) -> None:
    ended = shell(f"dralloc {command} > /dev/full")
    assert ended.returncode == Exit.INPUT
    assert (
        ended.stderr == f"error: input or output: {os.strerror(errno.ENOSPC)}\n"
    )


@pytest.mark.parametrize("form", ["table", "name", "json", "yaml"])
def test_what_the_output_cannot_encode_is_an_escape(
    form: str, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.yaml"
    objects = node("n-\u4e2d"), claim("c-\u4e2d", request())
    slices = resource_slice(gpus(1), nodeName="n-\u4e2d")
    path.write_text(yaml.safe_dump_all([device_class(), slices, *objects]))
    ended = shell(
        f"PYTHONIOENCODING=latin-1 dralloc allocate {path} -q -o {form}"
    )
    assert (ended.returncode, ended.stderr) == (Exit.DONE, "")
    assert "c-\\u4e2d" in ended.stdout.lower()


@pytest.mark.parametrize("command", ["allocate", "redact"])
def test_no_output_at_all_is_no_failure(command: str) -> None:
    assert shell(f"dralloc {command} {MODEL} >&- 2>&-").returncode == Exit.DONE
    assert shell(f"dralloc {command} {MODEL} -q >&-").stderr == ""


@pytest.mark.parametrize("command", ["allocate", "redact", "validate"])
def test_no_input_at_all_is_one_line(command: str) -> None:
    ended = shell(f"dralloc {command} - <&-")
    assert (ended.returncode, ended.stderr) == (
        Exit.INPUT,
        "error: <stdin>: is closed\n",
    )
