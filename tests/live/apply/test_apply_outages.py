"""The API server is away for a while, the disk is full, another run is at work: nothing is lost, and it is said."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dralloc.cli import app
from dralloc.cli.console import Exit
from dralloc.live.apply import JournalFile, NodeTaintFence, TaintRuleFence
from dralloc.live.apply.journal import JournalStep
from dralloc.objects.errors import ApplyError
from live.apply.runs import run_on, small_cluster
from live.apply.schedules import (
    LONG_AGO,
    Client,
    Setting,
    devices_of,
    refusal,
    unanswered,
)
from simulated import Simulated
from simulated_http import serving


def begun() -> Simulated:
    server = Simulated()
    server.add(*small_cluster())
    return server


def held(server: Simulated) -> list[str]:
    return [
        claim["metadata"]["name"]
        for claim in server.of("resourceclaims")
        if devices_of(claim)
    ]


@pytest.mark.parametrize("failure", [unanswered, refusal(500), refusal(429)])
def test_a_fence_is_lifted_although_requests_fail(
    failure: Callable[[], None],
) -> None:
    server = begun()
    client = Client(server)
    run = run_on(client)
    failures: list[int] = []

    def fail() -> None:
        written = (
            len(held(server)) == 2
            and run.journal.entries[-1]["step"] == JournalStep.LIFT
        )
        if written and len(failures) < 3:
            failures.append(client.steps)
            failure()

    client.agenda = dict.fromkeys(range(400), fail)
    run.write(run.plan()[1])
    assert len(failures) == 3
    assert server.of("devicetaintrules") == []


def test_a_fence_that_stays_is_named_with_how_to_lift_it() -> None:
    server = begun()
    run = run_on(server)
    units = run.plan()[1]
    run.pause = lambda _seconds: setattr(
        server, "denied", frozenset(["devicetaintrules"])
    )
    with pytest.raises(
        ApplyError,
        match=r"the fence is still there \(taint rules, 1 parts\): .*; --resume lifts it, or",
    ):
        run.write(units)


def test_a_rollback_needs_no_room_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = begun()
    journal = JournalFile(tmp_path / "journal")
    run = run_on(server, journal=journal)
    run.write(run.plan()[1])
    # As if it was killed before it released a pod.
    journal.entries = [
        entry
        for entry in journal.entries
        if entry["step"] not in (JournalStep.RELEASE, JournalStep.END)
    ]
    TaintRuleFence(run.objects, run.name).take("gpu.example.com/pool-0")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dralloc.live.apply.journal.os.fsync", full)
    with pytest.raises(
        ApplyError, match="cannot be written: No space left on device"
    ):
        journal.add(JournalStep.FINALIZER)
    journal.entries.pop()
    outcome = run_on(server, journal=journal).rollback()
    assert len(outcome.taken_back or ()) == 2
    assert held(server) == []
    assert server.of("devicetaintrules") == []


@pytest.mark.parametrize("step", range(0, 200, 5))
def test_another_process_rolls_back_although_nothing_can_be_noted(
    step: int,
) -> None:
    world = Setting().world()
    world.apply({step: world.journal.kill})
    world.rollback({0: world.journal.fill})
    assert world.fences == {}
    world.check()


def test_a_new_run_goes_on_with_the_journal_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = begun()
    first = JournalFile(tmp_path / "journal")
    run = run_on(server, journal=first)
    units = run.plan()[1]
    first.add(
        JournalStep.BEGIN,
        run=run.name,
        fence=run.fence.kind,
        gate=run.selection.gate,
        units=[unit.to_dict() for unit in units],
    )
    part = "gpu.example.com/pool-0"
    first.add(JournalStep.FENCE, parts=[part])
    run.fence.take(part)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dralloc.live.apply.journal.os.fsync", full)
    run_on(server, "run-2", journal=JournalFile(first.path)).rollback()
    assert server.of("devicetaintrules") == []


def test_half_a_line_is_in_the_way_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = JournalFile(path)
    journal.add(JournalStep.BEGIN, run="run-1", fence="none", units=[])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    room = path.stat().st_size + 9
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(ApplyError, match="cannot be written"):
            journal.add(JournalStep.FENCE, parts=["pool-0", "pool-1"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    journal.add(JournalStep.LIFT, parts=[])
    steps = [entry["step"] for entry in JournalFile(path).entries]
    assert steps == [JournalStep.BEGIN, JournalStep.LIFT]


@pytest.mark.parametrize("is_own", [True, False])
def test_a_fence_that_may_not_be_lifted_ends_a_run_before_it_begins(
    tmp_path: Path, is_own: bool
) -> None:
    server = begun()
    objects = run_on(server).objects
    NodeTaintFence(objects, f"run-7{LONG_AGO}").take("node-0")
    server.denied = frozenset({"nodes"})
    journal = JournalFile(tmp_path / "journal")
    run = run_on(server, journal=journal)
    units = run.plan()[1]
    if is_own:
        journal.add(
            JournalStep.BEGIN, run=f"run-7{LONG_AGO}", fence="none", units=[]
        )
        journal.add(JournalStep.FENCE, parts=["node-0"])
    with pytest.raises(ApplyError, match=r"over cannot be lifted: HTTP 403"):
        run.resume() if is_own else run.write(units)
    assert journal.unfinished is is_own
    assert held(server) == []


def test_another_runs_fence_is_named_and_is_a_failure() -> None:
    server = begun()
    NodeTaintFence(run_on(server).objects, "run-7").take("node-0")
    run = run_on(server)
    outcome = run.write(run.plan()[1])
    assert outcome.failed
    assert [aside.reason for aside in outcome.unplaced] == [
        "fits on no node; run run-7 fences 1 part of the cluster"
    ] * 2
    assert outcome.to_dict()["foreign"][0]["parts"] == ["Node node-0"]


def apply(server: Simulated, tmp_path: Path, *options: str) -> Result:
    with serving(server, tmp_path) as kubeconfig:
        files = [
            "--kubeconfig",
            str(kubeconfig),
            "--journal",
            str(tmp_path / "journal"),
        ]
        return CliRunner().invoke(
            app, ["apply", *files, *options], env={"NO_PROXY": "127.0.0.1"}
        )


def test_what_is_fenced_is_shown_and_lifted(tmp_path: Path) -> None:
    server = begun()
    objects = run_on(server).objects
    NodeTaintFence(objects, "run-7").take("node-0")
    TaintRuleFence(objects, "run-8").take("gpu.example.com/pool-0")
    JournalFile(tmp_path / "journal").add(
        JournalStep.BEGIN, run="run-7", fence="node taints", gate="", units=[]
    )
    shown = apply(server, tmp_path, "--status", "--json")
    assert shown.exit_code == Exit.FAILED
    answer = json.loads(shown.stdout)
    assert [fence["run"] for fence in answer["fences"]] == ["run-7", "run-8"]
    assert answer["unfinished"] == "run-7"
    assert all(fence["since"] for fence in answer["fences"])
    assert (
        "run run-7 is unfinished" in apply(server, tmp_path, "--status").stdout
    )
    apply(server, tmp_path, "--lift", "run-8")
    assert server.of("devicetaintrules") == []
    assert [
        fence["run"]
        for fence in json.loads(
            apply(server, tmp_path, "--status", "--json").stdout
        )["fences"]
    ] == ["run-7"]
    apply(server, tmp_path, "--lift", "all")
    assert "nothing is fenced" in apply(server, tmp_path, "--status").stdout


def test_a_fence_that_nobody_may_lift_is_no_defect(tmp_path: Path) -> None:
    server = begun()
    NodeTaintFence(run_on(server).objects, "run-7").take("node-0")
    server.denied = frozenset({"nodes"})
    denied = apply(server, tmp_path, "--lift", "run-7")
    assert denied.exit_code == Exit.INPUT
    assert denied.stderr.splitlines()[-1].endswith(": HTTP 403: nobody may")


@pytest.mark.parametrize(
    "action", [["--resume"], ["--rollback"], ["--lift", "all"]]
)
@pytest.mark.parametrize("dry_run", ["client", "server"])
def test_what_ends_a_run_is_not_tried(
    tmp_path: Path, action: list[str], dry_run: str
) -> None:
    server = begun()
    TaintRuleFence(run_on(server).objects, "run-7").take(
        "gpu.example.com/pool-0"
    )
    JournalFile(tmp_path / "journal").add(
        JournalStep.BEGIN, run="run-7", fence="device taints", gate="", units=[]
    )
    tried = apply(server, tmp_path, *action, "--dry-run", dry_run)
    assert tried.exit_code == Exit.INPUT
    assert f"--dry-run={dry_run}" in tried.stderr
    assert len(server.of("devicetaintrules")) == 1
    done = apply(server, tmp_path, *action, "--dry-run", "none")
    assert done.exit_code in (Exit.DONE, Exit.FAILED)
    assert server.of("devicetaintrules") == []


def test_one_thing_at_a_time(tmp_path: Path) -> None:
    assert (
        apply(begun(), tmp_path, "--status", "--resume").exit_code == Exit.INPUT
    )
