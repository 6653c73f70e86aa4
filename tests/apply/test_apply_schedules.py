"""Whatever happens to a run, and whoever else is at work: nothing is allocated twice, no fence and no claim is lost."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from apply.runs import gated
from apply.schedules import Killed, World, devices_of, refusal, unanswered
from simulated import Simulated
from wire import Json, claim, device_class, gpus, node, pod, request, resource_slice

SCHEDULES = int(os.environ.get("DRALLOC_APPLY_SCHEDULES", "30"))


def crowd() -> list[Json]:
    """Two nodes with two devices each; two claims of one pod, one of another, one for itself."""
    slices = (
        resource_slice(gpus(2), name=f"slice-{one}", pool=f"pool-{one}", nodeName=f"node-{one}") for one in (0, 1)
    )
    claims = (claim(name, request()) for name in "abcd")
    return [node("node-0"), node("node-1"), device_class(), *slices, *claims, gated("p", "a", "b"), pod("q", "c")]


def world() -> World:
    server = Simulated()
    server.add(*crowd())
    return World(server)


def actions(world: World) -> dict[str, Callable[[], None]]:
    """What can happen between two steps of a run."""
    return {
        "killed": world.journal.kill,
        "decide": world.scheduler.decide,
        "bind": world.scheduler.bind,
        "look": world.scheduler.look,
        "rival": world.rival_run,
        "conflict": refusal(409),
        "denied": refusal(403),
        "busy": refusal(429),
        "lost": unanswered,
        "delete a": lambda: world.delete_claim("a"),
        "delete d": lambda: world.delete_claim("d"),
        "delete p": lambda: world.delete_pod("p"),
        "touch b": lambda: world.touch("b"),
        "publish": lambda: world.publish("pool-0"),
    }


AGENDA = st.dictionaries(st.integers(0, 120), st.sampled_from(sorted(actions(world()))), max_size=6)


class Schedules(RuleBasedStateMachine):
    """Runs that are disturbed, and everything else that happens between them."""

    @initialize()
    def begin(self) -> None:
        self.world = world()

    @rule(agenda=AGENDA)
    def apply(self, agenda: dict[int, str]) -> None:
        known = actions(self.world)
        self.world.apply({step: known[name] for step, name in agenda.items()})

    @rule(agenda=AGENDA)
    def rollback(self, agenda: dict[int, str]) -> None:
        known = actions(self.world)
        self.world.rollback({step: known[name] for step, name in agenda.items()})

    @rule(name=st.sampled_from(["decide", "bind", "look", "delete a", "touch b", "publish", "rival"]))
    def meanwhile(self, name: str) -> None:
        actions(self.world)[name]()

    @invariant()
    def nothing_is_broken(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.apply({})
            self.world.check()
            assert self.world.server.of("devicetaintrules") == []


TestSchedules = Schedules.TestCase
TestSchedules.settings = settings(
    max_examples=SCHEDULES,
    stateful_step_count=4,
    deadline=None,
    derandomize="DRALLOC_APPLY_SCHEDULES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)


def steps_of_a_run() -> int:
    return world().apply({})


@pytest.mark.parametrize("then", ["resume", "rollback"])
def test_killed_at_every_step(then: str) -> None:
    every = steps_of_a_run()
    assert every > 50
    for step in range(every):
        one = world()
        one.apply({step: one.journal.kill})
        unfinished = one.journal.unfinished
        one.scheduler.settle()
        if then == "resume":
            one.apply({})
        else:
            one.rollback({})
        one.check()
        allocated = [claim for claim in one.server.of("resourceclaims") if devices_of(claim)]
        if then == "resume":
            assert len(allocated) == 4, step
        elif unfinished:
            assert allocated == [], step


def test_a_killed_client_says_nothing_more() -> None:
    one = world()
    one.apply({3: one.journal.kill})
    with pytest.raises(Killed):
        one.journal.client.step()
