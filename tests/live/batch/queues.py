"""Replicas of the batch queue against the simulated API server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dralloc.live.apply import (
    NodeTaintFence,
    Question,
    Selection,
    TaintRuleFence,
)
from dralloc.live.apply.pods import gates_of
from dralloc.live.batch import (
    EVENTS,
    LEASES,
    BatchQueue,
    Figures,
    LeaderLease,
    PodNotes,
    WatchCache,
)
from dralloc.live.snapshot import (
    RULES,
    ApiServer,
    LiveObjects,
    ReadLimits,
    Wire,
    served,
)
from dralloc.objects.choices import Mode
from dralloc.objects.names import ClaimKey
from live.apply.runs import gated
from simulated import Simulated
from wire import Json, claim, device_class, gpus, node, request, resource_slice


@dataclass
class Clock:
    """Time that passes when a test says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def queue(
    server: Simulated,
    clock: Clock,
    name: str = "one",
    at_least: int = 2,
    wire: Wire | None = None,
) -> Iterator[BatchQueue]:
    """A replica that places what waits after 60 seconds; ``wire``: what it writes by."""
    versions = served(ApiServer(server, ReadLimits(), verified=True))
    objects = LiveObjects(
        wire or server, {**versions, EVENTS: "v1", LEASES: "v1"}
    )
    cache = WatchCache(LiveObjects(server, versions))
    cache.start()
    kind = TaintRuleFence if RULES in versions else NodeTaintFence
    batch_queue = BatchQueue(
        objects=objects,
        cache=cache,
        question=Question(Mode.FIRST_FIT),
        selection=Selection(gated=True),
        fence=lambda run, is_over: kind(objects, run, is_over=is_over),
        lease=LeaderLease(
            objects, ClaimKey("system", "batch"), name, clock=clock
        ),
        notes=PodNotes(objects, "batch"),
        figures=Figures(),
        interval=60,
        at_least=at_least,
        say=lambda _line: None,
        complain=lambda _line: None,
        settle=0,
        watch=0,
        clock=clock,
    )
    try:
        yield batch_queue
    finally:
        cache.close()


def crowd(pods: int) -> list[Json]:
    names = [f"p{pod_index}" for pod_index in range(pods)]
    claims = [claim(name, request()) for name in names]
    return [
        node(),
        device_class(),
        resource_slice(gpus(3)),
        *claims,
        *(gated(name, name) for name in names),
    ]


def waiting(server: Simulated) -> list[str]:
    return [
        pod["metadata"]["name"] for pod in server.of("pods") if gates_of(pod)
    ]


def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
