"""What stays of an object, and which objects matter."""

from __future__ import annotations

from typing import Any

import pytest

from dralloc.live.snapshot import is_needed, trimmed
from dralloc.objects.api import ResourceObject
from dralloc.objects.api.known_kinds import MODELS
from wire import Json, claim, node, pod, request, resource_slice

CONTAINER: Json = {
    "name": "main",
    "image": "registry.example.com/secret:1",
    "env": [{"name": "PASSWORD", "value": "hunter2"}],
    "command": ["run"],
    "resources": {
        "claims": [{"name": "c0"}],
        "limits": {"example.com/gpu": "1"},
    },
}


def test_a_pod_keeps_what_places_it() -> None:
    given = pod(
        "train",
        "a",
        containers=[CONTAINER],
        nodeSelector={"zone": "a"},
        hostname="h",
    )
    given["spec"]["tolerations"] = [
        {"key": "example.com/gpu", "operator": "Exists"}
    ]
    given["metadata"] |= {
        "labels": {"gang": "g"},
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "{}"
        },
        "managedFields": [{}],
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    given["status"] = {
        "phase": "Pending",
        "podIP": "10.0.0.1",
        "conditions": [{"type": "PodScheduled", "message": "m"}],
    }
    assert trimmed(given) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train",
            "namespace": "default",
            "labels": {"gang": "g"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "resourceClaims": [{"name": "c0", "resourceClaimName": "a"}],
            "containers": [
                {key: CONTAINER[key] for key in ("name", "image", "resources")}
            ],
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "example.com/gpu", "operator": "Exists"}],
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled"}],
        },
    }


def test_objects_of_the_api_stay_whole_but_for_their_metadata() -> None:
    annotations = {"resource.kubernetes.io/pod-claim-name": "gpu", "team": "x"}
    given = claim(
        "a", request(), status={"devices": [{"driver": "d", "data": {"x": 1}}]}
    )
    given["metadata"] |= {
        "annotations": annotations,
        "managedFields": [{}],
        "finalizers": ["f"],
    }
    trimmed_claim = trimmed(given)
    assert trimmed_claim["metadata"]["annotations"] == {
        "resource.kubernetes.io/pod-claim-name": "gpu"
    }
    assert trimmed_claim["metadata"].keys() == {
        "name",
        "namespace",
        "annotations",
    }
    assert (trimmed_claim["spec"], trimmed_claim["status"]) == (
        given["spec"],
        given["status"],
    )


def test_a_node_keeps_labels_and_resources() -> None:
    placing = {
        "unschedulable": True,
        "taints": [{"key": "example.com/gpu", "effect": "NoSchedule"}],
    }
    given = {
        **node("n", zone="a"),
        "spec": {"podCIDR": "10.0.0.0/24", **placing},
    }
    given["status"] = {
        "allocatable": {"cpu": "1"},
        "images": [{"names": ["x"]}],
        "addresses": [{}],
    }
    trimmed_node = trimmed(given)
    assert trimmed_node["metadata"]["labels"] == {"zone": "a"}
    assert (trimmed_node["spec"], trimmed_node["status"]) == (
        placing,
        {"allocatable": {"cpu": "1"}, "images": [{"names": ["x"]}]},
    )


def test_odd_objects_are_no_obstacle() -> None:
    odd: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": "x",
        "spec": [],
        "status": None,
    }
    assert trimmed(odd) == {"apiVersion": "v1", "kind": "Pod"}


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({"resourceClaims": [{"name": "x"}]}, True),
        (
            {
                "containers": [
                    {"resources": {"limits": {"example.com/gpu": "1"}}}
                ]
            },
            True,
        ),
        (
            {
                "initContainers": [
                    {"resources": {"requests": {"example.com/gpu": "1"}}}
                ]
            },
            True,
        ),
        ({"schedulingGroup": {"podGroupName": "g"}}, True),
        ({"workloadRef": {"name": "w", "podGroup": "g"}}, True),
        (
            {
                "containers": [
                    {
                        "resources": {
                            "limits": {"cpu": "1"},
                            "claims": [{"name": "x"}],
                        }
                    }
                ]
            },
            False,
        ),
        ({"nodeName": "n"}, True),
        ({}, False),
    ],
)
def test_pending_pods_without_devices_are_not_needed(
    spec: Json, needed: bool
) -> None:
    assert (
        is_needed(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p"},
                "spec": spec,
            }
        )
        is needed
    )


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_what_has_come_to_its_end_takes_nothing_of_its_node(phase: str) -> None:
    ended = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n"},
    }
    assert not is_needed({**ended, "status": {"phase": phase}})


@pytest.mark.parametrize("item", [claim("a"), resource_slice(), node()])
def test_everything_else_is_needed(item: Json) -> None:
    assert is_needed(item)


@pytest.mark.parametrize("model", MODELS)
def test_every_kind_that_is_loaded_is_known_here(model: Any) -> None:
    named = {
        "apiVersion": model.api_version,
        "kind": model.kind,
        "metadata": {"name": "a"},
    }
    assert trimmed({**named, "else": 1}) == (
        {**named, "else": 1} if issubclass(model, ResourceObject) else named
    )
