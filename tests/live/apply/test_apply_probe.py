"""The scheduler is asked whether it knows of a fence before anything is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dralloc.live.apply import ApplyRun, NodeTaintFence, WriteJournal
from dralloc.live.apply.choice import SchedulerProbe
from dralloc.live.apply.fence_status import status_of
from dralloc.live.snapshot import Refused
from dralloc.objects.errors import ApplyError
from dralloc.objects.names import ClaimKey
from live.apply.runs import run_on, small_cluster
from live.apply.schedules import Client, Killed, Scheduler, devices_of
from simulated import Simulated


def probing(server: Simulated, pause: Callable[[float], None]) -> ApplyRun:
    run = run_on(server, settle=0)
    run.fence = NodeTaintFence(run.objects, run.name)
    run.probe = SchedulerProbe(run.objects, "default", pause, patience=2)
    return run


def names(server: Simulated) -> list[str]:
    return [pod["metadata"]["name"] for pod in server.of("pods")]


def begun() -> tuple[Simulated, Scheduler]:
    server = Simulated()
    server.add(*small_cluster())
    scheduler = Scheduler(server)
    scheduler.look()
    return server, scheduler


def test_nothing_is_written_before_the_scheduler_knows_of_the_fence() -> None:
    server, scheduler = begun()
    looks: list[int] = []

    def lag(_seconds: float) -> None:
        """The scheduler hears of new pods at once, and of nodes after a while."""
        nodes = scheduler.seen["nodes"]
        assert not any(map(devices_of, server.of("resourceclaims")))
        looks.append(len(looks))
        scheduler.look()
        if len(looks) < 6:
            scheduler.seen["nodes"] = nodes
        scheduler.schedule()

    run = probing(server, lag)
    outcome = run.write(run.plan()[1])
    assert len(looks) >= 6
    assert outcome.unasked == ""
    assert len(outcome.claims) == 2
    assert [pod["metadata"]["name"] for pod in server.of("pods")] == [
        "serve",
        "train",
    ]


@pytest.mark.parametrize("hears", [True, False])
def test_a_scheduler_that_does_not_honour_the_fence_is_not_written_beside(
    hears: bool,
) -> None:
    server, scheduler = begun()
    nodes = scheduler.seen["nodes"]

    def ignore(_seconds: float) -> None:
        if hears:
            scheduler.look()
            scheduler.seen["nodes"] = nodes
            scheduler.schedule()

    run = probing(server, ignore)
    said = "didn't match Pod's node affinity/selector" if hears else "nothing"
    with pytest.raises(
        ApplyError,
        match=f"does not know of the fence after 2 s: pod default/dralloc-probe.*{said}",
    ):
        run.write(run.plan()[1])
    assert not any(map(devices_of, server.of("resourceclaims")))
    assert all(
        "taints" not in node.get("spec", {}) for node in server.of("nodes")
    )
    assert [pod["metadata"]["name"] for pod in server.of("pods")] == [
        "serve",
        "train",
    ]


@pytest.mark.parametrize("answers", [True, False])
def test_under_rules_the_scheduler_must_be_at_work(answers: bool) -> None:
    server, scheduler = begun()
    looks: list[int] = []

    def work(_seconds: float) -> None:
        """The scheduler is behind for a while, or is not there at all."""
        assert not any(map(devices_of, server.of("resourceclaims")))
        looks.append(len(looks))
        if answers and len(looks) > 5:
            scheduler.settle()

    run = run_on(server)
    run.probe = SchedulerProbe(run.objects, "default", work, patience=2)
    units = run.plan()[1]
    if answers:
        assert len(run.write(units).claims) == 2
        assert len(looks) > 5
    else:
        with pytest.raises(ApplyError, match="does not know of the fence"):
            run.write(units)
        assert not any(map(devices_of, server.of("resourceclaims")))
    assert server.of("devicetaintrules") == []
    assert names(server) == ["serve", "train"]


def test_what_asked_for_a_run_that_was_killed_goes_with_its_fence() -> None:
    server, _ = begun()
    client = Client(server)
    run = run_on(client)
    run.fence = NodeTaintFence(run.objects, run.name)
    run.probe = SchedulerProbe(run.objects, "default", lambda _: client.kill())
    with pytest.raises(Killed):
        run.write(run.plan()[1])
    shown = status_of(run_on(server).objects, WriteJournal(), "journal")
    assert [part.split("-")[0] for part in shown.fences[0].parts] == [
        "Node node",
        "Pod dralloc",
    ]
    again = run_on(server, "run-2", journal=run.journal)
    again.fence = NodeTaintFence(again.objects, again.name)
    again.resume()
    assert names(server) == ["serve", "train"]


def test_another_pod_asks_where_somebody_deletes_the_first_one() -> None:
    server, scheduler = begun()
    deleted: list[str] = []

    def clean_up(_seconds: float) -> None:
        """Somebody deletes the first pod that asks, before the scheduler has heard of it."""
        asking = [name for name in names(server) if "probe" in name]
        if asking and not deleted:
            deleted.append(asking[0])
            del server.objects["pods", "default", asking[0]]
        else:
            scheduler.settle()

    run = probing(server, clean_up)
    outcome = run.write(run.plan()[1])
    assert len(deleted) == 1
    assert (outcome.unasked, len(outcome.claims)) == ("", 2)
    assert names(server) == ["serve", "train"]


def test_who_may_not_see_the_pod_that_asks_goes_on_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, _ = begun()
    run = probing(server, lambda _seconds: None)
    units = run.plan()[1]

    def deny(_probe: SchedulerProbe, _key: ClaimKey) -> str:
        raise Refused(403, "nobody may")

    monkeypatch.setattr(SchedulerProbe, "_said", deny)
    outcome = run.write(units)
    assert outcome.unasked == "HTTP 403: nobody may"
    assert len(outcome.claims) == 2
    assert names(server) == ["serve", "train"]


def test_who_may_make_no_pods_goes_on_and_says_so() -> None:
    server, _ = begun()
    server.denied = frozenset(["pods"])
    run = probing(server, lambda _seconds: None)
    outcome = run.write(run.plan()[1])
    assert outcome.unasked == "HTTP 403: nobody may"
    assert "was not asked: HTTP 403" in str(outcome)
    assert len(outcome.claims) == 2
