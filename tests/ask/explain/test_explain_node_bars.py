"""What bars a pod from a node beside devices is told in kube-scheduler's words, with who holds it."""

from __future__ import annotations

from typing import Any

import pytest

import wire
from dralloc import explain
from dralloc.objects.choices import ModeName
from scheduling_wire import node, pod
from wire import Json

SMALL = {"cpu": "4", "memory": "8Gi", "pods": "2"}
JOB = {"job": "x"}


def waiting(name: str, requests: Json | None = None, **spec: Any) -> list[Json]:
    claims = [{"name": "gpu", "resourceClaimName": f"gpu-{name}"}]
    return [
        wire.claim(f"gpu-{name}", wire.request()),
        pod(name, requests=requests, resourceClaims=claims, **spec),
    ]


def rule(kind: str, key: str) -> Json:
    term = {"labelSelector": {"matchLabels": JOB}, "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


PORT = {"ports": [{"containerPort": 80, "hostPort": 80}]}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": JOB},
    "minDomains": 2,
}


@pytest.mark.parametrize(
    ("first", "last", "text", "detail"),
    [
        (
            {"requests": {"cpu": "3"}},
            {"requests": {"cpu": "2"}},
            "Insufficient cpu",
            "2 requested, 500m left; held by 1 bound pod (500m), default/first (3)",
        ),
        (
            {},
            {},
            "Too many pods",
            "1 requested, 0 left; held by 1 bound pod (1), default/first (1)",
        ),
        (
            {"container": PORT},
            {"container": PORT},
            "didn't have free ports for the requested pod ports",
            "",
        ),
        (
            {"labels": JOB},
            {"labels": JOB, "affinity": rule("podAntiAffinity", "zone")},
            "didn't match pod anti-affinity rules",
            "",
        ),
        (
            {},
            {"affinity": rule("podAffinity", "zone")},
            "didn't match rules between pods, because of pods that have a node",
            "",
        ),
        (
            {"labels": JOB},
            {"labels": JOB, "topologySpreadConstraints": [SPREAD]},
            "didn't match pod topology spread constraints",
            "",
        ),
    ],
)
def test_what_is_in_the_way(
    first: Json, last: Json, text: str, detail: str
) -> None:
    cluster = wire.cluster(
        wire.device_class(),
        wire.resource_slice(wire.gpus(4), nodeName="a"),
        node(
            "a",
            SMALL | ({} if text == "Too many pods" else {"pods": "10"}),
            labels={"zone": "east"},
        ),
        pod("running", on="a", requests={"cpu": "500m"}),
        waiting("first", **first),
        waiting("last", **last),
    )
    [reason] = explain(cluster, pod="default/last").reasons
    [cause] = reason.causes
    assert cause.text == text
    assert cause.details == ((detail,) if detail else ())


def test_the_optimum_names_who_would_have_to_go() -> None:
    cluster = wire.cluster(
        wire.device_class(),
        wire.resource_slice(wire.gpus(4), nodeName="a"),
        node("a", {**SMALL, "pods": "10"}),
        waiting("first", {"cpu": "3"}),
        waiting("last", {"cpu": "3"}),
    )
    explanation = explain(cluster, pod="default/last", mode="optimal")
    assert "default/first" in str(explanation)
    assert [
        str(suggestion.change)
        for suggestion in explanation.suggestions
        if "Insufficient cpu" in str(suggestion.change)
    ]


@pytest.mark.parametrize("mode", ["first-fit", "optimal"])
def test_the_domain_of_its_group(mode: ModeName) -> None:
    """Both pods of the group would fit, each in another zone."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {
            "schedulingPolicy": {"basic": {}},
            "schedulingConstraints": {"topology": [{"key": "zone"}]},
        },
    }
    nodes = [node(name, labels={"zone": name}) for name in "ab"]
    slices = [
        wire.resource_slice(wire.gpus(1), name=name, pool=name, nodeName=name)
        for name in "ab"
    ]
    pods = [
        waiting(name, schedulingGroup={"podGroupName": "g"})
        for name in ("first", "last")
    ]
    whole = wire.cluster(wire.device_class(), nodes, slices, group, *pods)
    text = " ".join(str(explain(whole, pod="default/last", mode=mode)).split())
    assert "didn't match the domain of the others of its group" in text
    assert "All of its group are in one domain" in text


@pytest.mark.parametrize("mode", ["first-fit", "optimal"])
def test_a_new_node_is_offered_devices_that_take_of_another_one(
    mode: ModeName,
) -> None:
    """One pool has a device for node b, and one for all in a zone; each says itself where it is (KEP-5517)."""
    taking = {
        "nodeAllocatableResources": {
            "cpu": {"mapping": {"deviceMultiplier": "2"}}
        }
    }
    zone = {"key": "zone", "operator": "In", "values": ["z"]}
    in_zone = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    pods = [waiting(name, {"cpu": "1"}) for name in ("p", "q", "r", "s", "t")]
    given = wire.cluster(
        node("a", SMALL, labels={"zone": "z"}),
        node("b", SMALL),
        wire.device_class(),
        wire.resource_slice(
            [wire.device("d0", **taking)], name="s", pool="a", nodeName="a"
        ),
        wire.resource_slice(
            [
                wire.device("d1", nodeName="b", **taking),
                wire.device("d2", nodeSelector=in_zone, **taking),
            ],
            name="t",
            perDeviceNodeSelection=True,
        ),
        *pods,
    )
    explanation = explain(given, pod="t", mode=mode)
    assert "add a node like a" in [
        suggestion.text for suggestion in explanation.suggestions
    ]
