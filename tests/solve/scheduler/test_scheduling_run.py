"""All pods of a cluster, as kube-scheduler takes them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings

import dralloc
import wire
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Mode
from dralloc.objects.errors import DrallocError, InputError
from dralloc.objects.features import ALL_FEATURES
from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler import (
    Attempt,
    Profile,
    Release,
    Scheduler,
    read_profiles,
    schedule,
)
from dralloc.solve.scheduler.profile import Strategy
from examples import examples
from scheduling_strategies import plugin_clusters
from scheduling_wire import AMPLE, attempt, node, pod
from wire import Json

GPUS = [
    wire.device_class(),
    *(
        wire.resource_slice(wire.gpus(2), name=name, pool=name, nodeName=name)
        for name in ("a", "b")
    ),
]


def asking(name: str, **spec: Any) -> list[Json]:
    """A pod with a claim for a GPU."""
    return [
        wire.claim(f"claim-of-{name}", wire.request()),
        wire.pod(name, f"claim-of-{name}", **spec),
    ]


def placed(plan: dralloc.Plan) -> dict[str, str]:
    """The node of each placed pod."""
    return {
        plan.demands[placement.demand].key.name: plan.node_of(placement)
        for placement in plan.solution.placements
    }


def test_a_claim_that_no_pod_uses_is_not_given_to_a_pod_of_its_name() -> None:
    claims = [
        wire.claim("x", wire.request(count=2)),
        wire.claim("y", wire.request()),
    ]
    plan = dralloc.allocate(
        wire.cluster(node("a"), GPUS, claims, wire.pod("x", "y")), "scheduler"
    )
    assert [
        [claim.name for claim in demand.claims] for demand in plan.placed
    ] == [["y"]]
    assert [(demand.claims, demand.reason) for demand in plan.unplaced] == [
        (
            (ClaimKey("default", "x"),),
            "no pod uses it: kube-scheduler allocates claims for pods",
        )
    ]


def test_pods_go_where_most_is_left() -> None:
    busy = pod("busy", on="a", requests={"cpu": "4"})
    plan = dralloc.allocate(
        wire.cluster(
            node("a"), node("b"), GPUS, busy, asking("x"), asking("y")
        ),
        "scheduler",
    )
    assert placed(plan) == {"x": "b", "y": "b"}
    first = dralloc.allocate(
        wire.cluster(
            node("a"), node("b"), GPUS, busy, asking("x"), asking("y")
        ),
        "first-fit",
    )
    assert placed(first) == {"x": "a", "y": "a"}


def test_the_scheduler_says_why_in_its_words() -> None:
    small = {**AMPLE, "pods": "1"}
    plan = dralloc.allocate(
        wire.cluster(
            node("a", small),
            node("b", small),
            GPUS,
            asking("x"),
            pod("there", on="a"),
            asking("y"),
        ),
        "scheduler",
    )
    (demand,) = plan.unplaced
    after = (
        "still not schedulable, preemption: 0/2 nodes are available: "
        "2 No preemption victims found for incoming pod."
    )
    assert demand.reason == f"0/2 nodes are available: 2 Too many pods. {after}"
    assert plan.to_dict()["unplaced"][0]["error"] == demand.reason


def _made(name: str, second: int, reason: str, **spec: Any) -> list[Json]:
    claim, pod_object = asking(name, **spec)
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    made = {
        **pod_object["metadata"],
        "creationTimestamp": f"2026-01-01T00:00:0{second}Z",
    }
    return [
        claim,
        {**pod_object, "metadata": made, "status": {"conditions": [condition]}},
    ]


def _winners(reason: str, **options: Any) -> list[list[str]]:
    """Who gets one of two GPUs, seed by seed; the condition of the youngest pod has a reason."""
    slices = [
        wire.device_class(),
        wire.resource_slice(wire.gpus(2), nodeName="a"),
    ]
    ungated = "SchedulingGated"
    pods = [
        _made("a-young", 2, reason),
        _made("b-old", 1, ungated),
        _made("urgent", 3, ungated, priority=1),
    ]
    plans = [
        dralloc.allocate(
            wire.cluster(node("a"), slices, *pods),
            "scheduler",
            seed=n,
            **options,
        )
        for n in range(8)
    ]
    return [sorted(placed(plan)) for plan in plans]


def test_higher_priorities_and_older_pods_come_first() -> None:
    """As long as the scheduler runs: it has tried a pod before."""
    assert _winners("Unschedulable") == [["b-old", "urgent"]] * 8


def test_a_scheduler_that_starts_does_not_know_who_is_older() -> None:
    """It has tried nobody. It hears of pods in no order; up to 1.35 by name."""
    assert {tuple(names) for names in _winners("SchedulingGated")} == {
        ("a-young", "urgent"),
        ("b-old", "urgent"),
    }
    assert (
        _winners("SchedulingGated", kubernetes="1.35")
        == [["a-young", "urgent"]] * 8
    )


def test_a_seed_stands_for_one_order_of_nodes_and_pods() -> None:
    objects = wire.cluster(
        node("a"),
        node("b"),
        GPUS,
        *(asking(f"pod-{index}") for index in range(3)),
    )
    plans = [
        placed(dralloc.allocate(objects, "scheduler", seed=seed))
        for seed in (*range(8), 0)
    ]
    assert plans[0] == plans[-1]
    assert len({json.dumps(plan, sort_keys=True) for plan in plans}) > 1


def test_pods_without_claims_take_their_share() -> None:
    plain = [
        pod(f"plain-{index}", requests={"cpu": "8"}, priority=1)
        for index in range(3)
    ]
    plan = dralloc.allocate(
        wire.cluster(
            node("a"),
            node("b"),
            GPUS,
            plain,
            asking("x", containers=[{"resources": {"requests": {"cpu": "1"}}}]),
        ),
        "scheduler",
    )
    assert placed(plan) == {}
    assert (
        plan.solution.warnings[0]
        == "2 pods that ask for no device were scheduled, too"
    )
    assert plan.solution.warnings[1].startswith(
        "1 pods that ask for no device have no node: default/plain-"
    )


def test_without_its_gate_preemption_is_off_and_that_is_said() -> None:
    host = node("a", {**AMPLE, "pods": "1"})
    plan = dralloc.allocate(
        wire.cluster(host, GPUS, pod("there", on="a"), asking("x", priority=5)),
        "scheduler",
        features=ALL_FEATURES.switched({"DRAPreemption": False}),
    )
    assert placed(plan) == {}
    assert plan.solution.warnings == (
        "1 pods could be helped by preemption, which is off: default/x: 0/1 nodes are available: 1 Too many pods.",
    )


def test_a_pod_is_tried_again_when_its_company_has_come() -> None:
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]
        }
    }
    objects: list[Json | list[Json]] = [
        node("a"),
        node("b"),
        GPUS,
        asking("x", affinity=near, priority=1),
        pod("db", labels={"app": "db"}),
    ]
    assert (
        len(placed(dralloc.allocate(wire.cluster(*objects), "scheduler"))) == 1
    )


def test_claims_without_pods_and_held_back_pods_wait() -> None:
    gated = asking("x", schedulingGates=[{"name": "later"}])
    other = asking("y", schedulerName="other")
    plan = dralloc.allocate(
        wire.cluster(
            node("a"), GPUS, wire.claim("lone", wire.request()), gated, other
        ),
        "scheduler",
    )
    assert {demand.key.name: demand.reason for demand in plan.unplaced} == {
        "lone": "no pod uses it: kube-scheduler allocates claims for pods",
        "y": 'no profile is for spec.schedulerName "other": --scheduler-config names a file that has one',
    }


def test_claims_that_pods_share_bind_them_to_a_node() -> None:
    shared = [
        wire.claim("both", wire.request()),
        wire.pod("x", "both"),
        wire.pod("y", "both"),
    ]
    plan = dralloc.allocate(
        wire.cluster(node("a"), node("b"), GPUS, shared), "scheduler"
    )
    assert len(set(placed(plan).values())) == 1
    assert len(placed(plan)) == 2


def test_an_error_names_the_claim_of_its_own_pod() -> None:
    every = wire.request(allocationMode="All")
    pods = [
        item
        for name in "xy"
        for item in (
            wire.claim(f"claim-of-{name}", every),
            wire.pod(name, f"claim-of-{name}"),
        )
    ]
    plan = dralloc.allocate(
        wire.cluster(
            node("a"),
            wire.device_class(),
            wire.resource_slice(wire.gpus(2), nodeName="a", count=2),
            pods,
        ),
        "scheduler",
    )
    reasons = {demand.key.name: demand.reason for demand in plan.unplaced}
    assert sorted(reasons) == ["x", "y"]
    for name, reason in reasons.items():
        assert (
            f"claim default/claim-of-{name}, request gpu: asks for all devices"
            in reason
        )


def test_a_device_plugin_serves_extended_resources_where_there_is_one() -> None:
    backed = wire.device_class()
    backed["spec"]["extendedResourceName"] = "x.com/gpu"
    nodes = [node("a", {**AMPLE, "x.com/gpu": "1"}), node("b")]
    slices = wire.resource_slice(wire.gpus(1), nodeName="b")
    pods = [pod(f"p{index}", requests={"x.com/gpu": "1"}) for index in range(3)]
    plan = dralloc.allocate(
        wire.cluster(nodes, backed, slices, pods), "scheduler"
    )
    reasons = sorted(demand.reason for demand in plan.unplaced)
    assert list(placed(plan).values()) == ["b"]
    assert reasons[1] == "bound to a, where a device plugin serves it"
    assert reasons[0].startswith(
        "0/2 nodes are available: 1 Insufficient x.com/gpu, 1 cannot allocate all claims."
    )


def extended_class(name: str) -> Json:
    """A class that stands for the extended resource of its name."""
    backed = wire.device_class(name)
    backed["spec"]["extendedResourceName"] = f"x.com/{name}"
    return backed


def test_devices_are_for_what_the_device_plugin_of_a_node_does_not_serve() -> (
    None
):
    """Of two resources a plugin serves the first. The one device is for the other, and is gone for the next pod."""
    nodes = [
        node("a", {**AMPLE, "x.com/gpu": "2"}),
        node("b", {**AMPLE, "cpu": "0"}),
    ]
    both = {"x.com/gpu": "1", "x.com/nic": "1", "cpu": "1"}
    plan = dralloc.allocate(
        wire.cluster(
            nodes,
            extended_class("gpu"),
            extended_class("nic"),
            wire.resource_slice(wire.gpus(1), nodeName="a"),
            pod("first", requests=both, priority=1),
            pod("second", requests=both),
        ),
        "scheduler",
    )
    reasons = {demand.key.name: demand.reason for demand in plan.unplaced}
    assert reasons["first"] == "bound to a, where a device plugin serves it"
    assert reasons["second"].startswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 cannot allocate all claims."
    )


def test_plugins_and_devices_together_have_to_have_enough() -> None:
    """All small cases: of each resource the plugin serves everything, or nothing where it offers none."""
    for gpus, nics, devices, *asked in product(*[range(3)] * 3, (1, 2), (1, 2)):
        stocks = {"x.com/gpu": gpus, "x.com/nic": nics}
        requests = dict(zip(stocks, asked, strict=True))
        ours = {name: str(amount) for name, amount in stocks.items() if amount}
        for_devices = sum(
            amount for name, amount in requests.items() if not stocks[name]
        )
        expected = for_devices <= devices and all(
            requests[name] <= int(amount) for name, amount in ours.items()
        )
        source = wire.cluster(
            [node("a", {**AMPLE, **ours}), node("b")],
            [extended_class("gpu"), extended_class("nic")],
            wire.resource_slice(wire.gpus(devices), nodeName="a"),
            pod(
                "p",
                requests={key: str(amount) for key, amount in requests.items()},
            ),
        )
        scheduler = Scheduler(compile_cluster(source), (Profile(),))
        feasible = scheduler.attempt(ClaimKey("default", "p"), ["a"]).feasible
        assert bool(feasible) == expected, (stocks, devices, requests)


@settings(max_examples=examples(200), deadline=None)
@given(plugin_clusters())
def test_answers_beside_device_plugins_keep_the_rules(
    objects: Sequence[Json],
) -> None:
    """The checker asks again whether each node has what its pods request; what it refuses is an error."""
    plan = dralloc.allocate(wire.cluster(*objects), "scheduler")
    event(f"{len(plan.solution.bindings)} bound")
    dralloc.allocate(wire.cluster(*objects), "first-fit")


def test_devices_are_of_the_right_requests_beside_a_device_plugin() -> None:
    """Each container has its request, and the plugin serves the first of them: the devices are for the others."""
    resources = [{"x.com/gpu": "1"}, {"x.com/nic": "1"}, {"x.com/nic": "1"}]
    containers = [
        {"name": f"c{index}", "resources": {"requests": requests}}
        for index, requests in enumerate(resources)
    ]
    source = wire.cluster(
        node("a", {**AMPLE, "x.com/gpu": "1"}),
        node("b", {**AMPLE, "cpu": "0"}),
        extended_class("gpu"),
        extended_class("nic"),
        wire.resource_slice(wire.gpus(2), nodeName="a"),
        pod("p", container={}, containers=containers),
    )
    compiled = compile_cluster(source)
    scheduler = Scheduler(compiled, (Profile(),))
    key = ClaimKey("default", "p")
    home = scheduler.attempt(key).chosen
    scheduler.bind(key, home)
    placement = scheduler.placement_of(key)
    assert placement is not None
    assert [
        (grant.request, compiled.problem.devices[grant.device].id.device)
        for grants in placement.grants
        for grant in grants
    ] == [(1, "gpu-0"), (2, "gpu-1")]
    # Both are free again once the pod is gone.
    scheduler.unbind(key, home)
    assert scheduler.attempt(key).feasible


def test_a_claim_is_told_by_the_next_pod_if_a_device_plugin_serves_the_rest_of_the_first() -> (
    None
):
    backed = wire.device_class()
    backed["spec"]["extendedResourceName"] = "x.com/gpu"
    nodes = [
        node("a", {**AMPLE, "x.com/gpu": "1"}),
        node("b", {**AMPLE, "cpu": "0"}),
    ]
    slices = wire.resource_slice(wire.gpus(1), nodeName="a")
    entry = [{"name": "c", "resourceClaimName": "both"}]
    first = pod(
        "first",
        requests={"x.com/gpu": "1", "cpu": "1"},
        resourceClaims=entry,
        priority=1,
    )
    second = pod("second", resourceClaims=entry)
    plan = dralloc.allocate(
        wire.cluster(
            nodes,
            backed,
            slices,
            wire.claim("both", wire.request()),
            first,
            second,
        ),
        "scheduler",
    )
    assert placed(plan) == {"second": "a"}
    assert [demand.reason for demand in plan.unplaced] == [
        "bound to a, where a device plugin serves it"
    ]


def test_of_equal_nodes_the_first_of_the_heap_is_taken() -> None:
    free = [node(name) for name in "abcdefg"]
    busy = [
        pod(f"on-{name}", on=name, requests={"cpu": "4"}) for name in "abcf"
    ]
    # d, e and g are left. The heap is a; b c; d e f g: below b, d moves up before e, and b before c.
    assert (
        attempt(free, busy, pod("pod", requests={"cpu": "1"})).chosen.name
        == "d"
    )
    assert (
        attempt(free, busy[1:], pod("pod", requests={"cpu": "1"})).chosen.name
        == "a"
    )


@pytest.mark.parametrize(("at_once", "others"), [(True, True), (False, False)])
def test_nodes_that_are_looked_at_at_once_are_found_in_no_order(
    at_once: bool, others: bool
) -> None:
    compiled = compile_cluster(
        wire.cluster(node("a"), node("b"), GPUS, asking("x"))
    )
    first = [Random(seed).sample(range(2), 2)[0] for seed in range(20)]
    runs = (
        schedule(compiled, [Profile(looks_at_once=at_once)], seed)
        for seed in range(20)
    )
    assert ([run.placements[0].node for run in runs] != first) == others


def test_ties_are_decided_as_recorded(shared: Path) -> None:
    for file in sorted(
        (shared / "control-plane" / "recorded").glob("*.json.gz")
    ):
        run = json.loads(gzip.decompress(file.read_bytes()))
        for record in run["attempts"]:
            names = list(record["totals"])
            outcome = Attempt(
                ClaimKey("", ""),
                feasible=names,
                scores={"all": np.array(list(record["totals"].values()))},
            )
            if names:
                assert outcome.chosen == record["node"], (
                    file.name,
                    record["pod"],
                )


def configuration(path: Path, text: str) -> Path:
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    path.write_text(head + text)
    return path


def test_a_configuration_changes_what_is_better(tmp_path: Path) -> None:
    file = configuration(
        tmp_path / "most.yaml",
        "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated}}\n",
    )
    busy = pod("busy", on="a", requests={"cpu": "4"})
    objects = wire.cluster(
        node("a"), node("b"), GPUS, busy, asking("x"), asking("y")
    )
    assert placed(
        dralloc.allocate(objects, "scheduler", scheduler_config=file)
    ) == {
        "x": "a",
        "y": "a",
    }


def test_without_plugins_that_score_every_node_is_as_good(
    tmp_path: Path,
) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- plugins: {score: {disabled: [{name: '*'}]}}\n"
    )
    busy = pod("busy", on="a", requests={"cpu": "4"})
    cluster = wire.cluster(node("a"), node("b"), GPUS, busy, asking("x"))
    taken = {
        placed(
            dralloc.allocate(
                cluster, "scheduler", scheduler_config=path, seed=seed
            )
        )["x"]
        for seed in range(20)
    }
    assert taken == {"a", "b"}


def test_plugins_and_weights_of_a_configuration(tmp_path: Path) -> None:
    text = """
percentageOfNodesToScore: 30
parallelism: 1
profiles:
- schedulerName: mine
  percentageOfNodesToScore: 40
  plugins:
    multiPoint: {disabled: [{name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 9}]}
    filter: {disabled: [{name: NodePorts}]}
    score: {disabled: [{name: "*"}], enabled: [{name: TaintToleration}, {name: NodeAffinity, weight: 5}]}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResourceGroups: [x.com]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 3}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: []}
- schedulerName: plain
"""
    mine, plain = read_profiles(configuration(tmp_path / "c.yaml", text))
    assert (mine.percentage, plain.percentage) == (40, 30)
    assert not mine.looks_at_once
    assert mine.no_filters == {"NodePorts", "ImageLocality"}
    assert "NodeAffinity" not in mine.no_scores
    assert {
        "ImageLocality",
        "NodeResourcesFit",
        "DynamicResources",
    } <= mine.no_scores
    assert mine.weights == {"TaintToleration": 1, "NodeAffinity": 5}
    assert (mine.strategy, mine.shape, mine.scored_resources) == (
        Strategy.RATIO,
        ((0, 0), (100, 100)),
        {"cpu": 3},
    )
    assert mine.ignores("x.com/y")
    assert not mine.default_constraints
    assert (plain.name, plain.default_constraints) == (
        "plain",
        Profile().default_constraints,
    )


def test_of_no_resources_the_usual_ones_are_scored(tmp_path: Path) -> None:
    text = """
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: []}}
  - name: NodeResourcesBalancedAllocation
    args: {resources: []}
"""
    (profile,) = read_profiles(configuration(tmp_path / "c.yaml", text))
    usual = Profile()
    assert profile.scored_resources == usual.scored_resources
    assert profile.balanced_resources == usual.balanced_resources


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("extenders: [{urlPrefix: http://x}]\n", "extenders: are not modelled"),
        (
            "profiles: [{plugins: {score: {enabled: [{name: Mine}]}}}]\n",
            'plugin "Mine" is not modelled',
        ),
        (
            "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hard: 1}}]}]\n",
            "hard: unknown field",
        ),
    ],
)
def test_what_is_not_modelled_is_refused(
    tmp_path: Path, text: str, rule: str
) -> None:
    with pytest.raises(InputError, match=rule):
        read_profiles(configuration(tmp_path / "c.yaml", text))


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1beta3", "v2", ""])
def test_a_version_that_no_scheduler_reads_is_refused(
    tmp_path: Path, version: str
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n"
    )
    with pytest.raises(
        InputError,
        match=f'apiVersion: "kubescheduler.config.k8s.io/{version}" is not read by',
    ):
        read_profiles(path)


def test_only_a_configuration_is_one(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\n")
    with pytest.raises(InputError, match="is no KubeSchedulerConfiguration"):
        read_profiles(tmp_path / "pod.yaml")


def test_explain_has_the_words_of_the_scheduler() -> None:
    """How many nodes each plugin rules out; where it is placed if it is; that nobody looks at it."""
    small = {**AMPLE, "cpu": "1"}
    heavy = [{"resources": {"requests": {"cpu": "2"}}}]
    gpus = [
        wire.resource_slice(wire.gpus(1), name=name, pool=name, nodeName=name)
        for name in "abc"
    ]
    taken = wire.allocated("held", {"pool": "c", "device": "gpu-0"})
    objects: list[Json | list[Json]] = [
        node("a", small),
        node("b", small),
        node("c"),
        wire.device_class(),
        gpus,
        taken,
    ]
    cluster = wire.cluster(*objects, asking("x", containers=heavy), asking("y"))
    explanation = dralloc.explain(cluster, pod="default/x", mode="scheduler")
    message = "0/3 nodes are available: 1 cannot allocate all claims, 2 Insufficient cpu."
    assert (
        explanation.headline
        == "scheduler: default/x is not placed (claim default/claim-of-x)"
    )
    assert [remark[: len(message)] for remark in explanation.remarks] == [
        message
    ]
    assert message in explanation.to_dict()["remarks"][0]
    assert dralloc.explain(cluster, pod="default/y", mode="scheduler").node in (
        "a",
        "b",
    )
    elsewhere = wire.cluster(*objects, asking("z", schedulerName="other"))
    (why,) = dralloc.explain(
        elsewhere, pod="default/z", mode="scheduler"
    ).remarks
    assert (
        why
        == 'no profile is for spec.schedulerName "other": --scheduler-config names a file that has one'
    )


def test_a_comparison_shows_the_scheduler_over_several_seeds(
    root: Path,
) -> None:
    comparison = dralloc.compare(
        dralloc.load(root / "models" / "h100-mig"),
        modes="scheduler,first-fit,optimal",
        seeds=6,
    )
    assert comparison.scheduler is not None
    assert (
        min(comparison.scheduler.placed),
        max(comparison.scheduler.placed),
    ) == (
        46,
        47,
    )
    words = "48 pods: kube-scheduler places 46 (46 to 47 over 6 seeds), first fit 44, the optimum 48 (proven optimal)"
    assert comparison.headline == words
    assert comparison.to_dict()["scheduler"]["placed"] == list(
        comparison.scheduler.placed
    )
    assert len(comparison.to_dict()["scheduler"]["median"]["placed"]) == 46


def test_one_answer_cannot_be_compared() -> None:
    with pytest.raises(
        DrallocError, match="modes to compare: first-fit is only one"
    ):
        dralloc.compare(wire.cluster(node("a"), GPUS), modes="first-fit")
    assert (
        dralloc.compare(wire.cluster(node("a"), GPUS, asking("x"))).scheduler
        is None
    )


def test_versions_differ(tmp_path: Path) -> None:
    """Up to 1.35 nodes and pods are heard of by name, and in 1.34 no node is better for its alternatives."""
    nodes = [node(name) for name in "ab"]
    models = {"a": "old", "b": "new"}
    slices = [
        wire.resource_slice(
            [wire.device("gpu", {"model": model})],
            name=name,
            pool=name,
            nodeName=name,
        )
        for name, model in models.items()
    ]
    subs = [
        wire.sub(
            model, f"device.attributes['gpu.example.com'].model == '{model}'"
        )
        for model in ("new", "old")
    ]
    listed = [
        wire.claim("c", wire.first_available("gpu", *subs)),
        wire.pod("x", "c"),
    ]
    objects = wire.cluster(nodes, wire.device_class(), slices, listed)
    one_at_a_time = configuration(tmp_path / "c.yaml", "parallelism: 1\n")
    homes = {
        version: {
            placed(
                dralloc.allocate(
                    objects,
                    "scheduler",
                    seed=seed,
                    kubernetes=version,
                    scheduler_config=file,
                )
            )["x"]
            for seed in range(12)
        }
        for version, file in (
            ("1.34", one_at_a_time),
            ("1.35", one_at_a_time),
            ("1.36", one_at_a_time),
        )
    }
    assert homes == {"1.34": {"a", "b"}, "1.35": {"b"}, "1.36": {"b"}}
    twins = wire.cluster(nodes, GPUS, asking("x"))
    heard = {
        version: {
            placed(
                dralloc.allocate(
                    twins,
                    "scheduler",
                    seed=seed,
                    kubernetes=version,
                    scheduler_config=one_at_a_time,
                )
            )["x"]
            for seed in range(12)
        }
        for version in ("1.35", "1.36")
    }
    assert heard == {"1.35": {"a"}, "1.36": {"a", "b"}}


def test_who_may_have_to_go_stays_when_that_comes_to_an_error() -> None:
    """The high pod's claim cannot be looked at; on the way there the low pod was taken off its node for a moment."""
    sized = wire.request(capacity={"requests": {"memory": "1"}})
    full = node("a", {**AMPLE, "pods": "1"})
    high = [wire.claim("sized", sized), wire.pod("high", "sized", priority=9)]
    given = wire.cluster(
        full, GPUS, pod("low", on="a"), high, pod("other", priority=8)
    )
    off = ALL_FEATURES.switched({"ConsumableCapacity": False})
    assert schedule(compile_cluster(given, features=off)).bindings == ()


@pytest.mark.parametrize("alternatives", [1, 2])
def test_what_taints_refuse_keeps_its_counters_up_to_1_36(
    alternatives: int,
) -> None:
    """A known defect of upstream (kubernetes/kubernetes#140436), which is there where a single device is asked for."""
    taint = {"key": "broken", "effect": "NoSchedule"}
    slice_of_set = wire.consumes("set", slices="1")
    devices = [
        wire.device("half-0", consumesCounters=slice_of_set, taints=[taint]),
        wire.device("half-1", consumesCounters=slice_of_set),
    ]
    slices = [
        wire.resource_slice(
            sharedCounters=[wire.counters("set", slices="1")],
            name="counters",
            pool="a",
            count=2,
            nodeName="a",
        ),
        wire.resource_slice(devices, name="a", pool="a", count=2, nodeName="a"),
    ]
    request = wire.request()
    if alternatives > 1:
        request = wire.first_available(
            "gpu", wire.sub("one"), wire.sub("other")
        )
    objects = wire.cluster(
        node("a"),
        wire.device_class(),
        slices,
        wire.claim("c", request),
        wire.pod("p", "c"),
    )
    for leaks in (True, False):
        compiled = compile_cluster(objects, modes={Mode.SCHEDULER})
        solution = schedule(compiled, release=Release(leaks_counters=leaks))
        assert len(solution.placements) == (not leaks)


def test_shares_that_are_given_back_keep_their_counters_up_to_1_36() -> None:
    """The same defect: the first share leaves nothing for the other request. Upstream frees its counters as little."""

    def partition(name: str, sort: str, **amounts: str) -> Json:
        return wire.device(
            name,
            {"sort": sort},
            allowMultipleAllocations=sort == "shared",
            consumesCounters=wire.consumes("set", **amounts),
        )

    devices = [
        partition("both", "shared", slices="1", engines="1"),
        partition("slice", "shared", slices="1"),
        partition("engine", "alone", engines="1"),
    ]
    slices = [
        wire.resource_slice(
            sharedCounters=[wire.counters("set", slices="1", engines="1")],
            name="counters",
            pool="a",
            count=2,
            nodeName="a",
        ),
        wire.resource_slice(devices, name="a", pool="a", count=2, nodeName="a"),
    ]
    requests = [
        wire.request(
            sort, f"device.attributes['{wire.DRIVER}'].sort == '{sort}'"
        )
        for sort in ("shared", "alone")
    ]
    objects = wire.cluster(
        node("a"),
        wire.device_class(),
        slices,
        wire.claim("c", *requests),
        wire.pod("p", "c"),
    )
    for leaks in (True, False):
        compiled = compile_cluster(objects, modes={Mode.SCHEDULER})
        solution = schedule(compiled, release=Release(leaks_counters=leaks))
        assert len(solution.placements) == (not leaks)
