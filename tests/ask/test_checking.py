"""Every answer to a cluster passes both parts of the checker, for what its mode promises."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dralloc
from brute_objects import Arrival, Referee
from dralloc.ask import answer_checks, checked_answers
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.choices import Ignored, Mode
from dralloc.objects.errors import CheckError
from dralloc.objects.features import ALL_FEATURES
from dralloc.problem import DemandIndex, DeviceIndex, NodeIndex, Problem
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.show.plan import Plan
from examples import examples
from object_strategies import ruled_clusters
from wire import (
    Json,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

MODES = list(Mode)
BESIDE_NOBODY = {
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"app": "web"}},
                    "topologyKey": "rack",
                }
            ]
        }
    }
}


def lonely() -> list[Json]:
    """A pod that may only be near to somebody who is not there."""
    asking = pod("p", "gpu", **BESIDE_NOBODY)
    return [
        device_class(),
        node("node-0", rack="1"),
        resource_slice(gpus(1)),
        claim("gpu", request()),
        asking,
    ]


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every mode place the only demand on the only node, whatever the problem says."""
    anywhere = Solution(
        (
            Placement(
                DemandIndex(0), NodeIndex(0), ((Grant(0, 0, DeviceIndex(0)),),)
            ),
        )
    )

    def scheduled(compiled: CompiledCluster, *_: Any, **__: Any) -> Solution:
        [demand] = compiled.problem.demands
        return replace(anywhere, bindings=((demand.key, "node-0"),))

    def accepted(_: Problem, __: Solution) -> None:
        """The checker of problems believes what the compiler has read."""

    monkeypatch.setattr(checked_answers, "first_fit", lambda *_, **__: anywhere)
    monkeypatch.setattr(checked_answers, "solve", lambda *_, **__: anywhere)
    monkeypatch.setattr(checked_answers, "schedule", scheduled)
    monkeypatch.setattr(answer_checks, "check", accepted)


@pytest.mark.usefixtures("careless")
@pytest.mark.parametrize("mode", MODES)
def test_what_the_objects_forbid_is_withheld_whatever_the_problem_says(
    mode: Mode,
) -> None:
    with pytest.raises(
        CheckError, match="pod default/p: nobody whom its affinity means"
    ):
        dralloc.allocate(cluster(lonely()), mode)


@pytest.mark.usefixtures("careless")
@pytest.mark.parametrize("mode", [Mode.FIRST_FIT, Mode.OPTIMAL])
def test_what_is_ignored_as_asked_is_not_checked(mode: Mode) -> None:
    assert (
        len(
            list(
                dralloc.allocate(
                    cluster(lonely()), mode, ignore="affinity"
                ).placed
            )
        )
        == 1
    )


def test_a_pod_whose_scheduler_looks_at_no_room_may_come_after_others(
    tmp_path: Path,
) -> None:
    configuration = tmp_path / "scheduler.yaml"
    configuration.write_text("""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
  - schedulerName: lax
    plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}
""")
    wanted = {"requests": {"cpu": "3"}}
    containers = [{"name": "main", "image": "main", "resources": wanted}]
    host = node("node-0")
    host["status"] = {"allocatable": {"cpu": "4", "pods": "9"}}
    plan = dralloc.allocate(
        cluster(
            [
                host,
                pod("first", priority=1, containers=containers),
                pod("second", schedulerName="lax", containers=containers),
            ]
        ),
        "scheduler",
        scheduler_config=configuration,
    )
    assert [name for _, name in plan.solution.bindings] == ["node-0", "node-0"]


@pytest.mark.usefixtures("careless")
def test_a_filter_that_the_scheduler_does_not_have_is_not_checked(
    tmp_path: Path,
) -> None:
    configuration = tmp_path / "scheduler.yaml"
    configuration.write_text("""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {filter: {disabled: [{name: InterPodAffinity}]}}
""")
    assert (
        len(
            list(
                dralloc.allocate(
                    cluster(lonely()),
                    "scheduler",
                    scheduler_config=configuration,
                ).placed
            )
        )
        == 1
    )


def two_of_three() -> list[Json]:
    """A gang of three pods, of which two are enough, and devices for two."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    objects: list[Json] = [device_class(), node(), resource_slice(gpus(2))]
    for member in range(3):
        name = f"train-{member}"
        objects += [
            claim(name, request()),
            pod(name, name, schedulingGroup={"podGroupName": "train"}),
        ]
    return [*objects, group]


@pytest.mark.parametrize("keep", ["", "first-fit", "scheduler"])
def test_a_gang_that_runs_in_part_is_kept_without_time_for_a_search(
    keep: str,
) -> None:
    words: dict[str, Any] = {"keep": keep} if keep else {}
    plan = dralloc.allocate(
        cluster(two_of_three()), Mode.OPTIMAL, time_limit=1e-6, **words
    )
    assert len(list(plan.placed)) == 2
    assert plan.solution.warnings == ()


@st.composite
def chosen(draw: st.DrawFn) -> dict[str, Any]:
    """What of the objects counts."""
    version = draw(st.sampled_from([None, "1.34", "1.35", "1.36", "1.37"]))
    return {
        "features": dralloc.Features.of_kubernetes(version)
        if version
        else ALL_FEATURES,
        "kubernetes": version,
        "ignore": sorted(draw(st.sets(st.sampled_from(Ignored), max_size=3))),
        "gang": draw(st.sampled_from(["", "", "app"])),
        "include": draw(st.sampled_from(["", "gated"])),
    }


@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(ruled_clusters(), st.sampled_from(MODES), st.integers(0, 9))
def test_every_mode_keeps_the_rules_of_the_objects(
    objects: list[Json], mode: Mode, seed: int
) -> None:
    plan = dralloc.allocate(cluster(objects), mode, seed=seed)
    assert Referee(objects, mode is Mode.SCHEDULER).accepts(
        list(arrivals(plan))
    )


@settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(ruled_clusters(), st.sampled_from(MODES), chosen(), st.booleans())
def test_no_answer_is_withheld_whatever_is_chosen(
    objects: list[Json], mode: Mode, words: Any, part: bool
) -> None:
    names = [
        manifest["metadata"]["name"]
        for manifest in objects
        if manifest["kind"] == "Node"
    ]
    dralloc.allocate(
        cluster(objects), mode, nodes=names[:-1] if part else (), **words
    )


def arrivals(plan: Plan) -> list[Arrival]:
    if plan.mode is Mode.SCHEDULER:
        return [
            Arrival((pod.namespace, pod.name), name)
            for pod, name in plan.solution.bindings
        ]
    return [
        Arrival(
            (placement.demand.namespace, placement.demand.name), placement.node
        )
        for placement in plan.placed
    ]
