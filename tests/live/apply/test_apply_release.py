"""Released pods are bound as planned while the scheduler works all the time, or it is said what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial

import pytest

from dralloc.live.apply import Fence, NodeTaintFence, Selection, TaintRuleFence
from dralloc.live.apply.executor import Executor, LeftAlone
from dralloc.live.apply.journal import JournalStep
from dralloc.live.apply.marks import RUN
from dralloc.live.apply.units import WriteUnit
from dralloc.live.snapshot import Refused
from live.apply.runs import GATE, gated, run_on
from live.apply.schedules import (
    Client,
    Journalled,
    Killed,
    Scheduler,
    Setting,
    World,
    crowd,
    devices_of,
    gang,
    refusal,
    unanswered,
)
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


def busy(
    server: Simulated, *, knows_rules: bool = True
) -> tuple[Client, Scheduler]:
    """A client between whose requests a scheduler hears of everything and tries what it can."""
    scheduler = Scheduler(server, knows_rules)
    scheduler.look()
    return Client(
        server, dict.fromkeys(range(1000), scheduler.settle)
    ), scheduler


def bound(server: Simulated) -> dict[str, str | None]:
    return {
        item["metadata"]["name"]: item["spec"].get("nodeName")
        for item in server.of("pods")
    }


@pytest.mark.parametrize("kind", [NodeTaintFence, TaintRuleFence, Fence])
def test_gated_pods_are_bound_as_planned_under_every_fence(
    kind: type[Fence],
) -> None:
    server = Simulated()
    server.add(*crowd(1, gated("p", "a"), gated("q", "b")), node("other"))
    client, scheduler = busy(server)
    run = run_on(client, pause=lambda _: scheduler.settle(), watch=1)
    run.fence = kind() if kind is Fence else kind(run.objects, run.name)  # type: ignore[call-arg]
    _, units, _ = run.plan()
    outcome = run.write([unit for unit in units if unit.demands[0].pod])
    assert (outcome.asides, outcome.findings) == ((), ())
    assert bound(server) == {
        demand.key.name: demand.node
        for unit in outcome.units
        for demand in unit.demands
    }
    assert scheduler.deallocated == []
    assert all(
        "taints" not in item.get("spec", {}) for item in server.of("nodes")
    )


def test_without_a_node_of_its_own_a_pod_loses_its_plan_to_a_closed_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "dralloc.live.apply.executor.on_node", lambda _pod, _node: {}
    )
    monkeypatch.setattr(NodeTaintFence, "toleration", None)
    server = Simulated()
    server.add(*crowd(1, gated("p", "a")), node("other"))
    client, scheduler = busy(server)
    run = run_on(client, pause=lambda _: scheduler.settle(), watch=1)
    run.fence = NodeTaintFence(run.objects, run.name)
    outcome = run.write([unit for unit in run.plan()[1] if unit.demands[0].pod])
    assert set(scheduler.deallocated) == {"p"}
    assert outcome.failed


def test_a_fence_that_the_scheduler_ignores_is_void() -> None:
    """As in 1.36.0 to 1.36.2: what is fenced by rules is given away all the same."""
    held = Counter[tuple[str, str]]()
    for step in range(30):
        server = Simulated()
        claims = (claim(name, request()) for name in "ad")
        server.add(
            node(),
            device_class(),
            resource_slice(gpus(1)),
            *claims,
            gated("p", "d"),
        )
        scheduler = Scheduler(server, knows_rules=False)
        scheduler.look()
        run = run_on(
            Client(server, {step: scheduler.decide, step + 9: scheduler.bind}),
            selection=Selection(gated=True),
        )
        run.write(run.plan()[1])
        held |= Counter(
            device
            for item in server.of("resourceclaims")
            for device in devices_of(item)
        )
    assert max(held.values()) > 1


def outcome_of(server: Simulated, becomes: Json | None) -> list[str]:
    """What is said of a pod that is released, and then becomes something else."""
    run = run_on(server, watch=1)

    def happen(_seconds: float) -> None:
        pod_object = server.objects.get(("pods", "default", "p"))
        if pod_object is None or pod_object["spec"]["schedulingGates"]:
            return
        if becomes is None:
            del server.objects["pods", "default", "p"]
        else:
            server.objects["pods", "default", "p"] = {
                **pod_object,
                **becomes,
                "spec": {**pod_object["spec"], **becomes["spec"]},
            }

    run.pause = happen
    outcome = run.write(run.plan()[1])
    assert outcome.failed
    return [aside.reason for aside in outcome.asides]


def waiting() -> Simulated:
    server = Simulated()
    server.add(
        node(),
        device_class(),
        resource_slice(gpus(1)),
        claim("a", request()),
        gated("p", "a"),
    )
    return server


def test_a_pod_that_is_bound_elsewhere_is_named() -> None:
    told = outcome_of(waiting(), {"spec": {"nodeName": "other"}})
    assert told == ["pod default/p: is bound to other in place of node-0"]


def test_a_pod_that_is_not_bound_is_named_with_what_the_scheduler_says() -> (
    None
):
    conditions = [
        {
            "type": "PodScheduled",
            "status": "False",
            "message": "0/1 nodes are available",
        }
    ]
    told = outcome_of(
        waiting(), {"spec": {}, "status": {"conditions": conditions}}
    )
    assert told == [
        "pod default/p: is not bound to node-0 after 1 s: 0/1 nodes are available"
    ]


def test_a_pod_that_goes_after_its_claims_are_written_is_named() -> None:
    assert outcome_of(waiting(), None) == ["pod default/p: is gone"]


def test_a_pod_that_shares_a_claim_and_has_no_place_stays_gated() -> None:
    server = Simulated()
    both = gated("p", "a", "b")
    server.add(
        node(),
        device_class(),
        resource_slice(gpus(1)),
        claim("a", request()),
        claim("b", request()),
        both,
    )
    server.add(allocated("c", {"device": "gpu-0"}))
    assert run_on(server).plan()[1] == []


def test_pods_without_claims_do_not_wait_for_ever() -> None:
    server = Simulated()
    server.add(
        node(), device_class(), resource_slice(gpus(1)), gated("p"), pod("q")
    )
    run = run_on(server)
    outcome = run.write(run.plan()[1])
    assert [str(key) for key in outcome.released] == ["default/p"]
    assert "affinity" not in server.one("pods", "p")["spec"]


def test_nothing_is_released_of_a_unit_of_which_a_pod_is_gone() -> None:
    server = Simulated()
    server.add(*crowd(1, gated("p", "a"), gated("q", "a")))
    run = run_on(server)
    (unit,) = [unit for unit in run.plan()[1] if len(unit.demands) == 2]
    run.journal.add(
        JournalStep.BEGIN,
        run="run-1",
        fence="none",
        gate=GATE,
        units=[unit.to_dict()],
    )
    executor = Executor(run.objects, run.journal)
    executor.write(unit)
    assert devices_of(server.one("resourceclaims", "a")) != []
    server.objects.pop(("pods", "default", "q"))
    with pytest.raises(LeftAlone, match="pod default/q: is gone"):
        executor.release(unit, None)
    assert executor.released == []
    assert devices_of(server.one("resourceclaims", "a")) == []


def test_a_pod_is_not_released_without_a_claim_that_was_allocated_before() -> (
    None
):
    server = Simulated()
    earlier = allocated("b", {"device": "gpu-1"})
    server.add(*crowd(2), earlier, gated("p", "a", "b"))
    run = run_on(server)
    (unit,) = [unit for unit in run.plan()[1] if unit.pod_uids]
    assert [claim.key.name for claim in unit.claims] == ["a"]
    run.journal.add(
        JournalStep.BEGIN,
        run="run-1",
        fence="none",
        gate=GATE,
        units=[unit.to_dict()],
    )
    executor = Executor(run.objects, run.journal)
    executor.write(unit)
    server.send(
        "PATCH",
        "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/b/status",
        {},
        {"status": {"allocation": None}},
    )
    with pytest.raises(
        LeftAlone, match="claim default/b: is not allocated any more"
    ):
        executor.release(unit, None)
    assert executor.released == []
    assert devices_of(server.one("resourceclaims", "a")) == []


def test_a_pod_is_released_also_where_the_answer_is_lost() -> None:
    server = Simulated()
    server.add(*crowd(1, gated("p", "a")))
    client = Client(server)
    run = run_on(client)
    lost: list[int] = []

    def lose() -> None:
        """The answer to the change that takes the gate is lost."""
        if released_of(server) and not lost:
            lost.append(client.steps)
            unanswered()

    client.agenda = dict.fromkeys(range(1000), lose)
    outcome = run.write([unit for unit in run.plan()[1] if unit.pod_uids])
    assert len(lost) == 1
    assert outcome.asides == ()
    assert [key.name for key in outcome.released] == ["p"]


def released_of(server: Simulated) -> list[str]:
    return [
        item["metadata"]["name"]
        for item in server.of("pods")
        if item["spec"].get("schedulingGates") == []
    ]


def test_a_rollback_takes_nothing_from_pods_that_are_released() -> None:
    """A gang of which one pod has lost its gate when the run is killed; the other would keep it waiting for ever."""
    for step in range(Setting(gang=True).world().apply({})):
        world = Setting(gang=True).world()
        world.apply({step: world.journal.kill})
        if not world.journal.unfinished:
            continue
        begun = released_of(world.server) != []
        # What was planned anew later says nothing of what was released before.
        world.journal.entries.append({"step": "plan", "units": []})
        world.rollback({})
        held = [
            item["metadata"]["name"]
            for item in world.server.of("resourceclaims")
            if devices_of(item) and item["metadata"]["name"] in "abc"
        ]
        assert held == (["a", "b", "c"] if begun else []), step
        released = released_of(world.server)
        assert released == (["p", "q"] if begun else []), step
        world.check()


GANG = Setting(gang=True)


def full_at(step: int) -> World:
    world = GANG.world()
    world.apply({step: world.journal.fill})
    return world


@cache
def last_step_before_release() -> int:
    for step in reversed(range(GANG.world().apply({}))):
        server = full_at(step).server
        is_written = all(map(devices_of, server.of("resourceclaims")))
        if is_written and not released_of(server):
            return step
    raise AssertionError("released before everything is written")


def written_and_gated() -> World:
    """A gang whose claims are written when the disk is full, so that no pod can be released and the fence is lifted."""
    return full_at(last_step_before_release())


def test_a_rollback_leaves_what_another_run_is_about_to_release() -> None:
    """The other one releases the gang between two steps of the rollback, or is rolled back between two of its own."""
    for step in range(40):
        world = written_and_gated()
        world.rollback({step: world.rival_run})
        world.end()
        world.check()
    outcomes: Counter[int] = Counter()
    for step in range(90):
        world = written_and_gated()
        rival = Journalled()
        world.rivals.append(rival)
        world.apply({step: partial(world.rollback, {})}, rival)
        outcomes[len(released_of(world.server))] += 1
        world.end()
        world.check()
    assert outcomes[0] > 0
    assert outcomes[2] > 0


def adopted_and_gated() -> tuple[World, Journalled]:
    """A gang that a killed run wrote, and the journal of another, killed when it had adopted a claim or all of them."""
    world = written_and_gated()
    rival = Journalled()
    world.rivals.append(rival)
    return world, rival


def rolled_back(world: World, journal: Journalled) -> None:
    """Roll back what another journal is about."""
    world.journal, first = journal, world.journal
    world.rollback({})
    world.journal = first


def names_on_claims(world: World) -> list[str]:
    """The runs whose names the claims of the gang have."""
    return [
        world.server.one("resourceclaims", name)["metadata"]
        .get("annotations", {})
        .get(RUN, "")
        for name in "abc"
    ]


def held_of_gang(world: World) -> list[str]:
    return [
        name
        for name in "abc"
        if devices_of(world.server.one("resourceclaims", name))
    ]


def test_what_a_run_adopted_its_rollback_gives_back() -> None:
    """The run that wrote it takes it back, or goes on, as if nobody had been there."""
    adopted: set[int] = set()
    for then in ("rollback", "resume"):
        for step in range(90):
            world, rival = adopted_and_gated()
            before = names_on_claims(world)
            world.apply({step: rival.kill}, rival)
            if released_of(world.server):
                break
            adopted.add(len(list(rival.of(JournalStep.ADOPT))))
            rolled_back(world, rival)
            assert names_on_claims(world) == before, step
            if then == "rollback":
                world.rollback({})
                assert held_of_gang(world) == [], step
            else:
                world.apply({})
                assert released_of(world.server) == ["p", "q"], step
            world.check()
    assert adopted >= {0, 1, 2}


def test_what_a_pod_was_released_with_is_not_given_back() -> None:
    """A gang of two: one is released, with a claim that both use, when the run is killed."""
    counts: Counter[int] = Counter()
    for step in range(120):
        world, rival = adopted_and_gated()
        world.apply({step: rival.kill}, rival)
        released = len(released_of(world.server))
        counts[released] += 1
        if rival.unfinished:
            rolled_back(world, rival)
        if released:
            world.rollback({})
            assert held_of_gang(world) == ["a", "b", "c"], step
            world.rival_run()
            assert released_of(world.server) == ["p", "q"], step
        world.end()
        world.check()
    assert counts[1] > 0
    assert counts[2] > 0


@dataclass
class OfOthers(Client):
    """A client that is never fast enough to change the claim b."""

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
    ) -> Json:
        if method == "PATCH" and path.endswith("/resourceclaims/b"):
            raise Refused(409, "said the server")
        return super().send(method, path, query, body)


def test_a_claim_is_given_back_if_the_next_one_cannot_be_adopted() -> None:
    """Before, it stayed with a run that did nothing with it, so that its own run could not take it back."""
    world, _ = adopted_and_gated()
    before = names_on_claims(world)
    run = run_on(OfOthers(world.server), "run-9")
    outcome = run.write(run.plan()[1])
    reasons = {aside.key.name: aside.reason for aside in outcome.asides}
    assert reasons == dict.fromkeys(
        "pq", "claim default/b: is changed by somebody else"
    )
    assert outcome.released == ()
    given = run.journal.of(JournalStep.GIVE_BACK)
    assert [entry["claim"][1] for entry in given] == ["a"]
    assert names_on_claims(world) == before
    world.rollback({})
    assert held_of_gang(world) == []


def test_a_rollback_leaves_a_gang_whole_of_which_another_run_adopted_a_part() -> (
    None
):
    adopted: list[int] = []
    for step in range(90):
        world = written_and_gated()
        rival = Journalled()
        world.rivals.append(rival)
        world.apply({step: rival.kill}, rival)
        world.rollback({})
        if released_of(world.server):
            break
        held = {
            claim["metadata"]["name"]
            for claim in world.server.of("resourceclaims")
            if devices_of(claim)
        }
        assert len(held & {"a", "b", "c"}) in (0, 3), step
        adopted.append(len(list(rival.of(JournalStep.ADOPT))))
        world.end()
        world.check()
    assert 1 in adopted


def test_a_rollback_releases_the_rest_of_a_gang_where_it_was_written() -> None:
    """The first plan of the run had another node for it."""
    server = Simulated()
    server.add(*gang())
    run = run_on(server)
    plans: list[WriteUnit] = []
    for _ in range(2):
        (unit,) = [unit for unit in run.plan()[1] if len(unit.demands) == 2]
        plans.append(unit)
        path = f"/api/v1/nodes/{unit.demands[0].node}"
        server.send("PATCH", path, {}, {"spec": {"unschedulable": True}})
    for name in ("node-0", "node-1"):
        change = {"spec": {"unschedulable": None}}
        server.send("PATCH", f"/api/v1/nodes/{name}", {}, change)
    first, second = plans
    run.journal.add(
        JournalStep.BEGIN,
        run=run.name,
        fence=run.fence.kind,
        gate=GATE,
        units=[first.to_dict()],
    )
    run.journal.add(JournalStep.PLAN, units=[second.to_dict()])
    executor = Executor(run.objects, run.journal)
    executor.write(second)
    executor._release(second.demands[0], None)
    run_on(server, "run-2", journal=run.journal).rollback()
    scheduler = Scheduler(server)
    for _ in range(3):
        scheduler.settle()
    (node,) = {demand.node for demand in second.demands}
    assert node not in {demand.node for demand in first.demands}
    assert bound(server) == {"p": node, "q": node}


def test_what_is_released_keeps_its_claims_although_the_rest_cannot_be_written() -> (
    None
):
    """A gang of which one pod is released when the run is killed, and a claim of the other goes meanwhile."""
    for step in range(Setting(gang=True).world().apply({})):
        world = Setting(gang=True).world()
        world.apply({step: world.journal.kill})
        begun = released_of(world.server) == ["p"]
        if not (world.journal.unfinished and begun):
            continue
        world.server.objects.pop(("resourceclaims", "default", "c"))
        world.deleted.add("c")
        world.apply({})
        assert devices_of(world.server.one("resourceclaims", "a")) != [], step
        assert devices_of(world.server.one("resourceclaims", "b")) != [], step
        assert released_of(world.server) == ["p"], step


def test_what_has_begun_to_be_released_is_released() -> None:
    server = Simulated()
    server.add(*crowd(1, gated("p", "a"), gated("q", "a"), gated("r", "a")))
    run = run_on(server)
    (unit,) = [unit for unit in run.plan()[1] if len(unit.demands) == 3]
    run.journal.add(
        JournalStep.BEGIN,
        run="run-1",
        fence="none",
        gate=GATE,
        units=[unit.to_dict()],
    )
    executor = Executor(run.objects, run.journal)
    executor.write(unit)
    server.send(
        "PATCH",
        "/api/v1/namespaces/default/pods/p",
        {},
        {"spec": {"schedulingGates": []}},
    )
    server.objects.pop(("pods", "default", "q"))
    executor.release(unit, None)
    assert [str(key) for key in executor.released] == ["default/r"]
    assert [str(why) for why in executor.stuck.values()] == [
        'pod default/q: is gone (pods "q" not found)'
    ]
    assert devices_of(server.one("resourceclaims", "a")) != []


def test_what_the_scheduler_takes_back_of_pods_without_a_gate_is_planned_anew() -> (
    None
):
    server = Simulated()
    server.add(*crowd(1, pod("q", "b")), node("other"))
    _, scheduler = busy(server)
    tries: list[bool] = []

    def works(_seconds: float) -> None:
        """The scheduler tries the pod in the middle of the first fence, and again in the end."""
        fenced = any(
            item.get("spec", {}).get("taints") for item in server.of("nodes")
        )
        if not fenced or not tries:
            scheduler.settle()
        tries.extend([fenced] if fenced and scheduler.deallocated else [])

    client = Client(server, {})
    run = run_on(client, pause=works, watch=1)
    run.fence = NodeTaintFence(run.objects, run.name)
    _, units, _ = run.plan()
    outcome = run.write([unit for unit in units if unit.demands[0].pod])
    assert scheduler.deallocated == ["q"]
    assert (outcome.asides, outcome.findings) == ((), ())
    (demand,) = [
        unit_demand
        for unit in outcome.units
        for unit_demand in unit.demands
        if unit_demand.pod
    ]
    assert bound(server)["q"] == demand.node


def test_a_pod_whose_claims_are_allocated_is_released_only_if_a_node_has_room() -> (
    None
):
    server = Simulated()
    home = {**node(), "status": {"allocatable": {"cpu": "4", "pods": "10"}}}
    shared = allocated("a", {"device": "gpu-0"})
    server.add(home, device_class(), resource_slice(gpus(1)), shared)
    for name, cpu in (("large", "8"), ("small", "1")):
        containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
        server.add(gated(name, "a", containers=containers))
    run = run_on(server)
    outcome = run.write(run.plan()[1])
    assert [str(key) for key in outcome.released] == ["default/small"]
    told = {str(aside.key): aside.reason for aside in outcome.asides}
    why = "its claims are allocated, and no node has room for it"
    assert told == {"default/large": why}


def test_the_rest_of_a_gang_that_waits_for_it_is_released() -> None:
    """A run was killed between two releases: the first pod is not bound before the second one comes."""
    server = Simulated()
    server.add(*gang())
    for name, index in (("a", 0), ("b", 1), ("c", 2)):
        held = allocated(name, {"device": f"gpu-{index}"})["status"]
        path = f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{name}/status"
        server.send("PATCH", path, {}, {"status": held})
    server.send(
        "PATCH",
        "/api/v1/namespaces/default/pods/p",
        {},
        {"spec": {"schedulingGates": []}},
    )
    for gated_only in (True, False):
        run = run_on(server, selection=Selection(gated=gated_only))
        _, units, asides = run.plan()
        released = [
            demand.key.name for unit in units for demand in unit.demands
        ]
        assert "q" in released, gated_only
        assert "p" not in released
        assert asides == []


def test_a_pod_that_has_no_room_because_of_a_fence_is_told_of_it() -> None:
    """Its claims are written, and the run that wrote them was killed under its fence."""
    server = Simulated()
    server.add(*crowd(1, gated("p", "a")))
    client = Client(server)

    def die_once_it_is_written() -> None:
        if devices_of(server.one("resourceclaims", "a")):
            client.kill()

    client.agenda = dict.fromkeys(range(1000), die_once_it_is_written)
    first = run_on(client)
    first.fence = NodeTaintFence(first.objects, first.name)
    with pytest.raises(Killed):
        first.write(first.plan()[1])
    _, units, asides = run_on(server, "run-2").plan()
    assert [unit for unit in units if unit.pod_uids] == []
    told = {str(aside.key): aside.reason for aside in asides}
    assert told.keys() == {"default/p"}
    why, _, whose = told["default/p"].partition("; ")
    assert why == "its claims are allocated, and no node has room for it"
    assert whose == "run run-1 fences 2 parts of the cluster"


def test_a_rollback_that_may_not_look_at_a_pod_takes_nothing_from_it() -> None:
    """The gang's first pod was released when the run was killed; the server refuses one look at it."""
    for step in range(30):
        world = half_released()
        world.rollback({step: refusal(403)})
        if world.journal.unfinished:
            world.rollback({})
        assert held_of_gang(world) == ["a", "b", "c"], step


def half_released() -> World:
    """A gang of which one pod was released when the run was killed."""
    world = GANG.world()
    world.apply({last_step_of_half(): world.journal.kill})
    return world


@cache
def last_step_of_half() -> int:
    for step in reversed(range(GANG.world().apply({}))):
        world = GANG.world()
        world.apply({step: world.journal.kill})
        if world.journal.unfinished and released_of(world.server) == ["p"]:
            return step
    raise AssertionError("never released by halves")
