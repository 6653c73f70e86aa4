"""Preemption that frees devices (KEP-5690): examples, and random clusters against a scheduler without anybody evicted.

The referee never supposes anything: it asks a new scheduler about a cluster in which the victims and their claims are
really gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

import dralloc
import scheduling_wire
from dralloc.ask.scenario import Scenario
from dralloc.check import check
from dralloc.compile.compiler import compile_cluster
from dralloc.compile.write import allocated_claims
from dralloc.objects.api import Pod
from dralloc.objects.cluster import Cluster
from dralloc.objects.features import ALL_FEATURES
from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler import Profile, Scheduler, SchedulingRun
from dralloc.solve.scheduler.release import USUAL
from examples import INDEPENDENT, examples
from preemptions import Crowd, crowds, queues
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    consumes,
    counters,
    device,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

QUICKLY = settings(
    max_examples=examples(60),
    backend=INDEPENDENT,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
WHOLE = "device.attributes['gpu.example.com'].?whole.orValue(false)"
OFF = ALL_FEATURES.switched({"DRAPreemption": False})


# The referee.


def freed(whole: Cluster, victims: Collection[Pod]) -> Iterator[ClaimKey]:
    """The claims that upstream supposes to be free, by the objects: KEP-5690, "Proposal"."""
    named = {
        (slice_.spec.driver, slice_.spec.pool.name, slice_device.name)
        for slice_ in whole.slices
        for slice_device in slice_.spec.devices
        if slice_.spec.node_name or slice_device.node_name
    }
    leaving = {victim.key for victim in victims if victim.pod_group is None}
    for claim_object in whole.claims:
        users = {
            user.key
            for user in whole.pods
            if user.spec.node_name
            and claim_object.key in whole.claims_of_pods[user.key]
        }
        reserved = {
            ClaimKey(claim_object.key.namespace, user.name)
            for user in claim_object.status.reserved_for
        }
        is_local = all(
            tuple(result.device_id) in named for result in claim_object.results
        )
        users |= reserved
        if (
            claim_object.is_allocated
            and users
            and users <= leaving
            and is_local
        ):
            yield claim_object.key


def is_feasible(
    whole: Cluster, newcomer: ClaimKey, home: str, victims: Collection[Pod]
) -> bool:
    """Whether the newcomer could go to a node if the victims were gone, with the claims that upstream frees."""
    released = {
        key
        for key in freed(whole, victims)
        if key not in whole.claims_of_pods[newcomer]
    }
    after = (
        Scenario(whole)
        .release(released)
        .without_pods({victim.key for victim in victims})
    )
    compiled = compile_cluster(after.cluster, features=OFF)
    attempt = Scheduler(compiled, (Profile(),)).attempt(newcomer, [home])
    return bool(attempt.feasible)


def victims_on(whole: Cluster, newcomer: Pod, home: str) -> list[Pod] | None:
    """Whom upstream evicts on a node (``SelectVictimsOnNode``); None if that does not help."""
    below = [
        pod_object
        for pod_object in whole.pods
        if pod_object.spec.node_name == home
        and (pod_object.spec.priority or 0) < (newcomer.spec.priority or 0)
    ]
    if not below or not is_feasible(whole, newcomer.key, home, below):
        return None
    victims = sorted(below, key=lambda victim: -(victim.spec.priority or 0))
    for candidate in tuple(victims):
        fewer = [victim for victim in victims if victim is not candidate]
        if is_feasible(whole, newcomer.key, home, fewer):
            victims = fewer
    return victims


def rank(victims: Collection[Pod]) -> tuple[int, int, int]:
    """The smaller the better (``pickOneNodeForPreemption``), but for when they started."""
    priorities = [victim.spec.priority or 0 for victim in victims]
    return (
        max(priorities),
        sum(priority + 2**31 for priority in priorities),
        len(priorities),
    )


@QUICKLY
@given(crowd=crowds())
def test_victims_are_those_of_a_scheduler_that_sees_them_gone(
    crowd: Crowd,
) -> None:
    whole = crowd.cluster
    compiled = compile_cluster(whole)
    scheduler = Scheduler(compiled, (Profile(),))
    newcomer = compiled.cluster.pods_by_key[crowd.pod]
    if newcomer.key in compiled.cluster.unresolved:
        return
    attempt = scheduler.attempt(newcomer.key)
    if attempt.feasible or attempt.is_error:
        event("fits" if attempt.feasible else "an error")
        return
    homes = [host.name for host in attempt.rejected]
    expected = {
        home: victims
        for home in homes
        if (victims := victims_on(compiled.cluster, newcomer, home))
    }
    nomination = scheduler.nominate(attempt)
    event("victims" if expected else "hopeless")
    if nomination is None:
        assert not expected
        return
    released = list(
        freed(
            compiled.cluster,
            [
                compiled.cluster.pods_by_key[victim.key]
                for victim in nomination.victims
            ],
        )
    )
    event("with claims" if nomination.released else "without claims")
    assert set(nomination.released) <= set(released)
    best = min(map(rank, expected.values()))
    chosen = [
        compiled.cluster.pods_by_key[victim.key]
        for victim in nomination.victims
    ]
    assert rank(chosen) == best
    # Who started when is not told: equal priorities stand in any order.
    assert len(chosen) == len(expected[nomination.node.name])
    # Evicted for good, they leave what was promised.
    again = Scheduler(compiled, (Profile(),))
    evicted = again.preempt(again.attempt(newcomer.key))
    assert evicted is not None
    assert again.attempt(newcomer.key, [evicted[0].name]).feasible


@QUICKLY
@given(crowd=crowds(), seed=st.integers(0, 3))
def test_what_is_kept_is_there_once_the_victims_are_gone(
    crowd: Crowd, seed: int
) -> None:
    """Two pods that ran wait, too, and come later: none of them takes away what was promised."""
    whole = crowd.cluster
    latecomers = [
        pod_object.key
        for pod_object in whole.pods
        if pod_object.spec.node_name and pod_object.pod_group is None
    ][:2]
    theirs = {
        key
        for latecomer in latecomers
        for key in whole.claims_of_pods[latecomer]
    }
    waiting = Scenario(whole).release(theirs).unbind(latecomers)
    assert_kept(waiting.cluster, seed)


@settings(QUICKLY, max_examples=examples(400))
@given(waiting=queues(), seed=st.integers(0, 3))
def test_what_several_pods_are_promised_of_counters_is_there_for_all(
    waiting: Cluster, seed: int
) -> None:
    assert_kept(waiting, seed)


def assert_kept(waiting: Cluster, seed: int) -> None:
    """Schedule all pods, and then let the victims go: each nominated pod finds room where it was nominated."""
    compiled = compile_cluster(waiting)
    run = SchedulingRun(
        compiled, (Profile(),), Random(seed), USUAL, nominates=True
    )
    run.schedule_all()
    check(compiled.problem, run.scheduler.solution)
    written = allocated_claims(compiled, run.scheduler.solution)
    event(f"{len(run.nominations)} nominated, {len(run.bindings)} bound")
    after = (
        Scenario(compiled.cluster)
        .settle(written, dict(run.bindings))
        .release(
            {
                key
                for nomination in run.nominations
                for key in nomination.released
            }
        )
        .without_pods(
            {
                pod.key
                for nomination in run.nominations
                for pod in nomination.victims
            }
        )
    )
    scheduler = Scheduler(
        compile_cluster(after.cluster, features=OFF), (Profile(),)
    )
    claims_of_pods = waiting.claims_of_pods
    uses = Counter(key for keys in claims_of_pods.values() for key in keys)
    for nomination in run.nominations:
        key = nomination.pod.key
        if any(uses[claim_key] > 1 for claim_key in claims_of_pods[key]):
            # Another pod may have allocated the claim elsewhere.
            return
        attempt = scheduler.attempt(key, [nomination.node.name])
        assert attempt.feasible, attempt.message
        scheduler.bind(key, attempt.chosen)


# Examples.


def running(
    name: str, home: str, *devices: str, priority: int = 0, pool: str = ""
) -> list[Json]:
    """A pod with GPUs of a pool, its node's if none is named."""
    results = [
        {
            "request": "gpu",
            "driver": "gpu.example.com",
            "pool": pool or home,
            "device": device_name,
        }
        for device_name in devices
    ]
    held = allocated(name, *results)
    return [
        pod(name, name, nodeName=home, priority=priority),
        held,
    ]


def asking(name: str, count: int = 1, **spec: Any) -> list[Json]:
    """A pod that waits for GPUs."""
    return [pod(name, name, **spec), claim(name, request(count=count))]


def one_node(size: int, *objects: Json | list[Json]) -> Cluster:
    slices = resource_slice(gpus(size), pool="node-0", nodeName="node-0")
    return cluster(device_class(), node("node-0"), slices, *objects)


def reasons(plan: dralloc.Plan) -> dict[str, str]:
    return {demand.claims[0].name: demand.reason for demand in plan.unplaced}


def test_a_pod_is_nominated_where_devices_would_be_free() -> None:
    plan = dralloc.allocate(
        one_node(
            1, running("low", "node-0", "gpu-0"), asking("high", priority=5)
        ),
        "scheduler",
    )
    assert not plan.solution.placements
    assert reasons(plan)["high"].endswith(
        "nominated for node-0, from where it evicts default/low"
    )
    assert plan.solution.warnings == (
        "1 pods wait until others are evicted for them: default/high: "
        "nominated for node-0, from where it evicts default/low",
    )


def test_without_the_gate_nobody_is_nominated() -> None:
    plan = dralloc.allocate(
        one_node(
            1, running("low", "node-0", "gpu-0"), asking("high", priority=5)
        ),
        "scheduler",
        features=OFF,
    )
    assert "nominated" not in str(reasons(plan))
    assert not plan.solution.warnings


def test_free_devices_are_kept_for_who_evicts_for_the_rest() -> None:
    """One of two GPUs is free, and the important pod needs both: a lesser one does not get the free one."""
    others = [asking("high", 2, priority=5), asking("lesser", 1, priority=1)]
    source = one_node(2, running("low", "node-0", "gpu-0"), *others)
    plan = dralloc.allocate(source, "scheduler")
    assert not plan.solution.placements
    assert "evicts default/low" in reasons(plan)["high"]
    without = dralloc.allocate(source, "scheduler", features=OFF)
    assert [key.name for demand in without.placed for key in demand.claims] == [
        "lesser"
    ]


def test_what_victims_have_to_spare_is_not_free_before_they_are_gone() -> None:
    """The victim has two GPUs, one is promised: the other one is not free yet."""
    others = [asking("high", 1, priority=5), asking("lesser", 1, priority=0)]
    source = one_node(2, running("low", "node-0", "gpu-0", "gpu-1"), *others)
    plan = dralloc.allocate(source, "scheduler")
    assert not plan.solution.placements
    assert "nominated" not in reasons(plan)["lesser"]


def test_two_pods_share_a_victim() -> None:
    """KEP-5690, "Sharing a terminating victim"."""
    others = [asking("p1", 1, priority=5), asking("p2", 1, priority=5)]
    source = one_node(2, running("low", "node-0", "gpu-0", "gpu-1"), *others)
    plan = dralloc.allocate(source, "scheduler")
    assert all(
        "evicts default/low" in reason for reason in reasons(plan).values()
    )


def test_a_shared_victim_gives_back_its_counters_once() -> None:
    """Of four units the victim has three. Two pods are promised two each: the unit that is free now is for them."""
    partitions = [
        device(
            name,
            {"units": units},
            consumesCounters=consumes("gpu", memory=str(units)),
        )
        for name, units in {
            "three": 3,
            "two-a": 2,
            "two-b": 2,
            "one": 1,
        }.items()
    ]
    published: Json = {"pool": "node-0", "nodeName": "node-0", "count": 2}
    asked = {"p1": (2, 5), "p2": (2, 5), "lesser": (1, 1)}
    waiting = [
        [
            pod(name, name, priority=priority),
            claim(
                name,
                request(
                    "gpu",
                    f"device.attributes['gpu.example.com'].units == {units}",
                ),
            ),
        ]
        for name, (units, priority) in asked.items()
    ]
    source = cluster(
        device_class(),
        node("node-0"),
        resource_slice(
            name="sets",
            sharedCounters=[counters("gpu", memory="4")],
            **published,
        ),
        resource_slice(partitions, **published),
        running("low", "node-0", "three"),
        *waiting,
    )
    plan = dralloc.allocate(source, "scheduler")
    said = reasons(plan)
    assert not plan.solution.placements
    assert "evicts default/low" in said["p1"]
    assert "evicts default/low" in said["p2"]
    assert "nominated" not in said["lesser"]


def test_a_third_pod_finds_no_victim() -> None:
    others = [asking(f"p{index}", 1, priority=5) for index in range(3)]
    source = one_node(2, running("low", "node-0", "gpu-0", "gpu-1"), *others)
    said = list(reasons(dralloc.allocate(source, "scheduler")).values())
    assert sum("nominated" in reason for reason in said) == 2


@pytest.mark.parametrize(
    "where",
    [
        {"allNodes": True},
        {
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {
                        "matchFields": [
                            {
                                "key": "metadata.name",
                                "operator": "In",
                                "values": ["node-0"],
                            }
                        ]
                    }
                ]
            }
        },
    ],
)
def test_devices_that_belong_to_no_node_by_name_are_not_freed(
    where: Json,
) -> None:
    source = cluster(
        device_class(),
        node("node-0"),
        resource_slice(gpus(1), pool="net", **where),
        running("low", "node-0", "gpu-0", pool="net"),
        asking("high", priority=5),
    )
    assert "nominated" not in str(
        reasons(dralloc.allocate(source, "scheduler"))
    )


def test_a_device_may_name_its_node_itself() -> None:
    source = cluster(
        device_class(),
        node("node-0"),
        resource_slice(
            gpus(1, nodeName="node-0"), pool="net", perDeviceNodeSelection=True
        ),
        running("low", "node-0", "gpu-0", pool="net"),
        asking("high", priority=5),
    )
    assert "nominated" in reasons(dralloc.allocate(source, "scheduler"))["high"]


def test_a_shared_claim_is_free_without_all_of_its_users() -> None:
    user = pod("user", "low", nodeName="node-0", priority=9)
    source = one_node(
        1, running("low", "node-0", "gpu-0"), user, asking("high", priority=5)
    )
    assert "nominated" not in str(
        reasons(dralloc.allocate(source, "scheduler"))
    )
    user["spec"]["priority"] = 0
    plan = dralloc.allocate(
        one_node(
            1,
            running("low", "node-0", "gpu-0"),
            user,
            asking("high", priority=5),
        ),
        "scheduler",
    )
    assert "evicts default/low, default/user" in reasons(plan)["high"]


def test_pods_of_groups_free_no_devices_and_get_none_that_way() -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {"schedulingPolicy": {"basic": {}}},
    }
    for name in ("low", "high"):
        objects = [
            *running("low", "node-0", "gpu-0"),
            *asking("high", priority=5),
            group,
        ]
        for item in objects:
            if item["kind"] == "Pod" and item["metadata"]["name"] == name:
                item["spec"]["schedulingGroup"] = {"podGroupName": "job"}
        plan = dralloc.allocate(one_node(1, objects), "scheduler")
        assert "nominated" not in str(reasons(plan))


def test_partitions_of_several_pods_make_room_for_a_larger_one() -> None:
    """KEP-5690, "Partitionable Devices"."""
    halves = [
        device(f"half-{index}", consumesCounters=consumes("gpu", memory="1"))
        for index in range(2)
    ]
    whole = device(
        "whole", {"whole": True}, consumesCounters=consumes("gpu", memory="2")
    )
    published: Json = {"pool": "node-0", "nodeName": "node-0", "count": 2}
    source = cluster(
        device_class(),
        node("node-0"),
        resource_slice(
            name="sets",
            sharedCounters=[counters("gpu", memory="2")],
            **published,
        ),
        resource_slice([*halves, whole], **published),
        running("a", "node-0", "half-0"),
        running("b", "node-0", "half-1"),
        pod("high", "high", priority=5),
        claim("high", request("gpu", WHOLE)),
        asking("lesser", priority=1),
    )
    plan = dralloc.allocate(source, "scheduler")
    assert "evicts default/a, default/b" in reasons(plan)["high"]
    assert "nominated" not in reasons(plan)["lesser"]


def test_a_share_of_a_capacity_is_freed_and_kept() -> None:
    """KEP-5690, "Consumable Capacity": two of 40Gi each; one goes for a pod, the other one for the next."""
    shared = device(
        "gpu-0",
        allowMultipleAllocations=True,
        capacity={"memory": {"value": "80Gi"}},
    )
    users: list[Json | list[Json]] = []
    for name, priority in (("v1", 0), ("v2", 1)):
        user, held = running(name, "node-0", "gpu-0", priority=priority)
        (result,) = held["status"]["allocation"]["devices"]["results"]
        result |= {"shareID": name, "consumedCapacity": {"memory": "40Gi"}}
        users += [user, held]
    amount = {"requests": {"memory": "40Gi"}}
    wanting = [
        [
            pod(name, name, priority=5),
            claim(name, request(capacity=amount)),
        ]
        for name in ("p1", "p2", "p3")
    ]
    source = cluster(
        device_class(),
        node("node-0"),
        resource_slice([shared], pool="node-0", nodeName="node-0"),
        *users,
        *wanting,
    )
    said = sorted(
        reason.rpartition("nominated")[2]
        for reason in reasons(dralloc.allocate(source, "scheduler")).values()
    )
    assert sum("evicts default/v1" in reason for reason in said) == 1
    assert sum("evicts default/v2" in reason for reason in said) == 1


# Rules between pods, on a node for which another pod is nominated: it must do with that pod and without it.


def apart_from(**labels: str) -> Json:
    """Required anti-affinity by zone."""
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "zone"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"podAntiAffinity": required}


def feasible_beside(nominee: Json, *others: Json) -> list[str]:
    """The nodes for the pod ``late`` once the nominee is to come to node ``a``, the larger one."""
    nodes = [
        scheduling_wire.node(
            name, {"cpu": cpu, "pods": "9"}, labels={"zone": name}
        )
        for name, cpu in (("a", "2"), ("b", "1"))
    ]
    victim = scheduling_wire.pod("victim", on="a", requests={"cpu": "2"})
    scheduler = scheduling_wire.scheduler(nodes, victim, nominee, *others)
    attempt = scheduler.attempt(ClaimKey("default", "nominee"))
    nomination = scheduler.nominate(attempt)
    assert nomination is not None
    assert nomination.node.name == "a"
    late = scheduler.attempt(ClaimKey("default", "late"))
    return scheduling_wire.feasible(late)


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (apart_from(app="other"), ["b"]),
        # Upstream skips the plugin for a pod about which nothing was said before the nomination.
        ({}, ["a", "b"]),
    ],
)
def test_a_nominated_pod_keeps_others_away(
    affinity: Json, expected: list[str]
) -> None:
    nominee = scheduling_wire.pod(
        "nominee",
        requests={"cpu": "2"},
        priority=9,
        affinity=apart_from(app="web"),
    )
    late = scheduling_wire.pod(
        "late", labels={"app": "web"}, priority=5, affinity=affinity
    )
    assert feasible_beside(nominee, late) == expected


def test_a_nominated_pod_may_fill_the_emptiest_domain() -> None:
    """One pod is in each zone then, and the skew allows for one more."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = {"app": "web"}
    nominee = scheduling_wire.pod(
        "nominee", labels=web, requests={"cpu": "2"}, priority=9
    )
    there = scheduling_wire.pod("there", on="b", labels=web, priority=9)
    late = scheduling_wire.pod(
        "late",
        labels=web,
        priority=5,
        topologySpreadConstraints=[constraint],
    )
    assert feasible_beside(nominee, there, late) == ["a"]


# Errors of the dry run: the search for devices is not as far as that on a node without room for anything else.


UPDATED = (
    'running "DynamicResources" filter plugin: claim default/{claim}, request gpu: asks for all devices, '
    "but resource pool gpu.example.com/a is currently being updated"
)


def full(home: str, slices: int) -> list[Json]:
    """A node whose CPU a pod has that could be evicted, with a pool of which one slice of so many is there."""
    return [
        scheduling_wire.node(home, {"cpu": "2", "pods": "9"}),
        resource_slice(
            gpus(1), name=home, pool=home, nodeName=home, count=slices
        ),
        scheduling_wire.pod(f"on-{home}", on=home, requests={"cpu": "2"}),
    ]


def wanting_all(name: str, **spec: Any) -> list[Json]:
    """A pod that waits for CPU and for all GPUs of a node."""
    entries = [{"name": "gpu", "resourceClaimName": name}]
    waiting = scheduling_wire.pod(
        name,
        requests={"cpu": "2"},
        priority=5,
        resourceClaims=entries,
        **spec,
    )
    return [waiting, claim(name, request(allocationMode="All"))]


def test_an_error_of_the_dry_run_ends_no_attempt() -> None:
    scheduler = scheduling_wire.scheduler(
        device_class(), full("a", 2), wanting_all("one"), wanting_all("two")
    )
    # Equal pods fail alike, but each with its own claim.
    for name in ("one", "two", "one"):
        attempt = scheduler.attempt(ClaimKey("default", name))
        assert not attempt.is_error
        assert not attempt.has_victims
        assert attempt.message == (
            "0/1 nodes are available: 1 Insufficient cpu. "
            f"preemption: {UPDATED.format(claim=name)}"
        )


def test_a_pod_is_nominated_where_the_dry_run_has_no_error() -> None:
    scheduler = scheduling_wire.scheduler(
        device_class(), full("a", 2), full("b", 1), wanting_all("high")
    )
    attempt = scheduler.attempt(ClaimKey("default", "high"))
    assert attempt.has_victims
    nomination = scheduler.nominate(attempt)
    assert nomination is not None
    assert nomination.node.name == "b"


def test_an_error_of_the_dry_run_ends_no_gang() -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    }
    member: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}}
    objects = [
        *full("a", 2),
        *wanting_all("large", **member),
        scheduling_wire.pod("small", **member),
    ]
    run = SchedulingRun(
        compile_cluster(cluster(device_class(), group, *objects)),
        (Profile(),),
        Random(0),
        USUAL,
    )
    run.schedule_all()
    assert run.bindings == ((ClaimKey("default", "small"), "a"),)


def test_nobody_is_evicted_for_a_pod_that_their_devices_keep_out() -> None:
    """Once the victim's device is free, the search comes to it, and a selector fails there."""
    devices = [device("gpu-0"), device("gpu-1", {"good": True})]
    expression = "device.attributes['gpu.example.com'].good"
    objects = [
        device_class(),
        device_class("good", expression),
        scheduling_wire.node("a", {"cpu": "2", "pods": "9"}),
        resource_slice(devices, pool="a", nodeName="a"),
        scheduling_wire.pod("there", on="a", requests={"cpu": "1"}),
    ]
    for name, class_name, cpu in (("low", "gpu", "1"), ("high", "good", "2")):
        entries = [{"name": "gpu", "resourceClaimName": name}]
        objects += [
            scheduling_wire.pod(
                name, requests={"cpu": cpu}, resourceClaims=entries
            ),
            claim(name, request(device_class=class_name)),
        ]
    objects[-2]["spec"]["priority"] = 5
    low, high = ClaimKey("default", "low"), ClaimKey("default", "high")
    run = SchedulingRun(
        compile_cluster(cluster(*objects), features=OFF),
        (Profile(),),
        Random(0),
        USUAL,
    )
    run.schedule([low])
    before = run.scheduler.solution.placements
    host = run.scheduler.snapshot.by_name["a"]
    for _ in range(2):
        assert run.preempt(high) is None
        assert run.bindings == ((low, "a"),)
        assert run.scheduler.solution.placements == before
        names = [pod.key.name for pod in host.pods]
        assert sorted(names) == ["low", "there"]
    run.depart(low)
    assert not run.scheduler.solution.placements


def test_what_is_given_up_is_known_on_other_nodes_that_share_its_counters() -> (
    None
):
    """A pool has devices of two nodes and one set of counters: what leaves the first node is free for the second."""
    published: Json = {
        "pool": "both",
        "count": 2,
        "perDeviceNodeSelection": True,
    }

    def partition(name: str, home: str, units: int) -> Json:
        return device(
            name,
            {"units": units},
            nodeName=home,
            consumesCounters=consumes("set", units=str(units)),
        )

    small = request("gpu", "device.attributes['gpu.example.com'].units == 1")
    waiting = {"high": ("0", 5), "first": ("1", 0), "second": ("1", 0)}
    source = cluster(
        device_class(),
        [node(f"node-{rack}", rack=rack) for rack in "01"],
        resource_slice(
            name="sets",
            sharedCounters=[counters("set", units="2")],
            **published,
        ),
        resource_slice(
            [
                partition("whole", "node-0", 2),
                partition("half-0", "node-0", 1),
                partition("half-1", "node-1", 1),
            ],
            **published,
        ),
        pod("low", "low", nodeName="node-0", priority=0),
        allocated("low", {"pool": "both", "device": "whole"}),
        [
            pod(name, name, priority=priority, nodeSelector={"rack": rack})
            for name, (rack, priority) in waiting.items()
        ],
        [claim(name, small) for name in waiting],
    )
    scheduler = Scheduler(compile_cluster(source), (Profile(),))
    high, first, second = (ClaimKey("default", name) for name in waiting)
    # Both are equal: what is found for the first is known of the second.
    assert not scheduler.attempt(first).feasible
    chosen = scheduler.preempt(scheduler.attempt(high))
    assert chosen is not None
    assert scheduler.attempt(first).feasible
    home, victims = chosen
    scheduler.call_back(victims, home)
    assert not scheduler.attempt(second).feasible


@pytest.mark.parametrize("is_reserved", [False, True])
def test_who_is_evicted_uses_a_shared_claim_no_longer(
    is_reserved: bool,
) -> None:
    """Two pods share a GPU. The first is evicted for CPU; without the second one, too, the GPU is free."""

    def wanting_cpu(name: str, *claims: str, **spec: Any) -> Json:
        container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
        return pod(name, *claims, containers=[container], **spec)

    home = node("node-0")
    home["status"] = {"allocatable": {"cpu": "2", "pods": "10"}}
    shared = allocated("both", {"device": "gpu-0"})
    if is_reserved:
        shared["status"]["reservedFor"] = [
            {"resource": "pods", "name": name, "uid": name}
            for name in ("low", "lower")
        ]
    source = cluster(
        device_class(),
        home,
        resource_slice(gpus(1)),
        shared,
        wanting_cpu("lower", "both", nodeName="node-0", priority=0),
        wanting_cpu("low", "both", nodeName="node-0", priority=1),
        wanting_cpu("first", priority=5),
        asking("second", priority=5),
    )
    scheduler = Scheduler(compile_cluster(source), (Profile(),))
    for name, victim in (("first", "lower"), ("second", "low")):
        key = ClaimKey("default", name)
        chosen = scheduler.preempt(scheduler.attempt(key))
        assert chosen is not None
        assert [pod.key.name for pod in chosen[1]] == [victim]
        attempt = scheduler.attempt(key)
        assert attempt.feasible
        scheduler.bind(key, attempt.chosen)


@pytest.mark.parametrize("seed", range(4))
def test_a_more_important_pod_takes_the_nomination_of_another(
    seed: int,
) -> None:
    """It waited for company at first, so that a lesser pod was nominated: the node has one GPU for both."""
    beside_friend = {
        "labelSelector": {"matchLabels": {"app": "friend"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [beside_friend]}
    friend = pod("friend", priority=5)
    friend["metadata"]["labels"] = {"app": "friend"}
    source = cluster(
        device_class(),
        node("node-0", **{"kubernetes.io/hostname": "node-0"}),
        resource_slice(gpus(1), pool="node-0"),
        running("low", "node-0", "gpu-0"),
        asking("lesser", priority=3),
        asking("high", priority=5, affinity={"podAffinity": rules}),
        friend,
    )
    plan = dralloc.allocate(source, "scheduler", seed=seed)
    assert reasons(plan)["high"].endswith("evicts default/low")
    assert "nominated" not in reasons(plan)["lesser"]


def test_a_dry_run_leaves_pods_in_their_order() -> None:
    """Of equal pods the last one goes, also once it was tried, for another pod, who of them could stay."""

    def sized(name: str, cpu: str, **spec: Any) -> Json:
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        return pod(name, containers=[container], **spec)

    def home(name: str, cpu: str) -> Json:
        status = {"allocatable": {"cpu": cpu, "pods": "10"}}
        return {**node(name), "status": status}

    source = cluster(
        home("node-0", "4"),
        home("node-1", "2"),
        sized("two", "2", nodeName="node-0", priority=1),
        sized("one", "1", nodeName="node-0", priority=1),
        sized("last", "1", nodeName="node-0", priority=1),
        sized("least", "2", nodeName="node-1", priority=0),
        sized("large", "2", priority=5),
        sized("small", "1", priority=5),
    )
    scheduler = Scheduler(compile_cluster(source), (Profile(),))
    evicted: list[str] = []
    for name in ("large", "small"):
        attempt = scheduler.attempt(ClaimKey("default", name))
        nomination = scheduler.nominate(attempt)
        assert nomination is not None
        evicted += [victim.key.name for victim in nomination.victims]
    assert evicted == ["least", "last"]


def sharing(victim_has: str, *, spare: bool) -> Cluster:
    """A partition for several pods and one for a single pod, of which one can be there at a time.

    A victim has one of them, an important pod waits for the other one, and a lesser pod for the one for several. There
    may be a third one that needs nothing.
    """
    is_open = victim_has == "shared"
    consumed: Json = {}
    if is_open:
        consumed = {
            "shareID": "11111111-1111-1111-1111-111111111111",
            "consumedCapacity": {"seats": "1"},
        }
    # Each pod takes one that does not say how many.
    by_one = {"default": "1", "validRange": {"min": "1"}}
    seats: Json = {
        "allowMultipleAllocations": True,
        "capacity": {"seats": {"value": "4", "requestPolicy": by_one}},
    }
    units = consumes("set", units="1")
    published: Json = {"pool": "node-0", "nodeName": "node-0", "count": 2}
    others = [device("free", {"sort": "free"}, **seats)] if spare else []

    def wanting(name: str, *sorts: str) -> Json:
        condition = f"device.attributes['gpu.example.com'].sort in {[*sorts]}"
        return claim(name, request("gpu", condition))

    return cluster(
        device_class(),
        node("node-0"),
        resource_slice(
            name="sets",
            sharedCounters=[counters("set", units="1")],
            **published,
        ),
        resource_slice(
            [
                device(
                    "shared",
                    {"sort": "shared"},
                    consumesCounters=units,
                    **seats,
                ),
                device("alone", {"sort": "alone"}, consumesCounters=units),
                *others,
            ],
            **published,
        ),
        pod("low", "low", nodeName="node-0", priority=0),
        allocated("low", {"pool": "node-0", "device": victim_has, **consumed}),
        pod("high", "high", priority=5),
        wanting("high", "alone" if is_open else "shared"),
        pod("lesser", "lesser", priority=1, preemptionPolicy="Never"),
        wanting("lesser", "shared", "free"),
    )


@pytest.mark.parametrize("victim_has", ["shared", "alone"])
@pytest.mark.parametrize("spare", [False, True])
def test_a_shared_device_has_to_be_opened_before_or_after_the_victims_leave(
    victim_has: str, *, spare: bool
) -> None:
    """It is open by the share of the victim, or by the one that is promised: the lesser pod would need its counters."""
    plan = dralloc.allocate(sharing(victim_has, spare=spare), "scheduler")
    assert reasons(plan)["high"].endswith("evicts default/low")
    devices = [
        result.device
        for placed in plan.placed
        for allocation in placed.claims.values()
        for result in allocation.devices.results
    ]
    assert devices == (["free"] if spare else [])
