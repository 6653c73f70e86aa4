"""A fence has an owner and an age: nobody waits for one whose owner must be gone, and nobody lifts another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dralloc.live.apply import NodeTaintFence, TaintRuleFence, WriteJournal
from dralloc.live.apply.fence import run_of
from dralloc.live.apply.fence_status import status_of
from dralloc.live.apply.pods import gates_of
from dralloc.live.apply.run_names import end_of, has_ended, may_write, new_run
from live.apply.runs import run_on, small_cluster
from live.apply.schedules import LONG_AGO, Setting
from live.batch.queues import Clock, queue
from live.batch.queues import crowd as waiting_pods
from simulated import Simulated

KINDS = [NodeTaintFence, TaintRuleFence]
PARTS = {NodeTaintFence: "node-0", TaintRuleFence: "gpu.example.com/pool-0"}


def fenced(kind: type[NodeTaintFence | TaintRuleFence], run: str) -> Simulated:
    """A small cluster, of which a run has fenced everything."""
    server = Simulated()
    server.add(*small_cluster())
    kind(run_on(server).objects, run).take(PARTS[kind])
    return server


def fences(server: Simulated) -> list[str]:
    marked = [*server.of("devicetaintrules"), *server.of("nodes")]
    return sorted(filter(None, map(run_of, marked)))


def ended(ago: timedelta) -> str:
    """The name of a run that ended so long ago."""
    return new_run("", -ago.total_seconds())


def test_the_name_of_a_run_says_until_when_it_writes() -> None:
    run = new_run("batch-1-", 60)
    end = end_of(run)
    assert end is not None
    assert timedelta(0) < end - datetime.now(UTC) <= timedelta(seconds=60)
    assert run.startswith("batch-1-")
    assert may_write(run)
    assert not has_ended(run)
    assert end_of("run-7") is None
    assert not has_ended("run-7")
    # A value of labels and of taints: at most 63 letters, digits, dots and dashes.
    longest = new_run("batch-12345678-1234567890-", 86_400)
    assert len(longest) <= 63


def test_clocks_may_be_some_minutes_apart() -> None:
    just_over = ended(timedelta(minutes=4))
    assert not may_write(just_over)
    assert not has_ended(just_over)
    assert has_ended(ended(timedelta(minutes=6)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_what_a_run_has_fenced_that_must_be_gone_is_lifted(
    kind: type[NodeTaintFence | TaintRuleFence],
    other: type[NodeTaintFence | TaintRuleFence],
) -> None:
    server = fenced(other, f"run-7{LONG_AGO}")
    run = run_on(server)
    run.fence = kind(run.objects, run.name)
    outcome = run.write(run.plan()[1])
    assert (len(outcome.claims), outcome.foreign) == (2, ())
    assert not outcome.failed
    assert fences(server) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("over", [timedelta(minutes=-1), timedelta(minutes=1)])
def test_what_a_run_has_fenced_that_may_be_at_work_stays(
    kind: type[NodeTaintFence | TaintRuleFence], over: timedelta
) -> None:
    holder = ended(over)
    server = fenced(kind, holder)
    run = run_on(server)
    outcome = run.write(run.plan()[1])
    assert outcome.failed
    assert outcome.claims == []
    assert [fence.run for fence in outcome.foreign] == [holder]
    assert fences(server) == [holder]


def test_a_run_whose_time_is_over_writes_nothing_more() -> None:
    server = Simulated()
    server.add(*small_cluster())
    name = ended(timedelta(seconds=1))
    run = run_on(server, name, may_go_on=lambda: may_write(name))
    outcome = run.write(run.plan()[1])
    assert outcome.claims == []
    assert not any(
        claim.get("status", {}).get("allocation")
        for claim in server.of("resourceclaims")
    )
    assert fences(server) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_queue_lifts_what_nobody_holds_any_more(
    kind: type[NodeTaintFence | TaintRuleFence],
) -> None:
    server = Simulated()
    server.add(*waiting_pods(2))
    at_work = new_run("", 60)
    with queue(server, Clock(), at_least=1) as leader:
        kind(leader.objects, f"run-7{LONG_AGO}").take(PARTS[kind])
        leader.lease.renew()
        leader.step()
        assert fences(server) == []
        assert not any(map(gates_of, server.of("pods")))
        kind(leader.objects, at_work).take(PARTS[kind])
        leader.cache.catch_up()
        leader.step()
        assert fences(server) == [at_work]


def test_a_run_that_is_taken_up_again_has_time_anew() -> None:
    for killed in (30, 60, 90):
        world = Setting(node_taints=True).world()
        world.apply({killed: world.journal.kill}, end=LONG_AGO)
        # Somebody else needs the nodes meanwhile, and takes the fence away.
        world.rival_run()
        assert world.fences == {}
        world.apply({})
        assert world.journal.runs == [f"run-1{LONG_AGO}", "run-3"]
        world.check()


def test_what_is_fenced_is_shown_with_its_end() -> None:
    server = fenced(NodeTaintFence, f"run-7{LONG_AGO}")
    status = status_of(run_on(server).objects, WriteJournal(), "journal")
    assert status.fences[0].until == "2020-01-01T00:00:00Z"
    assert "2020-01-01T00:00:00Z (over)" in str(status)
    assert status.to_dict()["fences"][0]["until"] == "2020-01-01T00:00:00Z"
