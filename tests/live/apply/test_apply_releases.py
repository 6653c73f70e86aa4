"""What is known of the scheduler that runs, and which fence follows from it."""

from __future__ import annotations

import pytest

from dralloc.live.apply import Fence, NodeTaintFence, TaintRuleFence
from dralloc.live.apply.choice import (
    KubernetesVersion,
    RuleSupport,
    RunningScheduler,
    fence_for,
    running_schedulers,
    support_of,
)
from dralloc.objects.choices import FenceKind
from dralloc.objects.errors import ApplyError
from live.apply.runs import run_on, small_cluster
from live.apply.schedules import scheduler_pod
from simulated import Simulated
from wire import Json, pod

BOTH = "--feature-gates=DRADeviceTaints=true,DRADeviceTaintRules=true"


@pytest.mark.parametrize(
    ("tag", "flags", "support"),
    [
        ("v1.32.1", [BOTH], RuleSupport.NONE),
        ("v1.34.2", [], RuleSupport.OFF),
        (
            "v1.34.2",
            ["--feature-gates=DRADeviceTaints=true"],
            RuleSupport.WORKS,
        ),
        ("v1.35.0", ["--feature-gates=DRADeviceTaints=true"], RuleSupport.OFF),
        ("v1.35.0", [BOTH], RuleSupport.WORKS),
        ("v1.36.0", [], RuleSupport.OFF),
        ("v1.36.2", [BOTH], RuleSupport.VOID),
        (
            "v1.36.2-vendor.7",
            ["--feature-gates=DRADeviceTaintRules=true"],
            RuleSupport.VOID,
        ),
        (
            "v1.36.3",
            ["--feature-gates=DRADeviceTaintRules=true"],
            RuleSupport.WORKS,
        ),
        ("v1.36.3", [], RuleSupport.OFF),
        ("v1.37.0", [], RuleSupport.WORKS),
        (
            "v1.37.0",
            ["--feature-gates=DRADeviceTaintRules=false"],
            RuleSupport.OFF,
        ),
        (
            "v1.37.0",
            ["--feature-gates", "DRADeviceTaintRules=false"],
            RuleSupport.OFF,
        ),
        (
            "v1.37.0",
            ["--feature-gates=kube: DRADeviceTaintRules = f"],
            RuleSupport.OFF,
        ),
        (
            "v1.37.0",
            ["--feature-gates=other:DRADeviceTaintRules=false"],
            RuleSupport.WORKS,
        ),
        # Both gates are stable there.
        ("v1.37.0", ["--feature-gates=AllBeta=false"], RuleSupport.WORKS),
        (
            "v1.36.3",
            ["--feature-gates=AllBeta=false,DRADeviceTaintRules=1"],
            RuleSupport.OFF,
        ),
        ("v1.36.3", ["--feature-gates=AllBeta=T"], RuleSupport.WORKS),
        ("v1.35.0", ["--feature-gates=AllAlpha=true"], RuleSupport.WORKS),
        ("v1.37.0", ["--emulated-version=1.36"], RuleSupport.UNKNOWN),
        ("latest", [], RuleSupport.UNKNOWN),
    ],
)
def test_what_a_scheduler_does_follows_from_its_release_and_gates(
    tag: str, flags: list[str], support: RuleSupport
) -> None:
    (seen,) = running_schedulers([pod("other"), scheduler_pod(tag, *flags)])
    assert seen.support is support


@pytest.mark.parametrize(
    ("server", "support"),
    [
        ("v1.38.0", RuleSupport.WORKS),
        ("v1.37.4", RuleSupport.UNKNOWN),  # the scheduler may be of 1.36
        ("v1.36.3", RuleSupport.UNKNOWN),
        ("v1.36.2", RuleSupport.VOID),  # or of this version
        ("v1.35.4", RuleSupport.UNKNOWN),
        ("what", RuleSupport.UNKNOWN),
    ],
)
def test_without_a_scheduler_that_can_be_seen_the_oldest_possible_counts(
    server: str, support: RuleSupport
) -> None:
    assert support_of(KubernetesVersion.parse(server), ()) is support


def test_a_scheduler_whose_image_does_not_say_is_not_newer_than_the_server() -> (
    None
):
    unknown = RunningScheduler(None, {})
    for patch, support in ((2, RuleSupport.VOID), (3, RuleSupport.UNKNOWN)):
        server = KubernetesVersion(36, patch)
        assert support_of(server, [unknown]) is support


def test_the_worst_of_several_schedulers_counts() -> None:
    good, bad = (
        RunningScheduler(
            KubernetesVersion(36, patch), {"DRADeviceTaintRules": True}
        )
        for patch in (3, 2)
    )
    assert support_of(KubernetesVersion(37), [good, bad]) is RuleSupport.VOID
    assert support_of(KubernetesVersion(37), [good, good]) is RuleSupport.WORKS


def chosen(
    *schedulers: Json,
    kind: FenceKind = FenceKind.AUTO,
    without: tuple[str, ...] = (),
    version: str = "v1.37.0",
) -> type[Fence]:
    server = Simulated(without=frozenset(without), version=version)
    server.add(*small_cluster(), *schedulers)
    return type(fence_for(kind, run_on(server).objects, "run-1").fence)


def test_rules_fence_only_where_they_are_sure_to_work() -> None:
    assert chosen(scheduler_pod("v1.37.1")) is TaintRuleFence
    assert chosen(scheduler_pod("v1.36.2", BOTH)) is NodeTaintFence
    assert chosen(version="v1.37.0") is NodeTaintFence
    assert chosen(version="v1.38.0") is TaintRuleFence
    assert (
        chosen(scheduler_pod("v1.37.1"), without=("devicetaintrules",))
        is NodeTaintFence
    )
    assert (
        chosen(scheduler_pod("v1.37.1"), kind=FenceKind.NODE_TAINTS)
        is NodeTaintFence
    )
    assert chosen(kind=FenceKind.NONE) is Fence


def test_rules_that_do_nothing_are_refused_although_they_are_asked_for() -> (
    None
):
    with pytest.raises(
        ApplyError,
        match=r"--fence device-taints: kube-scheduler ignores DeviceTaintRules, or panics",
    ):
        chosen(scheduler_pod("v1.36.1", BOTH), kind=FenceKind.DEVICE_TAINTS)
    with pytest.raises(ApplyError, match=r"kube-scheduler ignores"):
        chosen(kind=FenceKind.DEVICE_TAINTS, version="v1.36.2")
    with pytest.raises(
        ApplyError,
        match=r"--fence device-taints: the API server serves no DeviceTaintRules",
    ):
        chosen(
            scheduler_pod("v1.37.1"),
            kind=FenceKind.DEVICE_TAINTS,
            without=("devicetaintrules",),
        )
    assert chosen(kind=FenceKind.DEVICE_TAINTS) is TaintRuleFence


def test_why_a_fence_was_taken_is_said() -> None:
    server = Simulated()
    server.add(*small_cluster(), scheduler_pod("v1.36.2", BOTH))
    choice = fence_for(FenceKind.AUTO, run_on(server).objects, "run-1")
    assert choice.reason.startswith(
        "node taints: kube-scheduler ignores DeviceTaintRules, or panics"
    )
    assert (
        fence_for(FenceKind.NONE, run_on(server).objects, "run-1").reason
        == "none: as asked"
    )
