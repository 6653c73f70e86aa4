"""A leader that was paused finds what it does refused, or undone, once another one leads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest

from dralloc.live.apply import NodeTaintFence, Question, TaintRuleFence
from dralloc.live.apply.fence import run_of
from dralloc.live.apply.marks import FINALIZER, RUN
from dralloc.live.batch import BatchQueue
from dralloc.objects.cluster import Cluster
from dralloc.show.plan import Plan
from live.apply.runs import gated
from live.apply.schedules import LONG_AGO, Client, devices_of
from live.batch.queues import Clock, crowd, queue, until, waiting
from simulated import Simulated
from wire import (
    Json,
    allocated,
    claim,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)


def fences(server: Simulated) -> list[str]:
    marked = [*server.of("devicetaintrules"), *server.of("nodes")]
    return sorted(filter(None, map(run_of, marked)))


@contextmanager
def replicas(
    server: Simulated, wire: Client
) -> Iterator[tuple[BatchQueue, BatchQueue, Clock]]:
    clock = Clock()
    with (
        queue(server, clock, at_least=1, wire=wire) as first,
        queue(server, clock, "two", at_least=1) as second,
    ):
        first.lease.renew()
        yield first, second, clock


def lead(
    second: BatchQueue, clock: Clock, *, is_answer_lost: bool = False
) -> None:
    """The other replica leads, and works."""
    second.lease.renew()
    clock.now += 16
    # Where the answer is lost, it looks again.
    assert second.lease.renew() is not is_answer_lost
    if is_answer_lost:
        assert second.lease.renew()
    second.step()


@pytest.mark.parametrize("without", [(), ("devicetaintrules",)])
def test_wherever_a_leader_is_paused_the_next_one_leaves_everything_in_order(
    without: tuple[str, ...],
) -> None:
    steps = paused_at(10_000, without)
    assert steps > 30
    for step in range(1, steps):
        paused_at(step, without)


def paused_at(step: int, without: tuple[str, ...]) -> int:
    """The first leader sleeps at a step, in the middle of a request or before it, until the other has placed all."""
    server = Simulated(without=frozenset(without))
    server.add(*crowd(2))
    client = Client(server)
    with replicas(server, client) as (first, second, clock):
        client.agenda = {step: lambda: lead(second, clock)}
        first.step()
        first.step()
        steps = client.steps
        if step < steps:
            # What the sleeper did last is undone by who leads.
            second.lease.renew()
            until(
                lambda: all(
                    run == "" or second.is_over(run) for run in fences(server)
                )
            )
            second.step()
    held = [
        device
        for claim in server.of("resourceclaims")
        for device in devices_of(claim)
    ]
    assert sorted(held) == sorted(set(held)), step
    assert len(held) == 2, step
    assert waiting(server) == [], step
    assert fences(server) == [], step
    return steps


@pytest.mark.parametrize("kind", [TaintRuleFence, NodeTaintFence])
def test_a_fence_of_an_earlier_leader_is_taken_over(
    kind: type[TaintRuleFence | NodeTaintFence],
) -> None:
    server, clock = Simulated(), Clock()
    server.add(*crowd(2))
    with queue(server, clock) as replica:
        part = {
            TaintRuleFence: "gpu.example.com/pool-0",
            NodeTaintFence: "node-0",
        }[kind]
        replica.lease.token = 4
        old, later = f"{replica.runs}3-x", f"{replica.runs}5-x"
        assert kind(replica.objects, old).take(part)
        mine = kind(
            replica.objects, f"{replica.runs}4-y", is_over=replica.is_over
        )
        assert mine.take(part)
        assert fences(server) == [f"{replica.runs}4-y"]
        mine.lift(part)
        assert kind(replica.objects, later).take(part)
        assert not mine.take(part)


@pytest.mark.parametrize("is_answer_lost", [False, True])
def test_a_write_that_was_begun_under_an_earlier_leader_is_refused(
    is_answer_lost: bool,
) -> None:
    server, clock = Simulated(), Clock()
    server.add(*crowd(2))
    client = Client(server)

    def lose_answer() -> None:
        client.outage = int(is_answer_lost)

    with (
        queue(server, clock) as first,
        queue(server, clock, "two", at_least=9, wire=client) as second,
    ):
        first.lease.renew()
        # A request is two steps: two looks at the Lease come first, and then it is taken.
        client.agenda = {5: lose_answer}
        seen = {
            claim["metadata"]["name"]: claim["metadata"]["resourceVersion"]
            for claim in server.of("resourceclaims")
        }
        lead(second, clock, is_answer_lost=is_answer_lost)
        now = {
            claim["metadata"]["name"]: claim["metadata"]["resourceVersion"]
            for claim in server.of("resourceclaims")
        }
    assert second.lease.token == 1
    assert all(now[name] != version for name, version in seen.items())


def test_who_lost_the_lease_and_has_it_again_writes_nothing_of_what_it_began() -> (
    None
):
    """Whoever led in between has lifted its fence."""
    server = Simulated()
    server.add(*crowd(2))
    client = Client(server)
    with replicas(server, client) as (first, second, clock):
        outcomes: list[int] = []

        def lose_and_regain(_seconds: float) -> None:
            if not outcomes and fences(server):
                outcomes.append(0)
                second.at_least = 9
                lead(second, clock)
                assert fences(server) == []
                second.lease.release()
                assert first.lease.renew()

        first.pause = lose_and_regain
        outcome = first.step()
        assert outcomes
        assert outcome is not None
        assert outcome.claims == []
        clock.now += 61
        first.lease.renew()
        first.step()
        clock.now += 61
        first.lease.renew()
        first.step()
    assert waiting(server) == []
    assert fences(server) == []


@pytest.mark.parametrize("kind", [TaintRuleFence, NodeTaintFence])
def test_fences_of_leaders_of_a_lease_that_was_deleted_are_lifted(
    kind: type[TaintRuleFence | NodeTaintFence],
) -> None:
    server, clock = Simulated(), Clock()
    server.add(*crowd(2))
    with queue(server, clock) as replica:
        part = {
            TaintRuleFence: "gpu.example.com/pool-0",
            NodeTaintFence: "node-0",
        }[kind]
        assert kind(replica.objects, f"{replica.runs}7-x").take(part)
        until(lambda: bool(replica._fenced_parts()))
        replica.lease.renew()
        replica.step()
        assert replica.lease.token == 8
    assert fences(server) == []
    assert waiting(server) == []


@pytest.mark.parametrize("token", [3, 9])
def test_no_fence_of_the_queue_outlives_its_time(token: int) -> None:
    server, clock = Simulated(), Clock()
    with queue(server, clock) as replica:
        replica.lease.token = 5
        assert replica.is_over(f"{replica.runs}{token}-x{LONG_AGO}")


def test_a_batch_writes_nothing_once_its_time_is_over() -> None:
    server, clock = Simulated(), Clock()
    server.add(*crowd(2))
    with queue(server, clock) as replica:
        replica.timeout = -1
        replica.lease.renew()
        outcome = replica.step()
        assert outcome is not None
        assert outcome.claims == []
    assert fences(server) == []


class SlowQuestion(Question):
    """A plan that takes for ever, unless it is interrupted."""

    begun = Event()

    def plan(self, cluster: Cluster, start: Plan | None = None) -> Plan:
        SlowQuestion.begun.set()
        Event().wait(30)
        return super().plan(cluster, start)


def test_a_plan_is_given_up_when_the_process_is_to_end() -> None:
    server, clock = Simulated(), Clock()
    server.add(*crowd(2))
    with queue(server, clock) as replica:
        replica.question = SlowQuestion()
        replica.lease.renew()
        replica._plans = True
        with pytest.raises(KeyboardInterrupt):
            replica.stop()
        replica.run()
    assert not SlowQuestion.begun.is_set()
    assert (
        server.one("leases", "batch", "system")["spec"]["holderIdentity"] == ""
    )
    assert waiting(server) == ["p0", "p1"]


def test_the_lease_is_kept_while_what_was_begun_is_written() -> None:
    server = Simulated()
    server.add(*crowd(2))
    going = Event()
    client = Client(server)
    with queue(server, Clock(), wire=client) as replica:
        held: list[bool] = []

        def stop() -> None:
            with suppress(KeyboardInterrupt):
                replica.stop()
            going.set()

        client.agenda = dict.fromkeys(
            range(8, 400),
            lambda: held.append(replica.lease.held or not fences(server)),
        )
        client.agenda[30] = stop
        worker = Thread(target=replica.run)
        worker.start()
        worker.join(20)
    assert not worker.is_alive()
    assert going.is_set()
    assert all(held)
    assert fences(server) == []


def test_a_claim_that_a_released_pod_has_in_common_with_a_waiting_one_stays() -> (
    None
):
    """The pod is not bound yet, so that nobody has reserved the claim."""
    server, clock = Simulated(), Clock()
    server.add(*crowd(0), pod("released", "shared"))
    with queue(server, clock) as replica:
        server.add(
            written("shared", "gpu-2", f"{replica.runs}0-x"),
            claim("more", request()),
            gated("late", "shared", "more"),
        )
        until(lambda: len(replica.waiting()) == 1)
        replica.lease.renew()
        replica.step()
    (device,) = devices_of(server.one("resourceclaims", "shared"))
    assert device == ("pool-0", "gpu-2")


@pytest.mark.parametrize("step", range(1, 24))
def test_a_leader_that_is_paused_while_it_takes_over_takes_nothing_back_after_it(
    step: int,
) -> None:
    server = Simulated()
    server.add(node(), device_class(), resource_slice(gpus(4)))
    client = Client(server)
    with replicas(server, client) as (first, second, clock):
        for name, device in (("p0", "gpu-0"), ("p1", "gpu-2")):
            server.add(
                written(f"{name}-half", device, f"{first.runs}0-x"),
                claim(f"{name}-rest", request()),
                gated(name, f"{name}-half", f"{name}-rest"),
            )
        for replica in (first, second):
            until(lambda replica=replica: len(replica.waiting()) == 2)  # type: ignore[misc]
        client.agenda = {client.steps + step: lambda: lead(second, clock)}
        first.step()
    assert waiting(server) == []
    assert all(map(devices_of, server.of("resourceclaims")))


def written(name: str, device: str, run: str) -> Json:
    """A claim to which a run gave a device of the first node."""
    held = allocated(name, {"device": device})
    field = {"key": "metadata.name", "operator": "In", "values": ["node-0"]}
    held["status"]["allocation"]["nodeSelector"] = {
        "nodeSelectorTerms": [{"matchFields": [field]}]
    }
    held["metadata"] |= {"annotations": {RUN: run}, "finalizers": [FINALIZER]}
    return held
