"""Ctrl-C while the optimum is searched: the best answer so far, checked, with its gap."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.export import export
from benchmarks.registry import WORKLOADS
from benchmarks.workloads import bundles

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


def until(terminal: int, word: str) -> str:
    """Read what a program shows until it has said something."""
    shown = ""
    while word not in shown:
        shown += os.read(terminal, 4096).decode(errors="replace")
    return shown


def test_ctrl_c_returns_the_best_answer_so_far(tmp_path: Path) -> None:
    assert bundles
    # Fifty nodes that all differ: the search is not over within a minute.
    export(WORKLOADS["bundles"].objects(50, 4), tmp_path)
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-m", "dralloc", "allocate", str(tmp_path), "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "COLUMNS": "200"}) as run:
        os.close(theirs)
        shown = until(terminal, "gap")
        run.send_signal(signal.SIGINT)
        assert run.stdout is not None
        answer = run.stdout.read().decode()
    assert run.returncode == 0, shown
    assert "optimum, weight: best" in shown
    assert '"status": "FEASIBLE"' in answer
    assert '"gap": 0.0' in answer
