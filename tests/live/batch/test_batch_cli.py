"""The command of the batch queue: a service, which ends when it is told to."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dralloc.cli import app
from dralloc.live.batch import BatchQueue
from live.batch.queues import crowd, until, waiting
from simulated import Simulated
from simulated_http import serving

PATIENCE = 60
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|ERROR) \S")


def test_the_service_works_and_ends_at_sigterm_with_lines_of_time_and_level(
    tmp_path: Path,
) -> None:
    server = Simulated()
    server.add(*crowd(2))
    options = [
        "--at-least",
        "1",
        "--port",
        "0",
        "--settle",
        "0",
        "--watch",
        "0",
        "--probe",
        "",
        "--lease",
        "system/batch",
    ]
    with serving(server, tmp_path) as kubeconfig:
        command = [
            sys.executable,
            "-m",
            "dralloc",
            "batch",
            "--kubeconfig",
            str(kubeconfig),
            *options,
        ]
        environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            try:
                until(lambda: waiting(server) == [], PATIENCE)
                until(lambda: server.of("devicetaintrules") == [], PATIENCE)
            finally:
                process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    lines = told.splitlines()
    assert [line for line in lines if not LINE.match(line)] == []
    assert (
        "fence: taint rules: kube-scheduler honours DeviceTaintRules"
        in lines[0]
    )
    assert lines[-1].endswith("ended")
    assert (
        server.one("leases", "batch", "system")["spec"]["holderIdentity"] == ""
    )


def test_the_service_collects_its_garbage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collects: list[bool] = []
    monkeypatch.setattr(
        BatchQueue, "run", lambda _queue: collects.append(gc.isenabled())
    )
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with serving(Simulated(), tmp_path) as kubeconfig:
        options = ["--kubeconfig", str(kubeconfig), "--port", "0"]
        result = CliRunner().invoke(
            app, ["batch", *options], env={"NO_PROXY": "127.0.0.1"}
        )
    assert result.exit_code == 0, result.output
    assert collects == [True]
