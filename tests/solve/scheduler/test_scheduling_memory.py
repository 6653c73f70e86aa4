"""What is remembered of nodes changes no answer: every attempt is as if nothing were known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import scheduling_wire as short
import wire
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.choices import Mode
from dralloc.objects.cluster import Cluster
from dralloc.problem import Claim, NodeIndex
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit.candidates import ClaimClass
from dralloc.solve.first_fit.plain import GrantsOfClaims
from dralloc.solve.scheduler import (
    Attempt,
    Profile,
    Scheduler,
    profiles_of,
    schedule,
)
from dralloc.solve.scheduler.devices import Devices
from dralloc.solve.scheduler.memory import Memory
from examples import INDEPENDENT, examples
from mixed_strategies import mixed_clusters, mixed_racks
from plain_scheduler import PlainScheduler
from scheduling_strategies import CrowdedCluster, crowded_clusters
from wire import Json


def answer(attempt: Attempt) -> Json:
    return {
        "feasible": [node.name for node in attempt.feasible],
        "evaluated": attempt.evaluated,
        "scores": {
            plugin: scores.tolist() for plugin, scores in attempt.scores.items()
        },
        "rejected": {
            node.name: rejection for node, rejection in attempt.rejected.items()
        },
        "message": attempt.message,
    }


@settings(max_examples=examples(30))
@given(crowded_clusters())
def test_an_attempt_is_as_if_nothing_were_known(
    crowded: CrowdedCluster,
) -> None:
    compiled = compile_cluster(wire.cluster(*crowded.objects))
    agree(
        compiled, profiles_of(crowded.configuration, "test"), crowded.heard_of
    )


@settings(
    max_examples=examples(5),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mixed_clusters(most_nodes=3))
def test_so_it_is_where_everything_is_mixed(cluster: Cluster) -> None:
    compiled = compile_cluster(cluster, modes={Mode.SCHEDULER})
    agree(compiled, [Profile()], compiled.problem.all_nodes)


@settings(
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mixed_clusters(most_nodes=4))
def test_so_it_is_where_all_nodes_are_asked_at_once(cluster: Cluster) -> None:
    compiled = compile_cluster(cluster, modes={Mode.SCHEDULER})
    with pytest.MonkeyPatch.context() as patch:
        for module in ("filters", "local_scores", "memory"):
            patch.setattr(f"dralloc.solve.scheduler.{module}.FEW_NODES", 0)
        agree(compiled, [Profile()], compiled.problem.all_nodes)


def test_so_it_is_with_amounts_that_are_too_large_for_columns() -> None:
    vast = {"cpu": "8", "memory": "1024Pi", "pods": "110"}
    objects = [short.node(f"node-{index}", vast) for index in range(10)]
    objects += [
        short.pod(f"pod-{index}", requests={"memory": f"{index + 1}Pi"})
        for index in range(3)
    ]
    compiled = compile_cluster(wire.cluster(*objects), modes={Mode.SCHEDULER})
    agree(compiled, [Profile()], compiled.problem.all_nodes)


@settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mixed_clusters(most_nodes=3))
def test_the_best_nodes_are_found_without_looking_for_devices_on_others(
    cluster: Cluster,
) -> None:
    compiled = compile_cluster(cluster, modes={Mode.SCHEDULER})
    agree_on_the_best(compiled, [Profile()], compiled.problem.all_nodes)


@settings(max_examples=examples(60))
@given(crowded_clusters())
def test_so_they_are_with_alternatives_and_rules_between_pods(
    crowded: CrowdedCluster,
) -> None:
    compiled = compile_cluster(wire.cluster(*crowded.objects))
    agree_on_the_best(
        compiled, profiles_of(crowded.configuration, "test"), crowded.heard_of
    )


def test_better_alternatives_on_a_worse_node_are_found() -> None:
    sizes = {"a": "small", "b": "large", "c": "small"}
    slices = [
        wire.resource_slice(
            [wire.device("gpu", {"size": size})],
            name=home,
            pool=home,
            nodeName=home,
        )
        for home, size in sizes.items()
    ]
    wanted = wire.first_available(
        "gpu",
        *(
            wire.sub(
                size, f"device.attributes['gpu.example.com'].size == '{size}'"
            )
            for size in ("large", "small")
        ),
    )
    there = short.pod("there", on="b", requests={"cpu": "100m"})
    cluster = wire.cluster(
        *map(short.node, sizes),
        there,
        *slices,
        wire.device_class(),
        wire.claim("claim", wanted),
        wire.pod("pod", "claim"),
    )
    compiled = compile_cluster(cluster, modes={Mode.SCHEDULER})
    agree_on_the_best(compiled, [Profile()], compiled.problem.all_nodes)


def test_domains_that_are_too_full_are_left_out() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    zones = {"a": "east", "b": "east", "c": "west"}
    web: Json = {
        "labels": {"app": "web"},
        "topologySpreadConstraints": [constraint],
    }
    objects = [
        short.node(name, labels={"zone": zone}) for name, zone in zones.items()
    ]
    objects += [
        wire.resource_slice(
            [wire.device(f"gpu-{index}") for index in range(4)],
            name=home,
            pool=home,
            nodeName=home,
        )
        for home in zones
    ]
    objects += [
        wire.device_class(),
        short.pod("there", on="a", **web),
        short.pod("busy", on="c", requests={"cpu": "4"}),
    ]
    for pod_index in range(3):
        claim = f"claim-{pod_index}"
        objects += [
            wire.claim(claim, wire.request("gpu")),
            short.pod(
                f"pod-{pod_index}",
                resourceClaims=[{"name": "gpu", "resourceClaimName": claim}],
                **web,
            ),
        ]
    compiled = compile_cluster(wire.cluster(*objects), modes={Mode.SCHEDULER})
    agree_on_the_best(compiled, [Profile()], compiled.problem.all_nodes)


@settings(
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mixed_clusters(most_nodes=4))
def test_trials_that_cannot_help_are_passed_over(cluster: Cluster) -> None:
    compiled = compile_cluster(cluster, modes={Mode.SCHEDULER})
    solution = schedule(compiled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scheduler, "hopeful", lambda *_: None)
        patch.setattr(
            "dralloc.solve.scheduler.scheduler.best_feasible", lambda *_: None
        )
        expected = schedule(compiled)
    assert everything(solution) == everything(expected)


@settings(
    max_examples=examples(60),
    backend=INDEPENDENT,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mixed_racks(), st.integers(0, 3))
def test_gangs_choose_in_rehearsals_as_if_they_were_bound(
    cluster: Cluster, seed: int
) -> None:
    compiled = compile_cluster(cluster, modes={Mode.SCHEDULER})
    solution = schedule(compiled, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scheduler, "rehearsal", lambda *_: None)
        expected = schedule(compiled, seed=seed)
    assert everything(solution) == everything(expected)


@settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mixed_clusters(most_nodes=4))
def test_nodes_without_nominations_stay_known(cluster: Cluster) -> None:
    compiled = compile_cluster(cluster, modes={Mode.SCHEDULER})
    solution = schedule(compiled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "dralloc.solve.scheduler.scheduler.turned_away", lambda *_: None
        )
        expected = schedule(compiled)
    assert everything(solution) == everything(expected)


def unmemorised(
    compiled: CompiledCluster, profiles: Sequence[Profile]
) -> Solution:
    """What the scheduler does if it tries every pod, also those that failed as an equal pod did."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memory, "failed", lambda *_: None)
        return schedule(compiled, profiles)


@settings(max_examples=examples(300), backend=INDEPENDENT, deadline=None)
@given(crowded_clusters())
def test_pods_fail_as_equal_ones_did(crowded: CrowdedCluster) -> None:
    # Whom most pods could evict: many are nominated.
    victims = [
        short.pod(f"v{index}", on=f"n{index}", requests=cpu, priority=-1)
        for index, cpu in enumerate([{"cpu": "2"}, {"cpu": "2"}])
    ]
    compiled = compile_cluster(wire.cluster(*crowded.objects, *victims))
    profiles = profiles_of(crowded.configuration, "test")
    solution = schedule(compiled, profiles)
    expected = unmemorised(compiled, profiles)
    assert everything(solution) == everything(expected)


def test_a_nominated_pod_fails_otherwise_than_equal_ones() -> None:
    """Both are tried again once ``low`` is bound: for one room could be made, for the other that room is taken."""
    labels = {"app": "web"}
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    waiting: dict[str, Any] = {
        "requests": {"cpu": "2"},
        "priority": 10,
        "labels": labels,
        "topologySpreadConstraints": [constraint],
    }
    objects = [
        short.node("a", {"cpu": "2", "pods": "9"}, labels={"zone": "a"}),
        short.node("b", {"cpu": "8", "pods": "9"}, labels={"zone": "b"}),
        short.pod("victim", on="a", requests={"cpu": "2"}),
        short.pod("there", on="b", labels=labels, priority=20),
        short.pod("one", **waiting),
        short.pod("two", **waiting),
        short.pod("low", requests={"cpu": "1"}),
    ]
    compiled = compile_cluster(wire.cluster(*objects))
    solution = schedule(compiled)
    assert solution.warnings == unmemorised(compiled, [Profile()]).warnings
    text = " ".join(solution.warnings)
    assert "1 pods wait until others are evicted" in text
    assert "could be helped" not in text


@settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mixed_clusters(most_nodes=4))
def test_devices_that_are_free_by_supposition_are_found_as_all_are(
    cluster: Cluster,
) -> None:
    compiled = compile_cluster(cluster, modes={Mode.SCHEDULER})
    solution = schedule(compiled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Devices, "_find_supposing", plainly)
        expected = schedule(compiled)
    assert everything(solution) == everything(expected)


@settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mixed_clusters(most_nodes=4))
def test_a_single_device_is_found_as_a_search_finds_it(
    cluster: Cluster,
) -> None:
    compiled = compile_cluster(cluster, modes={Mode.SCHEDULER})
    solution = schedule(compiled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "dralloc.solve.scheduler.claim_search._asks_for_one",
            lambda _: False,
        )
        expected = schedule(compiled)
    assert everything(solution) == everything(expected)


def plainly(
    devices: Devices,
    claims: Sequence[Claim],
    _: ClaimClass,
    node: NodeIndex,
) -> GrantsOfClaims | None:
    grants = devices._plain_search(claims, node, None)
    devices.ledger.revert()
    return grants


def everything(solution: Solution) -> Json:
    return {
        "placements": solution.placements,
        "bindings": solution.bindings,
        "errors": {
            demand: str(error) for demand, error in solution.errors.items()
        },
        "warnings": solution.warnings,
    }


def agree(
    compiled: CompiledCluster,
    profiles: Sequence[Profile],
    heard_of: Sequence[NodeIndex],
) -> None:
    quick = Scheduler(compiled, profiles, heard_of)
    plain = PlainScheduler(compiled, profiles, heard_of)
    waiting = [
        pod.key for pod in compiled.cluster.pods if not pod.spec.node_name
    ]
    bound = set()
    # Whoever has no node is tried again at the end: by then much is known, and some of it is outdated.
    for key in (*waiting, *waiting):
        if key in bound:
            continue
        actual, expected = quick.attempt(key), plain.attempt(key)
        assert answer(actual) == answer(expected)
        if expected.feasible:
            assert actual.chosen.name == expected.chosen.name
            # Tried out and taken back, as with groups: what was known before is true again.
            quick.bind(key, actual.chosen)
            quick.unbind(key, actual.chosen)
            assert answer(quick.attempt(key)) == answer(plain.attempt(key))
            bound.add(key)
            quick.bind(key, actual.chosen)
            plain.bind(key, expected.chosen.name)


def agree_on_the_best(
    compiled: CompiledCluster,
    profiles: Sequence[Profile],
    heard_of: Sequence[NodeIndex],
) -> None:
    brief, full = (Scheduler(compiled, profiles, heard_of) for _ in range(2))
    for pod in compiled.cluster.pods:
        if pod.spec.node_name:
            continue
        actual, expected = (
            brief.attempt(pod.key, only_best=True),
            full.attempt(pod.key),
        )
        assert [node.name for node in actual.best] == [
            node.name for node in expected.best
        ]
        assert (actual.evaluated, actual.message) == (
            expected.evaluated,
            expected.message,
        )
        for scheduler, attempt in ((brief, actual), (full, expected)):
            if attempt.feasible:
                scheduler.bind(pod.key, attempt.best[-1])
