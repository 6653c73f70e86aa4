"""Pods of a PodGroup as kube-scheduler takes them: together, enough of them or none, and in one domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dralloc
import wire
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Mode
from dralloc.solve.scheduler import Attempt, Scheduler, profiles_of, schedule
from dralloc.solve.scheduler.group_cycle import GroupCycle, GroupTrial
from examples import examples
from scheduling_strategies import CrowdedCluster, crowded_clusters
from scheduling_wire import configured, node, pod
from wire import Json

WAITING = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)
ZONES = {"n0": "a", "n1": "a", "n2": "b", "n3": "b"}


def cluster(
    *objects: Json | Sequence[Json], sizes: Sequence[int] = (2, 2, 2, 2)
) -> dralloc.Cluster:
    """Four nodes in two zones, with some GPUs each."""
    nodes = [node(name, labels={"zone": zone}) for name, zone in ZONES.items()]
    slices = [
        wire.resource_slice(
            wire.gpus(size), name=name, pool=name, nodeName=name
        )
        for name, size in zip(ZONES, sizes, strict=True)
        if size
    ]
    return wire.cluster(nodes, wire.device_class(), slices, *objects)


def group(name: str = "g", least: int | None = None, key: str = "") -> Json:
    """A PodGroup: a gang if there is a least number of pods."""
    spec: Json = {
        "schedulingPolicy": {"basic": {}}
        if least is None
        else {"gang": {"minCount": least}}
    }
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def members(count: int, name: str = "g", **spec: Any) -> list[Json]:
    """Pods of a group that ask for a GPU each."""
    objects: list[Json] = []
    for pod_index in range(count):
        claim = f"{name}-{pod_index}"
        entries = [{"name": "gpu", "resourceClaimName": claim}]
        objects.append(wire.claim(claim, wire.request()))
        objects.append(
            pod(
                claim,
                resourceClaims=entries,
                schedulingGroup={"podGroupName": name},
                **spec,
            )
        )
    return objects


def scheduled(
    objects: dralloc.Cluster, **choices: Any
) -> tuple[dict[str, str], dict[str, str]]:
    """The nodes of placed pods, and the scheduler's words for the others."""
    plan = dralloc.allocate(objects, "scheduler", **choices)
    placed = {
        plan.demands[placement.demand].key.name: plan.node_of(placement)
        for placement in plan.solution.placements
    }
    return placed, {
        demand.key.name: str(demand.reason) for demand in plan.unplaced
    }


def test_a_gang_without_enough_nodes_leaves_nothing_behind() -> None:
    early, late = members(9, priority=1), members(8, "later")
    placed, unplaced = scheduled(
        cluster(group(least=9), early, group("later", 8), late)
    )
    assert set(placed) == {f"later-{index}" for index in range(8)}
    assert sorted(unplaced.values())[1:] == [WAITING] * 8


def test_the_feature_switches_gangs() -> None:
    objects = cluster(group(least=9), members(9))
    assert len(scheduled(objects)[0]) == 0
    assert (
        len(
            scheduled(objects, features=dralloc.Features.of_kubernetes("1.36"))[
                0
            ]
        )
        == 8
    )


def test_more_than_enough_are_welcome() -> None:
    placed, unplaced = scheduled(cluster(group(least=7), members(9)))
    assert len(placed) == 8
    assert [reason.partition(".")[0] for reason in unplaced.values()] == [
        "0/4 nodes are available: 4 cannot allocate all claims"
    ]


def test_those_that_run_count() -> None:
    there = pod("there", on="n0", schedulingGroup={"podGroupName": "g"})
    assert len(scheduled(cluster(group(least=9), members(9), there))[0]) == 8


def test_a_group_is_in_one_domain_where_most_of_it_fits() -> None:
    objects = cluster(
        group(least=2, key="zone"), members(4), sizes=(2, 0, 2, 1)
    )
    assert {len(scheduled(objects, seed=seed)[0]) for seed in range(5)} == {3}
    assert {
        ZONES[home]
        for seed in range(5)
        for home in scheduled(objects, seed=seed)[0].values()
    } == {"b"}


def test_of_equal_domains_the_fuller_one_is_taken() -> None:
    busy = pod("busy", on="n2", requests={"cpu": "4"})
    objects = cluster(group(least=2, key="zone"), members(2), busy)
    assert {
        ZONES[home]
        for seed in range(5)
        for home in scheduled(objects, seed=seed)[0].values()
    } == {"b"}


def test_a_group_stays_in_the_domain_of_those_that_run() -> None:
    there = pod("there", on="n3", schedulingGroup={"podGroupName": "g"})
    placed, _ = scheduled(
        cluster(group(least=1, key="zone"), members(3), there)
    )
    assert {ZONES[home] for home in placed.values()} == {"b"}


def test_without_a_domain_the_scheduler_says_so() -> None:
    assert set(
        scheduled(cluster(group(least=1, key="rack"), members(2)))[1].values()
    ) == {"no feasible placements found"}


@pytest.mark.parametrize("policy", ["PreemptLowerPriority", "Never"])
def test_a_group_in_one_domain_is_told_of_that_before_its_preemption_policy(
    policy: str,
) -> None:
    waiting = members(5, preemptionPolicy=policy)
    reasons = scheduled(cluster(group(least=5, key="zone"), waiting))[1]
    assert any(
        reason.endswith(
            "preemption: not eligible due to placement-based pod group scheduling limitation"
        )
        for reason in reasons.values()
    )


def test_members_in_two_domains_keep_the_others_out() -> None:
    there = [
        pod(name, on=name, schedulingGroup={"podGroupName": "g"})
        for name in ("n0", "n2")
    ]
    _, unplaced = scheduled(
        cluster(group(least=1, key="zone"), members(1), there)
    )
    assert unplaced["g-0"].endswith(
        "more than 1 domain found for pod group: a, b"
    )


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([], 'waiting for pods\'s pod group "g" to appear in scheduling queue'),
        (
            [group(least=3)],
            "waiting for minCount pods from a gang to appear in scheduling queue",
        ),
    ],
)
def test_a_group_that_is_not_complete_does_not_come_into_the_queue(
    objects: list[Json], reason: str
) -> None:
    assert set(scheduled(cluster(objects, members(2)))[1].values()) == {reason}


def test_pods_of_a_group_come_together_and_by_priority() -> None:
    urgent = members(1, "other", priority=7)
    late = members(2, "g", priority=1)
    late[1]["spec"]["priority"] = 9
    placed, _ = scheduled(
        cluster(group(), group("other"), late, urgent, sizes=(1, 0, 0, 1))
    )
    assert set(placed) == {"g-0", "g-1"}


def test_an_error_for_one_pod_is_one_for_all_of_its_group() -> None:
    broken = members(2)
    broken[2]["spec"]["devices"]["requests"] = [
        wire.request("gpu", "device.attributes['x.com'].missing")
    ]
    _, unplaced = scheduled(cluster(group(), broken))
    first, second = (unplaced[f"g-{index}"] for index in range(2))
    assert second.startswith('running "DynamicResources" filter plugin')
    assert first == f"failed to schedule other pod from a pod group: {second}"


def state(scheduler: Scheduler, attempt: Attempt) -> Json:
    return {
        "scores": {
            plugin: scores.tolist() for plugin, scores in attempt.scores.items()
        },
        "rejected": {
            host.name: rejection for host, rejection in attempt.rejected.items()
        },
        "message": attempt.message,
        "placed": scheduler.solution.placements,
    }


@settings(max_examples=examples(20))
@given(crowded_clusters(), st.data())
def test_who_is_taken_back_was_never_there(
    crowded: CrowdedCluster, data: st.DataObject
) -> None:
    compiled = compile_cluster(wire.cluster(*crowded.objects))
    profiles = profiles_of(crowded.configuration, "test")
    trying, straight = (
        Scheduler(compiled, profiles, crowded.heard_of) for _ in range(2)
    )
    waiting = [
        pod_object.key
        for pod_object in compiled.cluster.pods
        if not pod_object.spec.node_name
    ]
    everywhere = [host.name for host in straight.snapshot.nodes]
    for pod_index, key in enumerate(waiting):
        back = []
        later = waiting[pod_index:]
        for other in data.draw(
            st.lists(st.sampled_from(later), max_size=3, unique=True)
        ):
            attempt = trying.attempt(other, everywhere)
            if attempt.feasible:
                trying.bind(other, attempt.chosen)
                back.append((other, attempt.chosen))
        for other, home in reversed(back):
            trying.unbind(other, home)
        actual, expected = (
            trying.attempt(key, everywhere),
            straight.attempt(key, everywhere),
        )
        assert state(trying, actual) == state(straight, expected)
        if expected.feasible:
            for scheduler, attempt in ((trying, actual), (straight, expected)):
                scheduler.bind(key, attempt.chosen)


def test_gangs_are_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    plainly_tried = GroupCycle.tried

    def counted(*args: Any, **words: Any) -> GroupTrial:
        tried.append(1)
        return plainly_tried(*args, **words)

    monkeypatch.setattr(GroupCycle, "tried", counted)
    nodes = [
        node(f"n{node_index}", labels={"rack": f"r{node_index}"})
        for node_index in range(8)
    ]
    slices = [
        wire.resource_slice(
            wire.gpus(3),
            name=f"n{node_index}",
            pool=f"n{node_index}",
            nodeName=f"n{node_index}",
        )
        for node_index in range(8)
    ]
    crowd = members(3, requests={"cpu": "1"})
    gang = group(least=3, key="rack")
    objects = wire.cluster(nodes, wire.device_class(), slices, crowd, gang)
    solution = schedule(compile_cluster(objects, modes={Mode.SCHEDULER}))
    assert len({home for _, home in solution.bindings}) == 1
    assert len(solution.bindings) == 3
    # Only the first domain is tried in fact; what becomes of the gang in the others is known without binding anybody.
    assert len(tried) == 1


@pytest.mark.parametrize("seed", range(4))
def test_a_node_with_an_invalid_pool_is_rehearsed_until_it_is_full(
    seed: int,
) -> None:
    """That the pool is invalid is an error of the node, which is met once its GPU is gone: it ended the run."""
    twins = wire.resource_slice(
        [wire.device("twin"), wire.device("twin")],
        name="twins",
        pool="twins",
        nodeName="n0",
    )
    gang = group(least=3, key="zone")
    source = cluster(gang, members(3), twins, sizes=(1, 1, 2, 2))
    placed, _ = scheduled(source, seed=seed)
    assert {ZONES[home] for home in placed.values()} == {"b"}
    assert len(placed) == 3


def test_pods_of_a_group_are_for_one_scheduler() -> None:
    document = configured(schedulerName="default-scheduler")
    document["profiles"].append({"schedulerName": "second"})
    profiles = profiles_of(document, "test")
    others = pod(
        "two", schedulerName="second", schedulingGroup={"podGroupName": "g"}
    )
    objects = cluster(group(), members(1, priority=1), others)
    solution = schedule(compile_cluster(objects), profiles)
    assert not solution.bindings
    (error,) = solution.errors.values()
    assert str(error) == (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        'got: "second" and "default-scheduler"'
    )
