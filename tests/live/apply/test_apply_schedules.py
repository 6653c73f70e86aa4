"""Whatever happens to a run, and whoever else is at work: nothing is allocated twice, no fence and no claim is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from dralloc.objects.choices import Mode
from examples import examples
from live.apply.schedules import Killed, Setting, World, devices_of

SCHEDULES = examples(50)
SETTINGS = st.builds(
    Setting,
    gang=st.booleans(),
    mode=st.sampled_from([Mode.FIRST_FIT, Mode.FIRST_FIT, Mode.OPTIMAL]),
    node_taints=st.booleans(),
)
ACTIONS = sorted(Setting().world().actions)
STEPS = 140
"""More than a run has that nobody disturbs."""
AGENDA = st.dictionaries(
    st.integers(0, STEPS), st.sampled_from(ACTIONS), max_size=6
)
MEANWHILE = [
    name
    for name in ACTIONS
    if name.partition(" ")[0] not in ("killed", "refused", "lost")
]


class Schedules(RuleBasedStateMachine):
    """Runs that are disturbed, and everything else that happens between them."""

    @initialize(setting=SETTINGS)
    def begin(self, setting: Setting) -> None:
        self.world = setting.world()

    @rule(agenda=AGENDA)
    def apply(self, agenda: dict[int, str]) -> None:
        self.world.apply(self._agenda(agenda))

    @rule(agenda=AGENDA)
    def rollback(self, agenda: dict[int, str]) -> None:
        self.world.rollback(self._agenda(agenda))

    @rule(name=st.sampled_from(MEANWHILE))
    def meanwhile(self, name: str) -> None:
        self.world.actions[name]()

    @rule()
    def others_go_on(self) -> None:
        for journal in self.world.rivals:
            self.world.apply({}, journal)

    def _agenda(self, names: dict[int, str]) -> dict[int, Callable[[], None]]:
        return {step: self.world.actions[name] for step, name in names.items()}

    @invariant()
    def nothing_is_broken(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.end()
            self.world.check()
            assert self.world.fences == {}


TestSchedules = Schedules.TestCase
TestSchedules.settings = settings(
    max_examples=SCHEDULES,
    stateful_step_count=4,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("node_taints", [False, True])
@pytest.mark.parametrize("then", ["resume", "rollback"])
def test_killed_at_every_step(then: str, node_taints: bool) -> None:
    setting = Setting(node_taints=node_taints)
    every = setting.world().apply({})
    assert 100 < every < STEPS
    for step in range(every):
        one = setting.world()
        one.apply({step: one.journal.kill})
        unfinished = one.journal.unfinished
        one.scheduler.settle()
        if then == "resume":
            one.apply({})
        else:
            one.rollback({})
        one.check()
        allocated = [
            claim
            for claim in one.server.of("resourceclaims")
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
    one: World = Setting().world()
    one.apply({3: one.journal.kill})
    with pytest.raises(Killed):
        one.journal.client.step()


def test_half_of_a_gang_is_taken_back_when_the_plan_no_longer_fits() -> None:
    for step in range(Setting(gang=True).world().apply({})):
        one = Setting(gang=True).world()
        one.apply({step: one.journal.kill})
        one.cordon("node-1")
        one.end()
        one.check()
        held = {
            claim["metadata"]["name"]: bool(devices_of(claim))
            for claim in one.server.of("resourceclaims")
        }
        assert held["a"] == held["b"] == held["c"], step
