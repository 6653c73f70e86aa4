"""Everything that waits is let go when the queue is taken away."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dralloc.cli import app
from dralloc.cli.console import Exit
from dralloc.live.apply import TaintRuleFence
from dralloc.live.apply.fence import run_of
from dralloc.live.batch.pod_notes import CONDITION
from dralloc.live.snapshot import Refused
from live.apply.runs import gated
from live.batch.queues import Clock, crowd, queue, waiting
from simulated import Simulated
from simulated_http import serving
from wire import Json


def release_all(server: Simulated, tmp_path: Path) -> Result:
    with serving(server, tmp_path) as kubeconfig:
        options = [
            "--kubeconfig",
            str(kubeconfig),
            "--lease",
            "system/batch",
            "--release-all",
        ]
        return CliRunner().invoke(
            app, ["batch", *options], env={"NO_PROXY": "127.0.0.1"}
        )


def test_gates_are_taken_and_fences_of_the_queue_lifted(tmp_path: Path) -> None:
    server = Simulated()
    server.add(*crowd(2))
    server.send(
        "PATCH",
        "/api/v1/namespaces/default/pods/p1/status",
        {},
        {"status": {"conditions": [{"type": CONDITION, "status": "False"}]}},
    )
    other = gated("other", "p0")
    other["spec"]["schedulingGates"].append({"name": "other.example.com/gate"})
    server.add(other)
    with queue(server, Clock()) as replica:
        TaintRuleFence(replica.objects, f"{replica.runs}3-x").take(
            "gpu.example.com/pool-0"
        )
        TaintRuleFence(replica.objects, "run-7").take("gpu.example.com/pool-1")
    result = release_all(server, tmp_path)
    assert result.exit_code == Exit.DONE, result.output
    assert "released 3 pods, lifted 1 parts of fences" in result.stderr
    assert waiting(server) == ["other"]
    assert [run_of(rule) for rule in server.of("devicetaintrules")] == ["run-7"]
    (condition,) = server.one("pods", "p1")["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "Released")


@pytest.mark.parametrize("name", ["one", socket.gethostname()])
def test_nothing_is_released_while_a_replica_works(
    name: str, tmp_path: Path
) -> None:
    """Who asks may be on the host of the replica, or in its pod."""
    server = Simulated()
    server.add(*crowd(2))
    with queue(server, Clock(), name) as replica:
        replica.lease.renew()
        result = release_all(server, tmp_path)
    assert result.exit_code == Exit.INPUT
    assert (
        "a replica holds the Lease system/batch: end all of them first"
        in result.stderr
    )
    assert waiting(server) == ["p0", "p1"]


class WithoutNamespace(Simulated):
    """A server from which the namespace of the queue was deleted."""

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
    ) -> Json:
        if "/namespaces/system/" in path:
            raise Refused(404, 'namespaces "system" not found')
        return super().send(method, path, query, body)


def test_everything_is_released_after_the_queue_was_deleted(
    tmp_path: Path,
) -> None:
    server = WithoutNamespace()
    server.add(*crowd(2))
    result = release_all(server, tmp_path)
    assert result.exit_code == Exit.DONE, result.output
    assert waiting(server) == []
