"""Nothing comes through but what is listed here and in the documentation, wherever text is put."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from dralloc.lint.conformance.cases import read_lines
from dralloc.objects.api import ObjectReader, PodOwner
from dralloc.objects.api.disclosure import Public, Removed, Text
from dralloc.objects.api.known_kinds import MODELS, model_of
from dralloc.objects.api.schema import parts, wire_schema
from dralloc.objects.errors import RedactionError
from dralloc.objects.load import load_objects
from dralloc.objects.redact import plan_redaction
from examples import some_of
from objects.api.test_api_owners import (
    JOB,
    JOB_SET,
    PYTORCH,
    RAY,
    TEMPLATE,
    mpi,
)
from objects.redact.cases import documents
from objects.redact.planted import Planter, places
from wire import (
    Json,
    claim,
    device,
    device_class,
    gpus,
    node,
    pod,
    resource_slice,
)

STAYS = {
    Public.DRIVER: ("driver",),
    Public.CLASS: ("DeviceClass.metadata.name", "deviceClassName"),
    Public.ATTRIBUTE: (
        "attributes.*",
        "capacity.*",
        "capacity.requests.*",
        "consumedCapacity.*",
        "capacityKey",
        "derivedAttributes.name",
        "distinctAttribute",
        "matchAttribute",
        "partitionTypeAttribute",
    ),
    Public.REQUEST: (
        "claims.name",
        "claims.request",
        "config.requests",
        "constraints.requests",
        "devices.requests.name",
        "firstAvailable.name",
        "metadata.annotations.resource.kubernetes.io/pod-claim-name",
        "resourceClaimStatuses.name",
        "resourceClaims.name",
        "results.request",
    ),
    Public.RESOURCE: (
        "allocatable.*",
        "extendedResourceName",
        "hard.*",
        "mapping.name",
        "nodeAllocatableResourceClaimStatuses.resources.*",
        "nodeAllocatableResources.*",
        "overhead.*",
        "overhead.name",
        "resources.limits.*",
        "resources.requests.*",
    ),
    Public.TAINT: ("taint.key", "taints.key", "tolerations.key"),
    Public.ACROSS: ("metadata.annotations.dralloc.dev/across",),
    Public.VALUE: ("metadata.annotations.dralloc.dev/value",),
    Text.ATTRIBUTE: ("string", "strings", "version", "versions"),
    Text.COUNTER: (
        "bindingConditions",
        "bindingFailureConditions",
        "compatibilityGroups",
        "counterSet",
        "counters.*",
        "sharedCounters.name",
    ),
    Text.TAINT: ("taint.value", "taints.value", "tolerations.value"),
    Text.LABEL: (
        "Node.metadata.labels.[*]",
        "nodeSelector.[*]",
        "matchExpressions.values",
        "matchFields.values",
    ),
    Text.CEL: ("cel.expression", "derivedAttributes.expression"),
}
"""Places of what stays, by what the documentation calls it."""


def leaks(objects: list[Json]) -> Iterator[str]:
    """Paths of markers that come through and are not listed."""
    redaction = plan_redaction(objects)
    allowed = tuple(path for listed in STAYS.values() for path in listed)
    for document in objects:
        for path, _ in places(redaction.apply(document)):
            full = f"{document['kind']}.{path}"
            if not any(
                full == listed or full.endswith(f".{listed}")
                for listed in allowed
            ):
                yield full


def sources() -> list[Path]:
    """Models as directories, and recorded files of real clusters one by one."""
    data = ROOT.parent / "shared" / "data"
    recorded = [
        path
        for path in sorted(data.rglob("*.yaml"))
        if "apiVersion:" in path.read_text()
    ]
    return [
        *sorted(
            {path.parent for path in (ROOT / "models").rglob("expected.yaml")}
        ),
        *recorded,
    ]


def read_objects(path: Path) -> list[Json]:
    return [
        document
        for document in load_objects(path)
        if model_of(document) is not None
    ]


def test_every_text_of_the_api_has_a_rule() -> None:
    """A new field that holds text must say what becomes of it: see `dralloc.objects.api.disclosure`."""
    unsaid = [
        f"{model.kind}.{'.'.join(path)}"
        for model in MODELS
        for path, schema in parts(wire_schema(model))
        if schema is Removed.UNSAID
    ]
    assert unsaid == []


def test_all_that_stays_is_somewhere_in_the_api() -> None:
    marks = {
        schema
        for model in MODELS
        for _, schema in parts(wire_schema(model))
        if isinstance(schema, Public | Text)
    }
    assert marks == {*Public, *Text} == STAYS.keys()


def test_the_documentation_lists_what_stays() -> None:
    page = (ROOT / "docs" / "how-to" / "snapshot.md").read_text()
    assert 'for mark in (*Public, *Text):\n    print(f"- {mark.value}")' in page


MODELLED = [model for model in MODELS if not issubclass(model, PodOwner)]
"""Kinds whose models are what they look like on the wire."""


@pytest.mark.parametrize("mistyped", [False, True])
@pytest.mark.parametrize(
    "model", MODELLED, ids=[model.kind for model in MODELLED]
)
def test_a_marker_in_every_field(model: Any, mistyped: bool) -> None:
    assert list(leaks([Planter(mistyped=mistyped).full(model)])) == []


def test_markers_in_all_kinds_at_once() -> None:
    planter = Planter()
    assert list(leaks([planter.full(model) for model in MODELLED])) == []


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.name)
def test_markers_in_real_objects(path: Path) -> None:
    assert (
        list(
            leaks(
                [Planter().grown(document) for document in read_objects(path)]
            )
        )
        == []
    )


OWNERS_OF_PODS = [
    ("apps/v1", "DaemonSet", JOB),
    ("apps/v1", "Deployment", {"replicas": 2, **JOB}),
    (
        "batch.volcano.sh/v1alpha1",
        "Job",
        {"tasks": [{"name": "ps", "replicas": 1, "template": TEMPLATE}]},
    ),
    (
        "batch/v1",
        "Job",
        {"parallelism": 3, "completions": 2, "suspend": True, **JOB},
    ),
    ("jobset.x-k8s.io/v1alpha2", "JobSet", JOB_SET),
    (
        "kubeflow.org/v1",
        "PyTorchJob",
        {**PYTORCH, "runPolicy": {"suspend": True}},
    ),
    ("kubeflow.org/v2beta1", "MPIJob", mpi(replicas=2)),
    (
        "kueue.x-k8s.io/v1beta2",
        "Workload",
        {"podSets": [{"name": "main", "count": 2, "template": TEMPLATE}]},
    ),
    (
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {
            "replicas": 2,
            "leaderWorkerTemplate": {
                "size": 2,
                "leaderTemplate": TEMPLATE,
                "workerTemplate": TEMPLATE,
            },
        },
    ),
    ("ray.io/v1", "RayCluster", RAY),
    (
        "ray.io/v1",
        "RayJob",
        {"rayClusterSpec": RAY, "submitterPodTemplate": TEMPLATE},
    ),
    ("ray.io/v1", "RayService", {"rayClusterConfig": RAY}),
]


@pytest.mark.parametrize(("api_version", "kind", "spec"), OWNERS_OF_PODS)
@pytest.mark.parametrize("ended", ["True", "False"])
def test_owners_of_pods(
    api_version: str, kind: str, spec: Json, ended: str
) -> None:
    """No marker comes through, and as many pods are made as before."""
    conditions = [
        {"type": "Complete", "status": ended, "message": "m"},
        {"type": "Admitted", "status": "True"},
    ]
    status = {"conditions": conditions}
    owner = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": spec,
        "status": status,
    }
    assert list(leaks([Planter().grown(owner)])) == []
    before, after = (
        ObjectReader().read(raw, "") for raw in (owner, *redacted(owner))
    )
    assert isinstance(before, PodOwner)
    assert isinstance(after, PodOwner)
    assert [named.ranges for named in after.sets] == [
        named.ranges for named in before.sets
    ]
    assert (after.suspended, after.ended) == (before.suspended, before.ended)


def test_markers_in_recorded_cases() -> None:
    cases = read_lines(ROOT / "tests" / "data" / "recorded_cases.jsonl.gz")
    for case in some_of(cases):
        assert (
            list(
                leaks(
                    [Planter().grown(document) for document in documents(case)]
                )
            )
            == []
        ), case["id"]


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta1", "v1beta2"])
def test_markers_in_older_versions(version: str) -> None:
    inner = {
        "attributes": {"host": {"string": "a"}},
        "capacity": {"memory": {"value": "1"}},
    }
    alpha = {
        "value": "1",
        "sharingPolicy": {
            "default": "1",
            "validRange": {"minimum": "1", "chunkSize": "1"},
        },
    }
    devices = [
        {"name": "a", "basic": inner},
        {"name": "b", "basic": {"capacity": {"memory": alpha, "cores": "1"}}},
    ]
    asked = {
        "name": "gpu",
        "deviceClassName": "gpu",
        "capacityRequests": {"minimum": {"memory": "1"}},
    }
    objects = [
        resource_slice(devices),
        claim("a", asked),
        device_class("gpu", "device.driver == 'x'"),
    ]
    older = [
        {**document, "apiVersion": f"resource.k8s.io/{version}"}
        for document in objects
    ]
    assert list(leaks([Planter().grown(document) for document in older])) == []


def redacted(*objects: Json) -> list[Json]:
    redaction = plan_redaction(objects)
    return [redaction.apply(document) for document in objects]


def test_conditions_that_drivers_report_are_dropped() -> None:
    condition = {
        "type": "Ready",
        "status": "True",
        "message": "on rack 7",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    reported = {
        "driver": "d",
        "pool": "p",
        "device": "x",
        "conditions": [condition],
        "networkData": {"ips": ["10.9.8.7"]},
    }
    (new_claim,) = redacted(claim("a", status={"devices": [reported]}))
    assert new_claim["status"]["devices"] == [
        {"driver": "d", "pool": "pool-0001", "device": "device-0001"}
    ]


def test_fields_that_are_not_known_are_dropped() -> None:
    allocation = {
        "controller": "acme",
        "devices": {"results": [], "config": [], "trace": "acme"},
    }
    given = claim("a", status={"allocation": allocation, "phase": "acme"})
    given["spec"]["owner"] = "acme"
    published = resource_slice([device("gpu-0", room="acme")], site="acme") | {
        "status": {"site": "acme"}
    }
    kind = device_class("gpu")
    kind["spec"]["suitableNodes"] = {
        "nodeSelectorTerms": [{"matchFields": [{"key": "acme"}]}]
    }
    assert "acme" not in str(redacted(given, published, kind))


def test_numbers_that_json_does_not_hold() -> None:
    """A quantity is written as text, and no field of the API is an integer beyond int64."""
    (new_slice,) = redacted(
        resource_slice(
            [device("a", capacity={"memory": {"value": 10**30}})],
            generation=10**30,
        )
    )
    assert new_slice["spec"]["devices"][0]["capacity"]["memory"] == {
        "value": str(10**30)
    }
    assert "generation" not in new_slice["spec"]["pool"]


def test_an_empty_part_of_an_object_stays() -> None:
    """As in the API an empty allocation is one, and a selector of an unknown kind selects nothing."""
    given = claim("a", status={"allocation": {"future": 1}})
    kind = device_class("gpu")
    kind["spec"]["selectors"] = [{"future": {"expression": "x"}}]
    new_claim, selecting = redacted(given, kind)
    assert new_claim["status"] == {"allocation": {}}
    assert selecting["spec"]["selectors"] == [{}]


def test_priority_classes_in_scopes_of_quotas_are_names() -> None:
    wanted = {
        "scopeName": "PriorityClass",
        "operator": "In",
        "values": ["acme-high", "system-node-critical"],
    }
    quota: Json = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {
            "hard": {"pods": "1"},
            "scopes": ["BestEffort", "Acme"],
            "scopeSelector": {"matchExpressions": [wanted]},
        },
    }
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "acme-high"},
        "value": 9,
    }
    new_quota, named, user = redacted(
        quota, high, pod("a", priorityClassName="acme-high")
    )
    assert new_quota["spec"]["scopes"] == ["BestEffort", "term-0001"]
    assert new_quota["spec"]["scopeSelector"]["matchExpressions"] == [
        {**wanted, "values": ["priority-0001", "system-node-critical"]}
    ]
    assert (
        named["metadata"]["name"]
        == user["spec"]["priorityClassName"]
        == "priority-0001"
    )


def test_uids_are_replaced_in_texts_too() -> None:
    user = pod("train")
    user["metadata"]["uid"] = "acme-1"
    _, published = redacted(
        user, resource_slice([device("gpu-0", {"owner": "for acme-1"})])
    )
    assert published["spec"]["devices"][0]["attributes"]["owner"] == {
        "string": "for 00000000-0000-0000-0000-000000000001"
    }


def test_a_name_that_would_be_left_is_an_error() -> None:
    """A literal without end cannot be told from code."""
    broken = device_class("gpu", "device.driver == 'on rack-7")
    objects = [node("rack-7"), broken]
    with pytest.raises(RedactionError) as caught:
        redacted(*objects)
    assert str(caught.value) == (
        'DeviceClass gpu: spec.selectors[0].cel.expression: the name "rack-7" would be left in: '
        "device.driver == 'on rack-7"
    )


@pytest.mark.parametrize(
    "name",
    ["In", "default", "device", "gpu", "name", "size", "1", "1k", "10.0.0.1"],
)
def test_names_like_words_of_the_api_are_no_error(name: str) -> None:
    published = resource_slice(
        [
            device(
                name,
                {"address": "192.168.0.1"},
                capacity={"memory": {"value": "1k"}},
            )
        ]
    )
    selected = {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": name, "operator": "In", "values": [name]}
                ]
            }
        ]
    }
    expression = "device.driver == 'd' && size(device.attributes) > 1"
    objects = [
        node(name),
        pod(name),
        claim(name),
        published,
        device_class("gpu", expression),
    ]
    new_objects = redacted(
        *objects, resource_slice(gpus(1), name="other", nodeSelector=selected)
    )
    assert {
        new_object["metadata"]["name"].rpartition("-")[0]
        for new_object in new_objects[:3]
    } == {"node"}


def test_kinds_that_are_not_read_are_refused() -> None:
    redaction = plan_redaction([])
    with pytest.raises(
        RedactionError,
        match="Secret a/b: is of a kind or version that dralloc does not read",
    ):
        redaction.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "b", "namespace": "a"},
            }
        )
