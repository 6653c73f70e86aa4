"""The batch queue against the simulated API server: batches, replicas, what pods are told."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from dralloc.live.apply import NodeTaintFence, Selection, TaintRuleFence
from dralloc.live.apply.marks import FENCE
from dralloc.live.batch import Figures, PodNotes, WatchCache
from dralloc.live.snapshot import (
    LISTED_KINDS,
    PODS,
    RULES,
    LiveObjects,
    Refused,
)
from dralloc.objects.names import ClaimKey
from live.apply.runs import gated
from live.apply.schedules import LONG_AGO, Client
from live.batch.queues import Clock, crowd, queue, until, waiting
from simulated import Simulated
from wire import Json, claim, gpus, node, pod, request, resource_slice

SLICES = next(kind for kind in LISTED_KINDS if kind.kind == "ResourceSlice")


def test_enough_pods_are_placed_at_once_and_the_others_hear_why() -> None:
    server = Simulated()
    server.add(*crowd(4))
    with queue(server, Clock()) as replica:
        assert replica.step() is None  # it does not lead yet
        replica.lease.renew()
        outcome = replica.step()
        assert outcome is not None
        assert len(outcome.released) == 3
        assert replica.step() is None  # nothing is new
    assert waiting(server) == ["p3"]
    condition = server.one("pods", "p3")["status"]["conditions"][0]
    assert condition["type"] == "dralloc.dev/Placed"
    assert condition["message"].startswith("1 nodes: ")
    assert [event["message"] for event in server.of("events")] == [
        condition["message"]
    ]
    assert server.of("devicetaintrules") == []


def test_few_pods_are_placed_after_the_interval() -> None:
    server, clock = Simulated(), Clock()
    server.add(*crowd(1))
    with queue(server, clock) as replica:
        replica.lease.renew()
        assert replica.step() is None
        clock.now = 61
        replica.lease.renew()
        assert replica.step() is not None
    assert waiting(server) == []


def test_news_come_by_watches_and_nothing_is_listed_again() -> None:
    server = Simulated()
    server.add(*crowd(1))
    with queue(server, Clock(), at_least=1) as replica:
        replica.lease.renew()
        replica.step()
        before = Counter(server.lists)
        server.add(claim("new", request()), gated("new", "new"))
        until(lambda: [key.name for key in replica.waiting()] == ["new"])
        outcome = replica.step()
        assert outcome is not None
        assert [key.name for key in outcome.released] == ["new"]
        again = Counter(server.lists) - before
        assert again.keys() == {"resourceclaims"}


def test_a_forgotten_place_is_listed_again() -> None:
    server = Simulated()
    server.add(*crowd(1))
    with queue(server, Clock()) as replica:
        lists = replica.cache.lists
        server.add(gated("new", "p0"))
        server.compacted = server.revision + 1
        until(lambda: replica.cache.lists > lists)
        server.compacted = 0
        until(lambda: len(replica.waiting()) == 2)
        assert {key.name for key in replica.waiting()} == {"p0", "new"}


def test_another_replica_takes_over_and_lifts_what_is_left() -> None:
    server, clock = Simulated(), Clock()
    server.add(*crowd(2))
    with queue(server, clock) as first, queue(server, clock, "two") as second:
        assert first.lease.renew()
        assert not second.lease.renew()
        TaintRuleFence(first.objects, f"{first.runs}gone").take(
            "gpu.example.com/pool-0"
        )
        clock.now = 16
        assert not first.lease.held
        assert second.lease.renew()
        outcome = second.step()
        assert outcome is not None
        assert len(outcome.released) == 2
        assert first.step() is None
    assert server.of("devicetaintrules") == []
    assert (
        server.one("leases", "batch", "system")["spec"]["leaseTransitions"] == 1
    )


def test_a_released_lease_is_free_at_once() -> None:
    server, clock = Simulated(), Clock()
    with queue(server, clock) as first, queue(server, clock, "two") as second:
        first.lease.renew()
        first.lease.release()
        assert second.lease.renew()


def test_fences_of_others_stay() -> None:
    server = Simulated()
    server.add(*crowd(0))
    with queue(server, Clock()) as replica:
        TaintRuleFence(replica.objects, "run-of-apply").take(
            "gpu.example.com/pool-0"
        )
        replica.lease.renew()
        replica.step()
    assert [
        rule["metadata"]["labels"][FENCE]
        for rule in server.of("devicetaintrules")
    ] == ["run-of-apply"]


def test_a_pod_whose_claims_are_allocated_is_released() -> None:
    server = Simulated()
    server.add(*crowd(2))
    with queue(server, Clock(), at_least=1) as replica:
        replica.lease.renew()
        replica.step()
        pod = server.one("pods", "p0")
        server.objects["pods", "default", "p0"] = gated("p0", "p0") | {
            "metadata": pod["metadata"]
        }
        server.add(server.one("pods", "p0") | {"status": {"phase": "Pending"}})
        until(lambda: [key.name for key in replica.waiting()] == ["p0"])
        replica._tried.clear()
        outcome = replica.step()
        assert outcome is not None
        assert [key.name for key in outcome.released] == ["p0"]
        assert outcome.claims == []


def test_a_batch_that_fails_is_tried_again_after_the_interval() -> None:
    server, clock, said = (
        Simulated(denied=frozenset({"devicetaintrules"})),
        Clock(),
        list[str](),
    )
    server.add(*crowd(2))
    with queue(server, clock) as replica:
        replica.complain = said.append
        for now, failures in ((0, 1), (5, 1), (66, 2)):
            clock.now = now
            replica.lease.renew()
            replica.step()
            assert (
                sum(
                    line.startswith("batch failed: nothing keeps others away")
                    for line in said
                )
                == failures
            )
    assert waiting(server) == ["p0", "p1"]


class Confined(Client):
    """Who may delete no pods in namespaces of others."""

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
    ) -> Json:
        if method == "DELETE" and "/namespaces/default/pods/" in path:
            raise Refused(403, "nobody may")
        return super().send(method, path, query, body)


def test_a_pod_that_asked_for_a_run_that_is_over_is_in_nobodys_way() -> None:
    """The queue may delete pods in its own namespace only."""
    server, said = Simulated(), list[str]()
    probe = pod("dralloc-probe-1")
    probe["metadata"]["labels"] = {FENCE: f"run-7{LONG_AGO}"}
    server.add(*crowd(2), probe)
    with queue(server, Clock(), wire=Confined(server)) as replica:
        replica.complain = said.append
        replica.lease.renew()
        outcome = replica.step()
        replica.step()
        assert outcome is not None
        assert not outcome.foreign
    assert waiting(server) == []
    refused = [line for line in said if line.endswith("HTTP 403: nobody may")]
    assert len(refused) == 1
    assert refused[0].startswith("Pod default/dralloc-probe-1: the fence of")


def test_a_fence_that_may_not_be_lifted_keeps_its_part_and_no_more() -> None:
    server, said = Simulated(), list[str]()
    more = resource_slice(gpus(1), name="more", pool="more", nodeName="node-1")
    server.add(*crowd(2), node("node-1"), more)
    with queue(server, Clock()) as replica:
        NodeTaintFence(replica.objects, f"run-7{LONG_AGO}").take("node-0")
        server.denied = frozenset({"nodes"})
        until(lambda: bool(replica._fenced_parts()))
        replica.complain = said.append
        replica.lease.renew()
        outcome = replica.step()
        replica.step()
        assert outcome is not None
        assert len(outcome.released) == 1
        assert f"run run-7{LONG_AGO} fences" in outcome.unplaced[0].reason
        assert "dralloc_foreign_fences 1.0" in replica.figures.text().decode()
    refused = [line for line in said if line.endswith("HTTP 403: nobody may")]
    assert len(refused) == 1


def test_pods_that_somebody_else_let_go_are_told_so() -> None:
    server = Simulated()
    server.add(
        *crowd(0), claim("late", request(count=9)), gated("late", "late")
    )
    with queue(server, Clock(), at_least=1) as replica:
        replica.lease.renew()
        replica.step()
        server.send(
            "PATCH",
            "/api/v1/namespaces/default/pods/late",
            {},
            {"spec": {"schedulingGates": []}},
        )
        until(lambda: replica.waiting() == {})
        replica.step()
    (condition,) = server.one("pods", "late")["status"]["conditions"]
    assert (condition["status"], condition["message"]) == (
        "True",
        "has no gate",
    )


def test_pods_that_wait_for_another_queue_are_not_told_that_they_wait_no_more() -> (
    None
):
    server, gate = Simulated(), "other.example.com/gate"
    late = pod("late", "late", schedulingGates=[{"name": gate}])
    server.add(*crowd(0), claim("late", request(count=9)), late)
    with (
        queue(server, Clock()) as replica,
        queue(server, Clock(), at_least=1) as other,
    ):
        other.selection = Selection(gated=True, gate=gate)
        other.lease.key = ClaimKey("system", "other")
        for leader in (other, replica):
            leader.lease.renew()
        other.step()
        until(
            lambda: any(
                "conditions" in held.get("status", {})
                for held in replica.cache.of(PODS)
            )
        )
        replica.step()
    (condition,) = server.one("pods", "late")["status"]["conditions"]
    assert condition["status"] == "False"
    assert condition["message"].startswith("1 nodes: ")


def test_a_queue_that_others_keep_from_everything_is_not_ready() -> None:
    server, clock = Simulated(), Clock()
    server.add(*crowd(2))
    with queue(server, clock) as replica:
        TaintRuleFence(replica.objects, "run-7").take("gpu.example.com/pool-0")
        until(lambda: bool(replica._fenced_parts()))
        ready: list[bool] = []
        for now in range(0, 600, 61):
            clock.now = now
            replica.lease.renew()
            if replica.step() is not None:
                ready.append(replica.is_ready)
    assert ready[:3] == [True, True, False]


def test_who_leads_no_more_counts_nothing_that_it_does_not_know() -> None:
    server, clock = Simulated(), Clock()
    server.add(
        *crowd(0), claim("late", request(count=9)), gated("late", "late")
    )
    with queue(server, clock, at_least=1) as replica:
        TaintRuleFence(replica.objects, "run-7").take("gpu.example.com/pool-0")
        until(lambda: bool(replica._fenced_parts()))
        replica.lease.renew()
        replica.step()
        shown = [replica.figures.text().decode()]
        clock.now = 16
        TaintRuleFence(replica.objects, "run-7").lift("gpu.example.com/pool-0")
        until(lambda: not replica._fenced_parts())
        replica.step()
        shown.append(replica.figures.text().decode())
    for name in ("dralloc_unplaced_pods", "dralloc_foreign_fences"):
        assert [f"{name} 1.0" in text for text in shown] == [True, False]


def test_a_store_that_was_put_back_is_seen_as_it_is_now() -> None:
    server = Simulated()
    server.add(*crowd(1))
    with queue(server, Clock()) as replica:
        before = server.copy()
        server.add(gated("new", "p0"))
        until(lambda: len(replica.waiting()) == 2)
        with server.lock:
            server.objects, server.revision, server.events = (
                before.objects,
                before.revision,
                before.events,
            )
        replica.cache._list(PODS)
        assert {key.name for key in replica.waiting()} == {"p0"}


class Secretive(Client):
    """Who may not read rules as long as they are secret."""

    is_secret = False

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
    ) -> Json:
        if self.is_secret and path.endswith("devicetaintrules"):
            raise Refused(403, "nobody may")
        return super().send(method, path, query, body)

    def stream(self, path: str, query: Mapping[str, str]) -> Iterator[Json]:
        if self.is_secret and path.endswith("devicetaintrules"):
            raise Refused(403, "nobody may")
        return super().stream(path, query)


@pytest.mark.parametrize("is_served", [True, False])
def test_what_is_not_served_any_more_is_forgotten_and_what_is_denied_is_not(
    is_served: bool,
) -> None:
    server = Simulated()
    client = Secretive(server)
    with queue(server, Clock()) as replica:
        TaintRuleFence(replica.objects, "run-7").take("gpu.example.com/pool-0")
        cache = WatchCache(LiveObjects(client, {RULES: "v1beta2"}))
        cache.start()
        try:
            lists = cache.lists
            assert len(cache.of(RULES)) == 1
            if is_served:
                client.is_secret = True
                time.sleep(0.2)
                assert len(cache.of(RULES)) == 1
                client.is_secret = False
            else:
                server.without = frozenset({"devicetaintrules"})
                until(lambda: not cache.of(RULES))
                server.without = frozenset()
            until(lambda: cache.lists > lists)
            until(lambda: len(cache.of(RULES)) == 1)
        finally:
            cache.close()


def test_what_was_said_to_a_pod_is_taken_back_when_it_is_released() -> None:
    server, clock = Simulated(), Clock()
    server.add(
        *crowd(1), claim("late", request(count=9)), gated("late", "late")
    )
    with queue(server, clock) as replica:
        replica.lease.renew()
        replica.step()
        until(
            lambda: bool(
                server.one("pods", "late").get("status", {}).get("conditions")
            )
        )
        server.add(resource_slice(gpus(9), name="more", pool="more"))
        until(
            lambda: any(
                item["metadata"]["name"] == "more"
                for item in replica.cache.of(SLICES)
            )
        )
        until(
            lambda: any(
                pod.get("status", {}).get("conditions")
                for pod in replica.waiting().values()
            )
        )
        clock.now = 61
        replica.lease.renew()
        assert replica.step() is None  # it becomes due
        clock.now = 130
        replica.lease.renew()
        outcome = replica.step()
        assert outcome is not None
        assert [key.name for key in outcome.released] == ["late"]
    (condition,) = server.one("pods", "late")["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "Released")


def test_the_same_event_is_counted() -> None:
    server = Simulated()
    server.add(*crowd(1))
    with queue(server, Clock()) as replica:
        for _ in range(3):
            notes = PodNotes(replica.objects, "batch")
            notes.tell(
                {ClaimKey("default", "p0"): server.one("pods", "p0")},
                {ClaimKey("default", "p0"): "no room"},
            )
    (event,) = server.of("events")
    assert event["count"] == 3


def test_a_long_reason_ends_with_a_whole_character_within_the_bytes_of_a_note() -> (
    None
):
    server = Simulated()
    server.add(*crowd(1))
    with queue(server, Clock()) as replica:
        key = ClaimKey("default", "p0")
        pods = {key: server.one("pods", "p0")}
        replica.notes.tell(pods, {key: "a" + "é" * 1000})
    (event,) = server.of("events")
    assert event["message"] == "a" + "é" * 511
    (condition,) = server.one("pods", "p0")["status"]["conditions"]
    assert condition["message"] == event["message"]


def test_metrics_are_there_before_the_first_batch() -> None:
    shown = Figures().text().decode()
    assert 'dralloc_batches_total{result="failed"} 0.0' in shown
    assert 'dralloc_pods_total{result="aside"} 0.0' in shown
    assert "process_resident_memory_bytes" in shown
    assert "_created" not in shown
    assert "# TYPE dralloc_lists_total counter" in shown


def test_a_queue_whose_batches_all_fail_is_not_ready() -> None:
    server, clock = Simulated(denied=frozenset({"devicetaintrules"})), Clock()
    server.add(*crowd(2))
    with queue(server, clock) as replica:
        health = [replica.is_ready]
        for now in (0, 66, 132):
            clock.now = now
            replica.lease.renew()
            replica.step()
            clock.now = now + 61
            replica.lease.renew()
            replica.step()
        health.append(replica.is_ready)
        assert replica.is_well
        server.denied = frozenset()
        for now in (260, 330):
            clock.now = now
            replica.lease.renew()
            replica.step()
        health.append(replica.is_ready)
    assert health == [True, False, True]


def test_what_was_said_to_pods_that_are_gone_is_forgotten() -> None:
    server = Simulated()
    server.add(*crowd(2))
    with queue(server, Clock()) as replica:
        keys = [ClaimKey("default", name) for name in ("p0", "p1")]
        pods = {key: server.one("pods", key.name) for key in keys}
        replica.notes.tell(pods, dict.fromkeys(keys, "no room"))
        replica.notes.tell({keys[0]: pods[keys[0]]}, {})
        assert len(replica.notes._told) == 1
