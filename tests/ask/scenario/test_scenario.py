"""Changes of a cluster: what is different, and that all else stays."""

from __future__ import annotations

from crowded import Crowd
from dralloc.ask.allocate import allocate
from dralloc.ask.scenario import Scenario
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.api.disclosure import EXTENDED_RESOURCE_ANNOTATION
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from scenario_strategies import TAINT, bound_pod, tainted_node
from settled import held
from wire import (
    Json,
    claim,
    cluster,
    device,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

P, X = ClaimKey("default", "p"), ClaimKey("default", "x")


def busy() -> Cluster:
    slices = [
        resource_slice(gpus(1), name=name, pool=name, nodeName=name)
        for name in "ab"
    ]
    running = [
        held("x", "a", "gpu-0"),
        bound_pod(
            "p", "x", nodeName="a", priority=7, nodeSelector={"zone": "z"}
        ),
    ]
    return cluster(
        device_class(),
        [tainted_node(name, zone="z") for name in "ab"],
        slices,
        running,
    )


def test_a_pod_that_is_unbound_says_what_it_said() -> None:
    whole = busy()
    before, after = (
        whole.pods_by_key[P],
        Scenario(whole).unbind([P]).cluster.pods_by_key[P],
    )
    assert (before.spec.node_name, after.spec.node_name) == ("a", None)
    assert after.model_copy(update={"spec": before.spec}) == before
    assert after.spec.tolerations == before.spec.tolerations
    assert after.spec.containers == before.spec.containers


def test_a_claim_that_is_released_can_be_had_again() -> None:
    again = Scenario(busy()).release([X]).unbind([P]).cordon(["a"]).cluster
    [placed] = allocate(again).placed
    assert (placed.demand, placed.node) == (P, "b")


def test_changes_leave_what_they_began_with() -> None:
    whole = busy()
    scenario = Scenario(whole)
    scenario.release([X]).unbind([P]).cordon(["a"]).with_copy_of(
        "a", "c"
    ).emptied()
    assert scenario.cluster == whole == busy()


def test_what_runs_stays_when_nobody_waits() -> None:
    whole = busy()
    more = cluster(claim("w", request()), pod("w", "w"))
    both = Cluster.of(
        [
            *whole.nodes,
            *whole.slices,
            *whole.classes.values(),
            *whole.claims,
            *whole.pods,
            *more.pods,
        ]
    )
    remaining = Scenario(both).without_pending().cluster
    assert [pod_object.key for pod_object in remaining.pods] == [P]
    assert [claim_object.key for claim_object in remaining.claims] == [X]


def test_a_copy_of_a_node_is_empty_and_takes_pods() -> None:
    copied = (
        Scenario(busy())
        .cordon(["a"])
        .with_copy_of("a", "c")
        .release([X])
        .unbind([P])
        .cluster
    )
    new = next(node for node in copied.nodes if node.name == "c")
    assert not new.spec.unschedulable
    assert new.metadata.labels == {"kubernetes.io/hostname": "c", "zone": "z"}
    assert [taint.key for taint in new.spec.taints] == [TAINT["key"]]
    assert [
        resource_slice.spec.pool.name
        for resource_slice in copied.slices
        if resource_slice.spec.node_name == "c"
    ] == ["a of c"]
    assert allocate(copied, nodes=["c"]).solution.placements


def test_what_is_claimed_for_extended_resources_is_asked_for_once() -> None:
    """A pod that asks for a resource by name, and its claim, become a pod with a claim."""
    gpu = device_class()
    gpu["spec"]["extendedResourceName"] = "example.com/gpu"
    extended = held("x", "a", "gpu-0")
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "uid": "",
        "controller": True,
    }
    extended["metadata"] |= {
        "annotations": {EXTENDED_RESOURCE_ANNOTATION: "true"},
        "ownerReferences": [owner],
    }
    user = pod(
        "p",
        nodeName="a",
        containers=[
            {"name": "m", "resources": {"requests": {"example.com/gpu": "1"}}}
        ],
    )
    slices = resource_slice(gpus(1), pool="a", nodeName="a")
    whole = cluster(gpu, tainted_node("a", taints=()), slices, extended, user)
    again = Scenario(whole).release([X]).unbind([P]).cluster
    [placed] = allocate(again).placed
    assert list(placed.claims) == [X]


BROKEN: Json = {"key": "broken", "value": "fan", "effect": "NoSchedule"}


def test_devices_can_be_had_without_their_taints() -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rule"},
        "spec": {"deviceSelector": {"device": "gpu-1"}, "taint": BROKEN},
    }
    devices = [device("gpu-0", taints=[BROKEN]), device("gpu-1")]
    whole = cluster(
        node(),
        device_class(),
        resource_slice(devices),
        rule,
        claim("both", request(count=2)),
    )
    assert not allocate(whole).solution.placements
    assert allocate(
        Scenario(whole).without_device_taints().cluster
    ).solution.placements


def test_amounts_that_are_asked_for_are_consumed_as_they_are() -> None:
    """Two shares of 3Gi fit into 6Gi once they are not rounded up to 4Gi; who asks for nothing still takes 4Gi."""
    policy = {"default": "4Gi", "validRange": {"min": "4Gi", "step": "4Gi"}}
    shared = gpus(
        1,
        allowMultipleAllocations=True,
        capacity={"memory": {"value": "6Gi", "requestPolicy": policy}},
    )
    asking = [
        claim(name, request(capacity={"requests": {"memory": "3Gi"}}))
        for name in "ab"
    ]
    plain = [claim(name, request()) for name in "cd"]
    objects = [node(), device_class(), resource_slice(shared)]
    exact, default = (
        Scenario(cluster(objects, claims)).with_exact_amounts().cluster
        for claims in (asking, plain)
    )
    assert len(allocate(cluster(objects, asking)).solution.placements) == 1
    assert len(allocate(exact).solution.placements) == 2
    assert len(allocate(default).solution.placements) == 1


def test_slices_of_which_nothing_is_lifted_stay_the_same_objects() -> None:
    whole = busy()
    same = Scenario(whole).without_device_taints().with_exact_amounts().cluster
    assert all(
        resource_slice is other
        for resource_slice, other in zip(same.slices, whole.slices, strict=True)
    )


def test_devices_and_alternatives_keep_their_numbers() -> None:
    for seed in range(40):
        compiled = compile_cluster(Crowd(seed).cluster())
        scenario = Scenario(compiled.cluster)
        lifted = compiled.again(
            scenario.without_device_taints().with_exact_amounts().cluster
        )
        assert lifted.table.criteria == compiled.table.criteria
        assert [device.id for device in lifted.problem.devices] == [
            device.id for device in compiled.problem.devices
        ]
