"""Ctrl-C while the optimum is searched: the best answer so far, checked, with its gap."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from benchmarks.export import export
from benchmarks.registry import WORKLOADS
from benchmarks.workloads import bundles

PATIENCE = 300
"""Seconds."""

pty = pytest.importorskip("pty", reason="no pseudo-terminals here")


def watch(terminal: int, run: subprocess.Popen[bytes]) -> str:
    """Read all that a program shows; press Ctrl-C when it has told its gap."""
    shown = ""
    pressed = False
    while True:
        try:
            news = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            return shown
        shown += news.decode(errors="replace")
        if not pressed and "gap" in shown:
            run.send_signal(signal.SIGINT)
            pressed = True


@contextmanager
def ended(run: subprocess.Popen[bytes]) -> Iterator[None]:
    """A program that does not end would never let the test end."""
    timer = Timer(PATIENCE, run.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_returns_the_best_answer_so_far(tmp_path: Path) -> None:
    assert bundles
    # So many bundles are far beyond what the model of single devices can prove.
    export(WORKLOADS["bundles"].objects(24, 4), tmp_path / "cluster")
    terminal, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "dralloc",
        "allocate",
        str(tmp_path / "cluster"),
        "--goal",
        "spread",
        "-o",
        "json",
    ]
    answer = tmp_path / "answer.json"
    with (
        answer.open("wb") as out,
        subprocess.Popen(
            command,
            stdout=out,
            stderr=theirs,
            env={**os.environ, "COLUMNS": "200"},
        ) as run,
        ended(run),
    ):
        os.close(theirs)
        shown = watch(terminal, run)
    os.close(terminal)
    assert run.returncode == 0, shown
    assert "optimum, weight: best" in shown
    assert "rror" not in shown
    document = json.loads(answer.read_text())
    assert document["status"] == "FEASIBLE"
    assert 0 < document["gap"] <= 1
    assert 0 < document["tiers"][0]["value"] < document["tiers"][0]["bound"]
