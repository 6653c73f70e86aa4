"""Claims for the extended resources that pods ask for (KEP-5004)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.write import allocated_claims
from dralloc.objects.api import ResourceClaim
from dralloc.objects.api.disclosure import EXTENDED_RESOURCE_ANNOTATION
from dralloc.objects.errors import InputError
from dralloc.objects.features import ALL_FEATURES
from dralloc.objects.load import load
from dralloc.solve.first_fit import first_fit
from wire import (
    Json,
    allocated,
    cluster,
    device_class,
    gpus,
    node,
    resource_slice,
)

GPU = "example.com/gpu"


def extended_class(
    name: str = "gpu", resource: str = GPU, created: str = ""
) -> Json:
    class_object = device_class(name)
    class_object["spec"]["extendedResourceName"] = resource
    class_object["metadata"] |= (
        {"creationTimestamp": created} if created else {}
    )
    return class_object


def container(name: str = "c", restart: str = "", **resources: Any) -> Json:
    """A container; resources as ``gpu=2``, or whole mappings as ``requests`` and ``limits``."""
    if "gpu" in resources:
        resources = {"limits": {GPU: str(resources["gpu"])}}
    return {
        "name": name,
        "resources": resources,
        **({"restartPolicy": restart} if restart else {}),
    }


def pod(
    *containers: Json,
    init: list[Json] | None = None,
    name: str = "p",
    **spec: Any,
) -> Json:
    content = {
        "containers": list(containers),
        "initContainers": init or [],
        **spec,
    }
    metadata = {"name": name, "namespace": "default", "uid": "uid-p"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": content,
    }


def compiled(*objects: Any, **choices: Any) -> CompiledCluster:
    return compile_cluster(
        cluster(node(), resource_slice(gpus(8)), *objects), **choices
    )


def claim_of(given: CompiledCluster) -> ResourceClaim:
    (claim,) = given.cluster.claims
    return claim


def requests_of(given: CompiledCluster) -> list[tuple[str, str, int]]:
    requests = claim_of(given).spec.devices.requests
    details = [(entry.name, entry.exactly) for entry in requests]
    return [
        (name, exactly.device_class_name, exactly.count)
        for name, exactly in details
        if exactly
    ]


def test_one_claim_for_a_pod_with_its_devices() -> None:
    given = compiled(extended_class(), pod(container(gpu=2)))
    claim = claim_of(given)
    assert claim.name.startswith("p-extended-resources-")
    assert claim.metadata.annotations == {EXTENDED_RESOURCE_ANNOTATION: "true"}
    assert [
        (owner.kind, owner.name, owner.controller)
        for owner in claim.metadata.owner_references
    ] == [("Pod", "p", True)]
    assert requests_of(given) == [("container-0-request-0", "gpu", 2)]
    (written,) = allocated_claims(given, first_fit(given.problem))
    assert written.status.allocation is not None
    assert [
        result.device for result in written.status.allocation.devices.results
    ] == [
        "gpu-0",
        "gpu-1",
    ]
    assert [consumer.name for consumer in written.status.reserved_for] == ["p"]


def test_the_name_of_the_class_is_a_resource_too() -> None:
    implicit = container(limits={"deviceclass.resource.kubernetes.io/gpu": "1"})
    assert requests_of(compiled(device_class(), pod(implicit))) == [
        ("container-0-request-0", "gpu", 1)
    ]


def test_requests_are_numbered_among_all_resources_of_the_container() -> None:
    limits = {"cpu": "2", "example.com/nic": "1", GPU: "1", "memory": "1Gi"}
    classes = [extended_class(), extended_class("nic", "example.com/nic")]
    given = compiled(
        classes,
        pod(
            container(limits=limits),
            container("d", requests={"cpu": "1", GPU: "3"}),
        ),
    )
    assert requests_of(given) == [
        ("container-0-request-1", "gpu", 1),
        ("container-0-request-2", "nic", 1),
        ("container-1-request-1", "gpu", 3),
    ]


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ([2], [("container-1-request-0", 3)]),
        ([5, 4], [("container-0-request-0", 2), ("container-2-request-0", 3)]),
        ([3, 4], [("container-1-request-0", 1), ("container-2-request-0", 3)]),
    ],
)
def test_init_containers_share_the_devices_of_the_containers_behind_them(
    init: list[int], expected: list[tuple[str, int]]
) -> None:
    given = compiled(
        extended_class(),
        pod(
            container(gpu=3),
            init=[container(f"i{count}", gpu=count) for count in init],
        ),
    )
    assert [(name, count) for name, _, count in requests_of(given)] == expected


def test_sidecars_keep_their_devices_and_only_share_with_init_containers_before_them() -> (
    None
):
    init = [
        container("first", gpu=1),
        container("side", "Always", gpu=1),
        container("last", gpu=2),
    ]
    given = compiled(extended_class(), pod(container("cpu"), init=init))
    assert [(name, count) for name, _, count in requests_of(given)] == [
        ("container-1-request-0", 1),
        ("container-2-request-0", 2),
    ]


def test_of_classes_with_the_same_resource_the_newest_counts_then_the_first_by_name() -> (
    None
):
    old, new = (
        extended_class("a", created="2026-01-01T00:00:00Z"),
        extended_class("b", created="2026-02-01T00:00:00Z"),
    )
    assert requests_of(compiled(new, old, pod(container(gpu=1))))[0][1] == "b"
    assert (
        requests_of(
            compiled(
                extended_class("d"), extended_class("c"), pod(container(gpu=1))
            )
        )[0][1]
        == "c"
    )


def test_nothing_is_made_without_a_class_a_gate_or_a_need() -> None:
    assert compiled(device_class(), pod(container(gpu=1))).cluster.claims == ()
    assert (
        compiled(extended_class(), pod(container(gpu=0))).cluster.claims == ()
    )
    assert (
        compiled(
            extended_class(), pod(container(gpu=1), nodeName="node-0")
        ).cluster.claims
        == ()
    )
    off = ALL_FEATURES.switched({"ExtendedResource": False})
    assert (
        compiled(
            extended_class(), pod(container(gpu=1)), features=off
        ).cluster.claims
        == ()
    )


def plugin(name: str, **allocatable: str) -> Json:
    amounts = {GPU: allocatable.get("gpu", "0")}
    return {**node(name), "status": {"allocatable": amounts}}


def test_nodes_with_a_device_plugin_are_left_out() -> None:
    """A node that offers the resource itself serves the pod that way, and what it has left is not known here."""
    given = compiled(
        plugin("plugin", gpu="4"), extended_class(), pod(container(gpu=1))
    )
    (demand,) = given.problem.demands
    assert [
        given.problem.nodes[index].name for index in demand.nodes or ()
    ] == ["node-0"]
    assert [str(finding) for finding in given.findings] == [
        "test: DeviceClass gpu: spec.extendedResourceName: a device plugin offers example.com/gpu on plugin: "
        "pods that ask for it are placed on other nodes only"
    ]


def test_where_only_device_plugins_serve_nothing_is_asked_for() -> None:
    given = compile_cluster(
        cluster(
            plugin("plugin", gpu="4"), extended_class(), pod(container(gpu=1))
        )
    )
    assert given.cluster.claims == ()
    assert given.problem.demands == ()


def test_a_claim_is_made_unless_device_plugins_serve_everything_everywhere() -> (
    None
):
    """Each node serves one of two resources by a plugin, so that devices are needed for the other; or both."""
    nic = "example.com/nic"
    classes = [extended_class(), extended_class("nic", nic)]
    wanted = pod(container(limits={GPU: "1", nic: "1"}))
    nodes = [plugin("a", gpu="4"), plugin("b")]
    nodes[1]["status"]["allocatable"][nic] = "4"
    given = compile_cluster(cluster(nodes, classes, wanted))
    assert [name for _, name, _ in requests_of(given)] == ["gpu", "nic"]
    (demand,) = given.problem.demands
    assert demand.nodes == ()
    both = {GPU: "4", nic: "4"}
    for node_object in nodes:
        node_object["status"]["allocatable"] = both
    given = compile_cluster(cluster(nodes, classes, wanted))
    assert given.cluster.claims == ()
    assert given.problem.demands == ()


def made_before(claim: Json) -> Json:
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "uid": "uid-p",
        "controller": True,
    }
    claim["metadata"] |= {
        "annotations": {EXTENDED_RESOURCE_ANNOTATION: "true"},
        "ownerReferences": [owner],
    }
    return claim


def test_an_allocated_claim_of_the_pod_is_used_and_another_one_made_anew() -> (
    None
):
    done = made_before(allocated("old", {"device": "gpu-0"}))
    given = compiled(extended_class(), pod(container(gpu=1)), done)
    assert [claim.name for claim in given.cluster.claims] == ["old"]
    assert given.problem.demands == ()
    stale = made_before(allocated("old", {"device": "gpu-0"}))
    del stale["status"]
    given = compiled(extended_class(), pod(container(gpu=1)), stale)
    (demand,) = given.problem.demands
    assert [claim.key.name for claim in demand.claims] != ["old"]


def test_an_allocated_claim_of_an_earlier_pod_of_that_name_is_not_used() -> (
    None
):
    """Upstream's scheduler tells them by the UID of the pod; what such a claim holds stays in use."""
    earlier = made_before(allocated("old", {"device": "gpu-0"}))
    earlier["metadata"]["ownerReferences"][0]["uid"] = "uid-earlier"
    given = compiled(extended_class(), pod(container(gpu=1)), earlier)
    (demand,) = given.problem.demands
    assert [claim.key.name for claim in demand.claims] != ["old"]
    (written,) = allocated_claims(given, first_fit(given.problem))
    assert [result.device for result in written.results] == ["gpu-1"]


def test_amounts_that_no_claim_can_ask_for() -> None:
    below = r'Pod default/p: .*requests\["example.com/gpu"\]: must not be negative, but is -3'
    with pytest.raises(InputError, match=below):
        compiled(extended_class(), pod(container(gpu=-3)))
    beyond = compiled(extended_class(), pod(container(gpu=9300000000000000000)))
    assert requests_of(beyond) == [("container-0-request-0", "gpu", 2**63 - 1)]
    assert "exceeds the claim limit of 32" in str(
        first_fit(beyond.problem).errors[0]
    )


def test_the_demo_of_the_nvidia_driver(shared: Path) -> None:
    path = (
        shared
        / "data/claims/nvidia/demo_specs_extended-resources_mig-1g-12gb.yaml"
    )
    given = compile_cluster(load(path))
    assert requests_of(given) == [
        ("container-0-request-0", "mig-1g-12gb.gpu.nvidia.com", 1)
    ]
    assert claim_of(given).name.startswith("mig-1g12gb-pod-extended-resources-")
