"""Whatever happens to a run, and whoever else is at work: nothing is allocated twice, no fence and no claim is lost."""

from __future__ import annotations

import pytest

from examples import examples
from live.apply.many_schedules import STEPS, schedule
from live.apply.schedules import Killed, Setting, World, devices_of


@pytest.mark.parametrize("seed", range(examples(400)))
def test_whatever_happens_to_runs_and_between_them(seed: int) -> None:
    schedule(seed)


@pytest.mark.parametrize("node_taints", [False, True])
@pytest.mark.parametrize("then", ["resume", "rollback"])
def test_killed_at_every_step(then: str, node_taints: bool) -> None:
    setting = Setting(node_taints=node_taints)
    every = setting.world().apply({})
    assert 100 < every < STEPS
    for step in range(every):
        world = setting.world()
        world.apply({step: world.journal.kill})
        unfinished = world.journal.unfinished
        world.scheduler.settle()
        if then == "resume":
            world.apply({})
        else:
            world.rollback({})
        world.check()
        allocated = [
            claim
            for claim in world.server.of("resourceclaims")
            if devices_of(claim)
        ]
        if then == "resume":
            assert len(allocated) == 4, step
        elif unfinished:
            assert [
                claim
                for claim in allocated
                if not claim["status"].get("reservedFor")
            ] == [], step


def test_a_killed_client_says_nothing_more() -> None:
    world: World = Setting().world()
    world.apply({3: world.journal.kill})
    with pytest.raises(Killed):
        world.journal.client.step()


def test_half_of_a_gang_is_taken_back_when_the_plan_no_longer_fits() -> None:
    for step in range(Setting(gang=True).world().apply({})):
        world = Setting(gang=True).world()
        world.apply({step: world.journal.kill})
        world.cordon("node-1")
        world.end()
        world.check()
        held = {
            claim["metadata"]["name"]: bool(devices_of(claim))
            for claim in world.server.of("resourceclaims")
        }
        assert held["a"] == held["b"] == held["c"], step
