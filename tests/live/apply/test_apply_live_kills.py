"""Runs that are killed on a real control plane whose scheduler takes what it can get meanwhile."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from dralloc.live.apply.choice import fence_for
from dralloc.live.apply.fence import fence_of
from dralloc.live.apply.marks import FINALIZER
from dralloc.live.snapshot import RULES, LiveObjects
from dralloc.objects.choices import FenceKind
from dralloc.objects.errors import ApplyError, SnapshotError
from live.apply.runs import gated, run_on
from live.apply.schedules import (
    Client,
    Journalled,
    Killed,
    devices_of,
    refusal,
    taints_of,
    unanswered,
)
from live_plane import KINDS, LivePlane, live
from wire import Json, claim, device_class, gpus, node, pod, resource_slice
from wire import request as wanted

KILLS = int(os.environ.get("DRALLOC_APPLY_LIVE", "2"))
"""How many runs are disturbed, half of them killed at one step after the other."""
STEPS = 130
"""More than a run has."""


@pytest.fixture(
    scope="module", params=[True, False], ids=["rules", "node taints"]
)
def plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LivePlane]:
    with (
        live(
            tmp_path_factory.mktemp("plane"), rules=request.param
        ) as live_plane,
        live_plane.running_scheduler(),
    ):
        slices = (
            resource_slice(
                gpus(2),
                name=f"s-{node_index}",
                pool=f"p-{node_index}",
                nodeName=f"node-{node_index}",
            )
            for node_index in (0, 1)
        )
        live_plane.add(
            [node("node-0"), node("node-1"), device_class(), *slices]
        )
        yield live_plane


def wanting() -> list[Json]:
    """Two pods that wait with three claims, and one with a claim that the scheduler takes when it can."""
    claims = (claim(name, wanted()) for name in "abcd")
    return [*claims, gated("p", "a", "b"), gated("q", "c"), pod("rival", "d")]


def run(
    plane: LivePlane,
    journal: Journalled,
    agenda: dict[int, Callable[[], None]],
    then: str,
) -> None:
    """A process that applies, goes on, or takes back; it may be killed."""
    with plane.objects() as (server, _):
        journal.client = Client(server.wire, agenda)
        with suppress(Killed, ApplyError, SnapshotError):
            settings: dict[str, Any] = {
                "journal": journal,
                "settle": 0.3,
                "wait": 5,
                "pause": time.sleep,
            }
            apply_run = run_on(
                journal.client,
                journal.run or f"run-{time.time_ns()}",
                **settings,
            )
            apply_run.fence = (
                fence_of(journal, apply_run.objects, apply_run.name)
                if journal.unfinished
                else fence_for(
                    FenceKind.AUTO, apply_run.objects, apply_run.name
                ).fence
            )
            if then == "apply":
                apply_run.write(apply_run.plan()[1])
            elif then == "resume":
                apply_run.resume()
            else:
                apply_run.rollback()


def everything(
    objects: LiveObjects,
) -> tuple[list[Json], list[Json], list[Json]]:
    """Claims, pods, and what is fenced."""
    claims, pods, nodes = (
        objects.listed(KINDS[kind])["items"]
        for kind in ("ResourceClaim", "Pod", "Node")
    )
    rules = objects.listed(RULES)["items"] if RULES in objects.versions else []
    fenced = [item for item in nodes if taints_of(item)]
    return claims, pods, [*rules, *fenced]


@pytest.mark.parametrize("run_index", range(KILLS))
def test_whatever_happens_nothing_is_held_twice_and_no_fence_is_left(
    plane: LivePlane, run_index: int
) -> None:
    random = Random(run_index)
    plane.wipe(("Pod", "ResourceClaim"))
    plane.add(wanting())
    journal = Journalled()
    agenda = {
        random.randrange(STEPS): random.choice(
            [refusal(409), refusal(403), refusal(429), unanswered]
        )
    }
    if run_index % 2:
        agenda[run_index // 2 % STEPS] = journal.kill
    run(plane, journal, agenda, "apply")
    while journal.unfinished:
        run(plane, journal, {}, random.choice(["resume", "rollback"]))
    time.sleep(0.3)
    with plane.objects() as (_, objects):
        claims, pods, fenced = everything(objects)
    held = Counter(device for item in claims for device in devices_of(item))
    assert [device for device, times in held.items() if times > 1] == []
    assert fenced == []
    assert sorted(item["metadata"]["name"] for item in claims) == [
        "a",
        "b",
        "c",
        "d",
    ]
    assert all(
        FINALIZER in item["metadata"]["finalizers"]
        for item in claims
        if devices_of(item)
    )
    assert len(pods) == 3
