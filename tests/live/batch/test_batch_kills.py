"""A replica of the batch queue is killed at whatever step of a round, and another one takes over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from dralloc.live.apply.marks import FINALIZER, RUN
from dralloc.live.snapshot import Refused
from live.apply.runs import gated
from live.apply.schedules import Client, Killed, Scheduler, devices_of, gang
from live.batch.queues import Clock, queue, waiting
from simulated import Simulated
from wire import (
    Json,
    allocated,
    claim,
    device_class,
    gpus,
    node,
    request,
    resource_slice,
)


def begun(*objects: Json) -> Simulated:
    server = Simulated()
    server.add(*objects)
    return server


def worked(
    server: Simulated, what: Callable[[Client], None], clock: Clock
) -> int:
    """A replica works while something happens at each of its steps; how many it took."""
    client = Client(server)
    client.agenda = dict.fromkeys(range(1000), lambda: what(client))
    with (
        suppress(Killed),
        queue(server, clock, at_least=1, wire=client) as replica,
    ):
        replica.lease.renew()
        replica.step()
        replica.step()
    return client.steps


def killed(server: Simulated, when: Callable[[Client], bool]) -> int:
    """A replica works and is killed as soon as something holds; how many steps it took."""
    return worked(
        server, lambda client: client.kill() if when(client) else None, Clock()
    )


def taken_over(server: Simulated) -> list[str]:
    """Another replica works; what it says."""
    clock, said = Clock(), list[str]()
    with queue(server, clock, "two", at_least=1) as second:
        second.say = said.append
        second.lease.renew()
        clock.now = 16
        second.lease.renew()
        second.step()
    return said


def is_at(step: int, client: Client) -> bool:
    return client.steps == step


def holders(server: Simulated) -> Counter[tuple[str, str]]:
    return Counter(
        device
        for item in server.of("resourceclaims")
        for device in devices_of(item)
    )


def test_another_replica_places_everything_wherever_the_first_is_killed() -> (
    None
):
    every = killed(begun(*gang()), lambda _client: False)
    assert every > 30
    for step in range(1, every + 1):
        server = begun(*gang())
        rival = Scheduler(server)
        rival.look()
        killed(server, partial(is_at, step))
        rival.settle()
        taken_over(server)
        assert waiting(server) == [], step
        assert server.of("devicetaintrules") == [], step
        assert sorted(holders(server).values()) == [1, 1, 1], step


def pair() -> list[Json]:
    """A pod with two claims, for two devices."""
    claims = (claim(name, request()) for name in "ab")
    return [
        node(),
        device_class(),
        resource_slice(gpus(2)),
        *claims,
        gated("p", "a", "b"),
    ]


def half_written(*more: Json) -> Simulated:
    """A server on which a replica was killed that had written one of two claims of a pod."""
    server = begun(
        node(),
        device_class(),
        resource_slice(gpus(2)),
        claim("a", request()),
        claim("b", request()),
        gated("p", "a", "b"),
    )
    killed(server, lambda _client: bool(holders(server)))
    assert len(holders(server)) == 1
    server.add(*more)
    return server


def test_half_of_a_pod_is_taken_back_if_the_rest_has_no_place_any_more() -> (
    None
):
    server = half_written(
        allocated("rival", {"device": "gpu-1"}),
        claim("c", request()),
        gated("q", "c"),
    )
    said = taken_over(server)
    assert (
        said[0]
        == "leading as two; lifted 1 parts of old fences, took back 1 claims"
    )
    assert waiting(server) == ["p"]
    assert devices_of(server.one("resourceclaims", "c")) == [
        ("pool-0", "gpu-0")
    ]
    metadata = server.one("resourceclaims", "a")["metadata"]
    assert FINALIZER not in metadata["finalizers"]
    assert RUN not in metadata["annotations"]


def test_what_is_reserved_is_not_taken_back() -> None:
    server = half_written()
    (held,) = [item for item in server.of("resourceclaims") if devices_of(item)]
    user = {"resource": "pods", "name": "other", "uid": "of-other"}
    server.objects["resourceclaims", "default", "a"] = {
        **held,
        "status": {**held["status"], "reservedFor": [user]},
    }
    said = taken_over(server)
    assert said[0].endswith("took back 0 claims")
    assert sorted(holders(server).values()) == [1, 1]


def test_what_somebody_else_allocated_is_not_taken_back() -> None:
    server = begun(
        node(),
        device_class(),
        resource_slice(gpus(2)),
        allocated("a", {"device": "gpu-0"}),
        claim("b", request()),
    )
    server.add(gated("p", "a", "b"), allocated("rival", {"device": "gpu-1"}))
    assert taken_over(server)[0] == "leading as two"
    assert devices_of(server.one("resourceclaims", "a")) == [
        ("pool-0", "gpu-0")
    ]


def test_who_loses_the_lease_writes_nothing_more() -> None:
    server, clock = begun(*pair()), Clock()

    def stall(_client: Client) -> None:
        clock.now = 11.0 if holders(server) else clock.now

    worked(server, stall, clock)
    assert len(holders(server)) == 1
    assert taken_over(server)[0].endswith("took back 1 claims")
    assert waiting(server) == []


def test_a_fence_that_could_not_be_lifted_is_lifted_at_the_next_step() -> None:
    server = begun(*pair())
    refused: list[int] = []

    def refuse_once(client: Client) -> None:
        if len(holders(server)) == 2 and waiting(server) == [] and not refused:
            refused.append(client.steps)
            raise Refused(500, "said the server")

    worked(server, refuse_once, Clock())
    assert len(refused) == 1
    assert server.of("devicetaintrules") == []
