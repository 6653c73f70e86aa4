"""Older wire forms become v1."""

from typing import Any

import pytest
import yaml

from dralloc.objects.api import (
    ObjectReader,
    Pod,
    PodOwner,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    to_wire,
)
from dralloc.objects.quantity import parse_quantity


def read(text: str) -> Any:
    reader = ObjectReader()
    api_object = reader.read(yaml.safe_load(text), "test.yaml")
    assert not reader.errors
    assert not reader.warnings
    return api_object


V1BETA1_SLICE = """
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: cards}
spec:
  nodeName: worker-1
  pool: {name: worker-1, generation: 1, resourceSliceCount: 1}
  driver: cards.dra.example.com
  devices:
  - name: card-1
    basic:
      attributes:
        productName: {string: ACME T1000 16GB}
        driverVersion: {version: 1.2.3}
      capacity:
        memory: 16Gi
        cores: {value: "8"}
      taints: [{key: broken, effect: NoSchedule}]
"""

KEP5075_SLICE = """
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: example.dra.x-k8s.io
  nodeName: worker-1
  pool: {name: worker-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu
    basic:
      allowMultipleAllocations: true
      attributes:
        name: {string: gpu0}
      capacity:
        power:
          value: 700 # watts
        memory:
          sharingPolicy:
            default: 80Gi
            validRange:
              minimum: 10Gi
              maximum: 80Gi
              chunkSize: 10Gi
          value: 80Gi
  - name: dedicated
    basic:
      capacity:
        power:
          value: 700
"""

KEP5075_CLAIM = """
apiVersion: resource.k8s.io/v1beta2
kind: ResourceClaim
metadata: {name: shared}
spec:
  devices:
    requests:
    - name: nic
      exactly:
        deviceClassName: qos-aware-shared.device.x-k8s.io
        capacityRequests:
          minimum:
            bandwidth: 5Gi
    - name: other
      firstAvailable:
      - name: a
        deviceClassName: any
        capacityRequests: {minimum: {bandwidth: 1Gi}}
status:
  allocation:
    devices:
      results:
      - request: nic
        driver: guaranteed-cni.dra.networking.x-k8s.io
        pool: worker-1
        device: eth1
        shareID: 0d274f
        consumedCapacities: {bandwidth: 1Mi}
  devices:
  - driver: guaranteed-cni.dra.networking.x-k8s.io
    pool: worker-1
    device: eth1/0d274f
    data: {cniVersion: 1.1.0}
"""


def test_v1beta1_devices_lie_under_basic() -> None:
    resource_slice: ResourceSlice = read(V1BETA1_SLICE)
    assert to_wire(resource_slice) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "cards"},
        "spec": {
            "driver": "cards.dra.example.com",
            "nodeName": "worker-1",
            "pool": {
                "name": "worker-1",
                "generation": 1,
                "resourceSliceCount": 1,
            },
            "devices": [
                {
                    "name": "card-1",
                    "attributes": {
                        "productName": {"string": "ACME T1000 16GB"},
                        "driverVersion": {"version": "1.2.3"},
                    },
                    "capacity": {
                        "memory": {"value": "16Gi"},
                        "cores": {"value": "8"},
                    },
                    "taints": [{"key": "broken", "effect": "NoSchedule"}],
                }
            ],
        },
    }


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize("version", ["v1alpha3", "v1beta1"])
def test_v1beta1_requests_are_exact_without_saying_so(
    kind: str, version: str
) -> None:
    claim = """
    devices:
      requests:
      - name: nic
        deviceClassName: rdma-nic
        count: 2
      - name: gpu
        firstAvailable:
        - name: big
          deviceClassName: big-gpu
        - name: small
          deviceClassName: small-gpu
          count: 2
    """
    spec = yaml.safe_load(claim)
    body = {"spec": spec if kind == "ResourceClaim" else {"spec": spec}}
    raw = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "claim"},
        **body,
    }
    reader = ObjectReader()
    api_object = reader.read(raw, "")
    assert not reader.warnings
    assert isinstance(api_object, ResourceClaim | ResourceClaimTemplate)
    claimed = (
        api_object.spec
        if isinstance(api_object, ResourceClaim)
        else api_object.spec.spec
    )
    nic, gpu = claimed.devices.requests
    assert nic.exactly is not None
    assert (nic.exactly.device_class_name, nic.exactly.count) == ("rdma-nic", 2)
    assert [(sub.name, sub.count) for sub in gpu.first_available] == [
        ("big", 1),
        ("small", 2),
    ]
    assert "exactly" not in spec["devices"]["requests"][0], (
        "the input is not changed"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"deviceClassName": "", "allocationMode": "", "count": 0},
        {"adminAccess": None, "selectors": None, "capacity": None},
    ],
)
def test_v1beta1_alternatives_beside_fields_that_say_nothing(
    fields: dict[str, Any],
) -> None:
    alternatives = [{"name": "big", "deviceClassName": "gpu"}]
    listed = {"name": "gpu", "firstAvailable": alternatives, **fields}
    raw = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim"},
        "spec": {"devices": {"requests": [listed]}},
    }
    reader = ObjectReader()
    claim = reader.read(raw, "")
    assert not reader.errors
    assert isinstance(claim, ResourceClaim)
    [read_request] = claim.spec.devices.requests
    assert read_request.exactly is None
    assert [name for name, _ in read_request.alternatives] == ["gpu/big"]
    # False is a value: the pointer is set.
    listed["adminAccess"] = False
    assert reader.read(raw, "") is None


def test_v1beta2_is_like_v1() -> None:
    claim = read(
        """
        apiVersion: resource.k8s.io/v1beta2
        kind: ResourceClaim
        metadata: {name: device-consumer-claim}
        spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: big-gpu}}]}}
        """
    )
    assert claim.spec.devices.requests[0].exactly.device_class_name == "big-gpu"


def test_the_alpha_example_of_kep_5075() -> None:
    resource_slice: ResourceSlice = read(KEP5075_SLICE)
    gpu = resource_slice.spec.devices[0]
    memory = gpu.capacity["memory"]
    assert memory.request_policy is not None
    assert memory.request_policy.valid_range is not None
    assert str(memory.request_policy.default) == "80Gi"
    assert str(memory.request_policy.valid_range.min) == "10Gi"
    assert str(memory.request_policy.valid_range.max) == "80Gi"
    assert str(memory.request_policy.valid_range.step) == "10Gi"
    assert memory.consumable


def test_alpha_capacity_without_policy_is_not_consumed_on_a_shareable_device() -> (
    None
):
    gpu, dedicated = read(KEP5075_SLICE).spec.devices
    assert gpu.capacity["power"].value == parse_quantity("700")
    assert not gpu.capacity["power"].consumable
    assert dedicated.capacity["power"].consumable


def test_in_v1_every_capacity_is_consumable() -> None:
    v1 = (
        KEP5075_SLICE.replace("sharingPolicy", "requestPolicy")
        .replace("minimum", "min")
        .replace("maximum", "max")
    )
    gpu, _ = read(v1.replace("chunkSize", "step")).spec.devices
    assert all(capacity.consumable for capacity in gpu.capacity.values())


def test_what_is_not_consumable_has_no_v1_form() -> None:
    wire = to_wire(read(KEP5075_SLICE))
    assert wire["spec"]["devices"][0]["capacity"]["power"] == {"value": "700"}


def test_alpha_requests_and_results() -> None:
    claim: ResourceClaim = read(KEP5075_CLAIM)
    nic, other = claim.spec.devices.requests
    assert nic.exactly is not None
    assert nic.exactly.capacity is not None
    assert nic.exactly.capacity.requests == {"bandwidth": parse_quantity("5Gi")}
    assert other.first_available[0].capacity is not None
    assert claim.status.allocation is not None
    assert claim.status.allocation.devices.results[0].consumed_capacity == {
        "bandwidth": parse_quantity("1Mi")
    }
    assert claim.status.allocation.devices.results[0].share_id == "0d274f"
    assert (
        claim.status.devices[0].device,
        claim.status.devices[0].share_id,
    ) == (
        "eth1",
        "0d274f",
    )


def test_alpha_spelling_in_a_v1beta1_request() -> None:
    claim = read(
        """
        apiVersion: resource.k8s.io/v1beta1
        kind: ResourceClaim
        metadata: {name: claim}
        spec: {devices: {requests: [{name: a, deviceClassName: c, capacityRequests: {minimum: {memory: 1Gi}}}]}}
        """
    )
    assert (
        str(claim.spec.devices.requests[0].exactly.capacity.requests["memory"])
        == "1Gi"
    )


def test_alpha_and_v1_spelling_side_by_side_is_reported() -> None:
    reader = ObjectReader()
    raw = yaml.safe_load(KEP5075_SLICE)
    raw["spec"]["devices"][0]["basic"]["capacity"]["memory"][
        "requestPolicy"
    ] = {"default": "10Gi"}
    reader.read(raw, "")
    assert [str(finding) for finding in reader.warnings] == [
        "ResourceSlice gpus: spec.devices[0].basic.capacity[memory].sharingPolicy: unknown field"
    ]


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (
            "spec.devices[0].basic.capacity[memory]",
            {"capacity": {"memory": "10Gx"}},
        ),
        (
            "spec.devices[0].basic.attributes[a].int",
            {"attributes": {"a": {"int": "1"}}},
        ),
    ],
)
def test_findings_name_the_path_as_it_was_written(
    path: str, change: dict[str, Any]
) -> None:
    reader = ObjectReader()
    raw = yaml.safe_load(V1BETA1_SLICE)
    raw["spec"]["devices"][0]["basic"].update(change)
    assert reader.read(raw, "") is None
    assert [finding.path for finding in reader.errors] == [path]


def test_findings_name_alpha_fields_as_they_were_written() -> None:
    reader = ObjectReader()
    raw = yaml.safe_load(KEP5075_SLICE)
    raw["spec"]["devices"][0]["basic"]["capacity"]["memory"]["sharingPolicy"][
        "validRange"
    ]["chunkSize"] = "x"
    assert reader.read(raw, "") is None
    assert [finding.path for finding in reader.errors] == [
        "spec.devices[0].basic.capacity[memory].sharingPolicy.validRange.chunkSize"
    ]


def test_findings_in_v1beta1_requests_do_not_say_exactly() -> None:
    reader = ObjectReader()
    raw = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "a", "deviceClassName": "x", "count": "2"}
                ]
            }
        },
    }
    assert reader.read(raw, "") is None
    assert [finding.path for finding in reader.errors] == [
        "spec.devices.requests[0].count"
    ]


def test_versions_that_are_not_known() -> None:
    reader = ObjectReader()
    raw = {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": "ResourceClaim",
        "metadata": {"name": "old"},
    }
    assert reader.read(raw, "a.yaml") is None
    assert str(reader.errors[0]) == (
        'a.yaml: ResourceClaim old: apiVersion: "resource.k8s.io/v1alpha2" is not supported, only resource.k8s.io/v1, '
        "resource.k8s.io/v1beta2, resource.k8s.io/v1beta1, resource.k8s.io/v1alpha3; its claims were addressed to a "
        "driver's controller and name no devices, so they must be rewritten"
    )


def test_other_groups_are_read_in_their_stable_version() -> None:
    pod = read("{apiVersion: v1, kind: Pod, metadata: {name: a}}")
    deployment = read(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {}}}"
    )
    assert isinstance(pod, Pod)
    assert isinstance(deployment, PodOwner)
    assert deployment.kind == "Deployment"
    reader = ObjectReader()
    assert (
        reader.read({"apiVersion": "batch.example.com/v1", "kind": "Job"}, "")
        is None
    )
    assert reader.skipped == {"Job.batch.example.com": 1}
