"""The models: wire names, defaults, construction by name, and the way back to the wire."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import dralloc.objects.api
from dralloc.objects.api import (
    Device,
    DeviceCapacity,
    DeviceRequest,
    DeviceToleration,
    ExactDeviceRequest,
    Node,
    ObjectMeta,
    ObjectReader,
    Pod,
    PodOwner,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
    to_wire,
)
from dralloc.objects.api.owners import pods_of
from dralloc.objects.names import ClaimKey, DeviceID, PoolID
from dralloc.objects.quantity import parse_quantity

RECORDED = (
    Path(__file__).resolve().parents[3].parent
    / "shared"
    / "upstream"
    / "recorded_cases.jsonl"
)


def read(raw: dict[str, Any]) -> Any:
    reader = ObjectReader(strict=True)
    api_object = reader.read(raw, "")
    assert not reader.errors
    return api_object


def claim(**request: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim", "namespace": "team"},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {"deviceClassName": "gpu", **request},
                    }
                ]
            }
        },
    }


def test_everything_public_is_importable() -> None:
    assert len(set(dralloc.objects.api.__all__)) == len(
        dralloc.objects.api.__all__
    )
    for name in dralloc.objects.api.__all__:
        assert hasattr(dralloc.objects.api, name)


def test_every_model_has_camel_case_aliases_and_is_frozen() -> None:
    models = [
        getattr(dralloc.objects.api, name)
        for name in dralloc.objects.api.__all__
    ]
    for model in models:
        if isinstance(model, type) and issubclass(model, BaseModel):
            assert model.model_config["frozen"]
            assert all(
                "_" not in (field.alias or "")
                for field in model.model_fields.values()
            )


def test_defaults_of_the_api() -> None:
    request = read(claim()).spec.devices.requests[0].exactly
    assert (request.allocation_mode, request.count, request.admin_access) == (
        "ExactCount",
        1,
        False,
    )
    empty = (
        read(claim(allocationMode="", count=0)).spec.devices.requests[0].exactly
    )
    assert (empty.allocation_mode, empty.count) == ("ExactCount", 1)


def test_tolerations_are_kept_as_they_were_written() -> None:
    tolerations = [
        {"key": "a"},
        {"key": "a", "operator": "Equal"},
        {"operator": "Exists"},
    ]
    claim_object = read(claim(tolerations=tolerations))
    assert claim_object.spec.devices.requests[0].exactly.tolerations[
        0
    ] == DeviceToleration(key="a")
    assert (
        to_wire(claim_object)["spec"]["devices"]["requests"][0]["exactly"][
            "tolerations"
        ]
        == tolerations
    )


def test_null_is_absent() -> None:
    claim_object = read(
        claim(selectors=None, capacity=None, tolerations=None, adminAccess=None)
    )
    assert claim_object == read(claim())
    slice_ = read(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "s", "creationTimestamp": None},
            "spec": {
                "driver": "d",
                "pool": {"name": "p", "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": "a",
                        "attributes": None,
                        "capacity": None,
                        "bindingConditions": None,
                    }
                ],
            },
        }
    )
    assert slice_.spec.devices == (Device(name="a"),)


def test_null_stays_in_opaque_parameters() -> None:
    raw = claim()
    raw["spec"]["devices"]["config"] = [
        {"opaque": {"driver": "d", "parameters": {"a": None, "b": [None]}}}
    ]
    assert read(raw).spec.devices.config[0].opaque.parameters == {
        "a": None,
        "b": [None],
    }


def test_empty_binding_conditions_are_not_absent_ones() -> None:
    assert Device(name="a").binding_conditions is None
    spec = ResourceSliceSpec(
        driver="d",
        pool=ResourcePool(name="p", resource_slice_count=1),
        devices=(Device(name="a", binding_conditions=()), Device(name="b")),
    )
    slice_ = ResourceSlice(metadata=ObjectMeta(name="s"), spec=spec)
    assert to_wire(slice_)["spec"]["devices"] == [
        {"name": "a", "bindingConditions": []},
        {"name": "b"},
    ]


def test_construction_by_name_and_the_wire_form() -> None:
    request = DeviceRequest(
        name="r", exactly=ExactDeviceRequest(device_class_name="gpu", count=2)
    )
    assert request.exactly is not None
    assert request.exactly.count == 2
    device = Device(
        name="a", capacity={"memory": DeviceCapacity(parse_quantity("1024Mi"))}
    )
    spec = ResourceSliceSpec(
        driver="d",
        pool=ResourcePool(name="p", resource_slice_count=1),
        devices=(device,),
    )
    slice_ = ResourceSlice(metadata=ObjectMeta(name="s"), spec=spec)
    assert slice_.pool_id == PoolID("d", "p")
    assert to_wire(slice_) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d",
            "pool": {"name": "p", "resourceSliceCount": 1},
            "devices": [
                {"name": "a", "capacity": {"memory": {"value": "1Gi"}}}
            ],
        },
    }


def test_models_cannot_be_changed() -> None:
    claim_object = read(claim())
    with pytest.raises(ValidationError):
        claim_object.metadata = ObjectMeta()
    with pytest.raises(AttributeError):
        Device(name="a").name = "b"  # type: ignore[misc]


@pytest.mark.parametrize("amount", [10, "10", 10.0])
def test_quantities_may_be_numbers(amount: object) -> None:
    claim_object = read(claim(capacity={"requests": {"memory": amount}}))
    assert claim_object.spec.devices.requests[0].exactly.capacity.requests[
        "memory"
    ] == parse_quantity("10")


def test_fractions_keep_their_text() -> None:
    claim_object = read(claim(capacity={"requests": {"memory": 0.1}}))
    assert (
        str(
            claim_object.spec.devices.requests[0].exactly.capacity.requests[
                "memory"
            ]
        )
        == "100m"
    )


def test_keys_and_titles() -> None:
    claim_object: ResourceClaim = read(claim())
    assert claim_object.key == ClaimKey("team", "claim")
    assert claim_object.title == "ResourceClaim team/claim"
    pod = Pod(metadata=ObjectMeta(name="a"))
    assert (pod.key, pod.title) == (ClaimKey("default", "a"), "Pod a")
    node = Node(metadata=ObjectMeta(name="n"))
    assert (node.key, node.title) == (ClaimKey("", "n"), "Node n")


def test_results_name_their_device() -> None:
    raw = claim()
    result = {
        "request": "gpu",
        "driver": "d",
        "pool": "p",
        "device": "a",
        "shareID": "x",
        "consumedCapacity": {"m": "1Gi"},
    }
    raw["status"] = {"allocation": {"devices": {"results": [result]}}}
    claim_object: ResourceClaim = read(raw)
    assert claim_object.status.allocation is not None
    [read_result] = claim_object.status.allocation.devices.results
    assert read_result.device_id == DeviceID("d", "p", "a")
    assert to_wire(claim_object)["status"] == raw["status"]


def test_how_many_pods_a_job_has_at_a_time() -> None:
    def pods(**spec: object) -> tuple[int, bool]:
        job = read(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "j"},
                "spec": {"template": {"spec": {"containers": []}}, **spec},
            }
        )
        assert isinstance(job, PodOwner)
        return len(list(pods_of(job, ()))), job.suspended

    assert pods() == (1, False)
    assert pods(parallelism=4) == (4, False)
    assert pods(parallelism=4, completions=2) == (2, False)
    assert pods(parallelism=4, suspend=True) == (4, True)


def test_managed_fields_are_dropped_and_the_input_stays_as_it_is() -> None:
    raw = claim()
    raw["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    before = json.loads(json.dumps(raw))
    assert "managedFields" not in to_wire(read(raw))["metadata"]
    assert raw == before


@pytest.mark.skipif(
    not RECORDED.exists(),
    reason="the recorded cases are not beside the repository",
)
def test_recorded_objects_survive_the_round_trip() -> None:
    api = "resource.k8s.io/v1"
    for line in RECORDED.read_text().splitlines()[::25]:
        case = json.loads(line)
        claims = [*case.get("claims", ()), *case["allocatedClaims"]]
        for kind, items in (
            ("ResourceClaim", claims),
            ("ResourceSlice", case["slices"]),
        ):
            for item in items:
                raw = {"apiVersion": api, "kind": kind, **item}
                again = read(to_wire(read(raw)))
                assert again == read(raw)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "default-scheduler"),
        ({"schedulerName": ""}, "default-scheduler"),
        ({"schedulerName": "other"}, "other"),
    ],
)
def test_an_empty_scheduler_is_the_default(
    given: dict[str, str], name: str
) -> None:
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": given,
    }
    assert read(raw).spec.scheduler_name == name
