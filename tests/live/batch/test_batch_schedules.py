"""Whatever happens to replicas of the batch queue: nothing is allocated twice, no fence and no claim is lost."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dralloc.live.apply.pods import gates_of
from dralloc.live.batch.pod_notes import CONDITION
from examples import examples
from live.apply.schedules import Client, Killed, Setting, World
from live.batch.queues import Clock, queue
from wire import Json

SCHEDULES = examples(25)
STEPS = 80
"""More than a replica takes for a batch that nobody disturbs."""
ACTIONS = sorted(Setting().world().actions)
AGENDA = st.dictionaries(
    st.integers(0, STEPS), st.sampled_from(ACTIONS), max_size=5
)


def work(world: World, clock: Clock, name: str, agenda: dict[int, str]) -> None:
    """A replica works for three rounds, or until it is killed."""
    client = world.journal.client = Client(world.server)
    client.agenda = {
        step: world.actions[action] for step, action in agenda.items()
    }
    with (
        suppress(Killed),
        queue(world.server, clock, name, at_least=1, wire=client) as replica,
    ):
        replica.pause = lambda _seconds: world.scheduler.settle()
        replica.lease.renew()
        for _ in range(3):
            clock.now += 61
            world.scheduler.settle()
            replica.lease.renew()
            replica.step()


@given(
    setting=st.builds(Setting, gang=st.booleans(), node_taints=st.booleans()),
    agendas=st.lists(AGENDA, min_size=1, max_size=3),
)
@settings(
    max_examples=SCHEDULES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_whatever_happens_the_next_replica_leaves_everything_in_order(
    setting: Setting, agendas: list[dict[int, str]]
) -> None:
    world, clock = setting.world(), Clock()
    for replica_index, agenda in enumerate(agendas):
        work(world, clock, f"replica-{replica_index}", agenda)
    world.end()
    work(world, clock, "last", {})
    world.check()
    assert world.fences == {}
    silent = [
        pod["metadata"]["name"]
        for pod in world.server.of("pods")
        if gates_of(pod) and not is_told(pod)
    ]
    assert silent == []


def is_told(pod: Json) -> bool:
    return any(
        condition["type"] == CONDITION
        for condition in pod.get("status", {}).get("conditions", ())
    )
