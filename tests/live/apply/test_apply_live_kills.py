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
from dralloc.live.apply.fence import RULES, fence_of
from dralloc.live.apply.units import FINALIZER
from dralloc.live.snapshot import LiveObjects
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
        live(tmp_path_factory.mktemp("plane"), rules=request.param) as found,
        found.running_scheduler(),
    ):
        slices = (
            resource_slice(
                gpus(2),
                name=f"s-{one}",
                pool=f"p-{one}",
                nodeName=f"node-{one}",
            )
            for one in (0, 1)
        )
        found.add([node("node-0"), node("node-1"), device_class(), *slices])
        yield found


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
            one = run_on(
                journal.client,
                journal.run or f"run-{time.time_ns()}",
                **settings,
            )
            one.fence = (
                fence_of(journal, one.objects, one.name)
                if journal.unfinished
                else fence_for(FenceKind.AUTO, one.objects, one.name).fence
            )
            if then == "apply":
                one.write(one.plan()[1])
            elif then == "resume":
                one.resume()
            else:
                one.rollback()


def everything(
    objects: LiveObjects,
) -> tuple[list[Json], list[Json], list[Json]]:
    """Claims, pods, and what is fenced."""
    claims, pods, nodes = (
        objects.listed(KINDS[kind])["items"]
        for kind in ("ResourceClaim", "Pod", "Node")
    )
    rules = objects.listed(RULES)["items"] if RULES in objects.versions else []
    fenced = [one for one in nodes if taints_of(one)]
    return claims, pods, [*rules, *fenced]


@pytest.mark.parametrize("number", range(KILLS))
def test_whatever_happens_nothing_is_held_twice_and_no_fence_is_left(
    plane: LivePlane, number: int
) -> None:
    random = Random(number)
    plane.wipe(("Pod", "ResourceClaim"))
    plane.add(wanting())
    journal = Journalled()
    agenda = {
        random.randrange(STEPS): random.choice(
            [refusal(409), refusal(403), refusal(429), unanswered]
        )
    }
    if number % 2:
        agenda[number // 2 % STEPS] = journal.kill
    run(plane, journal, agenda, "apply")
    while journal.unfinished:
        run(plane, journal, {}, random.choice(["resume", "rollback"]))
    time.sleep(0.3)
    with plane.objects() as (_, objects):
        claims, pods, fenced = everything(objects)
    held = Counter(device for one in claims for device in devices_of(one))
    assert [device for device, times in held.items() if times > 1] == []
    assert fenced == []
    assert sorted(one["metadata"]["name"] for one in claims) == [
        "a",
        "b",
        "c",
        "d",
    ]
    assert all(
        FINALIZER in one["metadata"]["finalizers"]
        for one in claims
        if devices_of(one)
    )
    assert len(pods) == 3
