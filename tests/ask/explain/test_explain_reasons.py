"""Each reason that rules a node out, in first fit's words."""

from __future__ import annotations

import pytest

from dralloc.ask.explain import Explanation, explain
from dralloc.ask.explain.reasons import ADVICE, Code, FilterReason
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.features import ALL_FEATURES
from wire import (
    DRIVER,
    Json,
    allocated,
    claim,
    cluster,
    consumes,
    counters,
    device,
    device_class,
    first_available,
    gpus,
    node,
    pod,
    request,
    resource_slice,
    sub,
)

MODEL = f"device.attributes['{DRIVER}'].model"


def reasons(cluster_state: Cluster, name: str = "wanted") -> Explanation:
    return explain(cluster_state, claim=f"default/{name}", suggest=False)


def cause(cluster_state: Cluster, cause_index: int = 0) -> FilterReason:
    """The cause on the only node."""
    (group,) = reasons(cluster_state).groups
    return group.causes[cause_index]


def one_node(
    *objects: Json | list[Json], devices: list[Json] | None = None
) -> Cluster:
    return cluster(
        node(),
        device_class(),
        resource_slice(gpus(2) if devices is None else devices),
        *objects,
    )


def test_every_cause_comes_with_something_to_do() -> None:
    assert ADVICE.keys() == set(Code)


def test_a_demand_that_fits() -> None:
    explanation = reasons(one_node(claim("wanted", request())))
    assert explanation.placed
    assert explanation.node == "node-0"
    assert not explanation.groups


def test_no_device_of_the_class() -> None:
    other = device_class("nic", "device.driver == 'nic.example.com'")
    reason = cause(
        one_node(other, claim("wanted", request(device_class="nic")))
    )
    assert reason.code is Code.CLASS
    assert (
        str(reason)
        == "claim default/wanted, request gpu: no device of class nic"
    )
    assert reason.devices == 2
    assert (
        "selector of class nic: device.driver == 'nic.example.com'"
        in reason.details
    )


def test_a_selector_excludes_devices() -> None:
    devices = [
        device("gpu-0", {"model": "a"}),
        device("gpu-1", {"model": "b"}),
        device("gpu-2", {"model": "b"}),
    ]
    wanted = claim(
        "wanted", request("gpu", f"{MODEL} != 'c'", f"{MODEL} == 'a'", count=2)
    )
    reason = cause(one_node(wanted, devices=devices))
    assert reason.code is Code.SELECTOR
    assert reason.text == f"does not match selector {MODEL} == 'a'"
    assert reason.devices == 2


def test_the_clause_of_a_selector_is_named() -> None:
    whole = f"device.driver == '{DRIVER}' && {MODEL} == 'z'"
    wanted = claim("wanted", request("gpu", whole))
    reason = cause(one_node(wanted, devices=[device("gpu-0", {"model": "a"})]))
    assert (
        reason.text
        == f"does not match {MODEL} == 'z' (part of selector {whole})"
    )


def test_a_taint_that_is_not_tolerated() -> None:
    taint = {"key": "broken", "value": "fan", "effect": "NoSchedule"}
    reason = cause(
        one_node(claim("wanted", request()), devices=gpus(1, taints=[taint]))
    )
    assert (reason.code, reason.text) == (
        Code.TAINT,
        "taint broken=fan:NoSchedule is not tolerated",
    )


def test_in_use_by_claims_allocated_and_placed_before() -> None:
    held = allocated("held", {"device": "gpu-0"})
    reason = cause(
        one_node(held, claim("first", request()), claim("wanted", request()))
    )
    assert (reason.code, reason.text, reason.devices) == (
        Code.IN_USE,
        "in use",
        2,
    )
    assert reason.details == (
        f"{DRIVER}/pool-0/gpu-0: held by default/held",
        f"{DRIVER}/pool-0/gpu-1: held by default/first (placed in this batch)",
    )


def test_a_counter_is_short() -> None:
    partitions = [
        device(f"gpu-{index}", consumesCounters=consumes("card", memory="30Gi"))
        for index in range(2)
    ]
    reason = cause(
        cluster(
            node(),
            device_class(),
            resource_slice(
                name="counters",
                count=2,
                sharedCounters=[counters("card", memory="40Gi")],
            ),
            resource_slice(partitions, count=2),
            allocated("held", {"device": "gpu-0"}),
            claim("wanted", request()),
        )
    )
    assert (reason.code, reason.text) == (
        Code.COUNTER,
        "counter memory is short",
    )
    (detail,) = reason.details
    assert detail.endswith(
        "counter card/memory: 30Gi needed, 10Gi free of 40Gi, held by default/held 30Gi"
    )
    assert dict(reason.excluded) == {"in use": 1, "counter memory is short": 1}


def test_a_capacity_is_short_after_rounding() -> None:
    policy = {"default": "1Gi", "validRange": {"min": "4Gi", "step": "4Gi"}}
    shared = gpus(
        1,
        allowMultipleAllocations=True,
        capacity={"memory": {"value": "10Gi", "requestPolicy": policy}},
    )
    held = allocated(
        "held",
        {
            "device": "gpu-0",
            "shareID": "a",
            "consumedCapacity": {"memory": "4Gi"},
        },
    )
    reason = cause(
        one_node(held, claim("wanted", asking("5Gi")), devices=shared)
    )
    assert (reason.code, reason.text) == (
        Code.CAPACITY,
        "capacity memory is short",
    )
    (detail,) = reason.details
    assert (
        "8Gi (5Gi asked, rounded up by validRange min 4Gi, step 4Gi) needed, 6Gi left of 10Gi"
        in detail
    )
    assert "held by default/held 4Gi" in detail


def asking(memory: str) -> Json:
    return request(capacity={"requests": {"memory": memory}})


@pytest.mark.parametrize(
    ("capacity", "text"),
    [
        ({}, "capacity memory: 5Gi asked, the device has none of that name"),
        (
            {"memory": {"value": "4Gi"}},
            "capacity memory: 5Gi asked, the device has 4Gi",
        ),
    ],
)
def test_an_amount_that_no_device_has(capacity: Json, text: str) -> None:
    reason = cause(
        one_node(
            claim("wanted", asking("5Gi")), devices=gpus(1, capacity=capacity)
        )
    )
    assert (reason.code, reason.text) == (Code.AMOUNT, text)


def test_an_amount_that_the_policy_forbids() -> None:
    policy = {"default": "1Gi", "validValues": ["1Gi", "2Gi"]}
    shared = gpus(
        1,
        allowMultipleAllocations=True,
        capacity={"memory": {"value": "10Gi", "requestPolicy": policy}},
    )
    reason = cause(one_node(claim("wanted", asking("5Gi")), devices=shared))
    assert (
        reason.text
        == "capacity memory: the device's request policy does not allow 5Gi"
    )


def test_a_constraint_without_common_value() -> None:
    devices = [device("gpu-0", {"numa": 0}), device("gpu-1", {"numa": 1})]
    wanted = claim(
        "wanted",
        request(count=2),
        constraints=[{"matchAttribute": f"{DRIVER}/numa"}],
    )
    reason = cause(one_node(wanted, devices=devices))
    assert (reason.code, reason.text) == (
        Code.CONSTRAINT,
        f"constraint #0 matchAttribute {DRIVER}/numa: no common value",
    )
    assert reason.details == (
        f"values of {DRIVER}/numa on the selected devices: 0 (1); 1 (1)",
    )


def test_a_constraint_without_enough_distinct_values() -> None:
    devices = [device("gpu-0", {"numa": 0}), device("gpu-1", {"numa": 0})]
    wanted = claim(
        "wanted",
        request(count=2),
        constraints=[{"distinctAttribute": f"{DRIVER}/numa"}],
    )
    assert (
        "not enough distinct values"
        in cause(one_node(wanted, devices=devices)).text
    )


def test_requests_that_only_fit_alone() -> None:
    wanted = claim("wanted", request("a", count=2), request("b"))
    reason = cause(one_node(wanted))
    assert reason.code is Code.TOGETHER
    assert (
        reason.subject
        == "claim default/wanted, request a, claim default/wanted, request b"
    )


def test_requests_that_overdraw_a_counter_together() -> None:
    partitions = [
        device(f"gpu-{index}", consumesCounters=consumes("card", memory="30Gi"))
        for index in range(2)
    ]
    reason = cause(
        cluster(
            node(),
            device_class(),
            resource_slice(
                name="counters",
                count=2,
                sharedCounters=[counters("card", memory="40Gi")],
            ),
            resource_slice(partitions, count=2),
            claim("wanted", request("a"), request("b")),
        )
    )
    assert (reason.code, reason.text) == (
        Code.COUNTER,
        "together more than is free of counter memory",
    )


def grouped(name: str, *groups: str) -> Json:
    (use,) = consumes("card", memory="1Gi")
    return device(
        name, consumesCounters=[{**use, "compatibilityGroups": list(groups)}]
    )


def cards(*devices: Json) -> list[Json]:
    return [
        node(),
        device_class(),
        resource_slice(
            name="counters",
            count=2,
            sharedCounters=[counters("card", memory="40Gi")],
        ),
        resource_slice(devices, count=2),
    ]


def test_compatibility_groups_clash_with_what_is_in_use() -> None:
    devices = cards(
        grouped("mig-0", "mig"), grouped("vgpu-0", "vgpu"), grouped("plain-0")
    )
    held = allocated("held", {"device": "mig-0"})
    reason = cause(cluster(devices, held, claim("wanted", request())))
    assert (reason.code, reason.text) == (
        Code.GROUPS,
        "its counter set is in use in other compatibility groups",
    )
    assert reason.devices == 2
    used = "counter set card is used by default/held in group mig"
    assert reason.details == (
        f"{DRIVER}/pool-0/vgpu-0: {used}; the device is in group vgpu",
        f"{DRIVER}/pool-0/plain-0: {used}; the device is in no group",
    )
    assert dict(reason.excluded) == {"in use": 1, reason.text: 2}


def test_compatibility_groups_of_requests_exclude_each_other() -> None:
    wanted = claim(
        "wanted",
        request("a", "device.attributes['m'].x == 1"),
        request("b", "device.attributes['m'].x == 2"),
    )
    devices = cards(
        {**grouped("mig-0", "mig"), "attributes": {"m/x": {"int": 1}}},
        {**grouped("vgpu-0", "vgpu"), "attributes": {"m/x": {"int": 2}}},
    )
    reason = cause(cluster(devices, wanted))
    assert (reason.code, reason.text) == (
        Code.GROUPS,
        "together they need devices whose compatibility groups exclude each other",
    )


def test_more_than_32_results() -> None:
    reason = cause(
        one_node(claim("wanted", request(count=33)), devices=gpus(40))
    )
    assert reason.code is Code.ERROR
    assert "exceeds the claim limit of 32" in reason.text


def test_more_than_32_results_with_alternatives() -> None:
    wanted = claim(
        "wanted",
        request("a", count=20),
        first_available(
            "b", sub("x", count=20), sub("y", count=12, device_class="none")
        ),
    )
    none = device_class("none", "false")
    reason = cause(one_node(none, wanted, devices=gpus(40)))
    assert reason.code is Code.TOO_MANY


def test_a_pool_is_incomplete() -> None:
    half = resource_slice(gpus(1), count=2, generation=3)
    (group,) = reasons(
        cluster(node(), device_class(), half, claim("wanted", request()))
    ).groups
    assert [reason.code for reason in group.causes] == [
        Code.POOL_INCOMPLETE,
        Code.NO_DEVICE,
    ]
    assert group.causes[0].details == (
        f"pool {DRIVER}/pool-0 is incomplete: 1 of 2 slices of generation 3",
    )


def test_a_pool_is_invalid() -> None:
    cluster_state = one_node(
        claim("wanted", request()), devices=[device("gpu-0"), device("gpu-0")]
    )
    assert cause(cluster_state).code is Code.POOL_INVALID
    assert cause(cluster_state).details == (
        f"pool {DRIVER}/pool-0 is invalid: duplicate device name gpu-0",
    )


def test_a_selector_that_fails() -> None:
    reason = cause(one_node(claim("wanted", request("gpu", f"{MODEL} == 'a'"))))
    assert reason.code is Code.CEL
    assert (
        f"on device {DRIVER}/pool-0/gpu-0: CEL runtime error: no such key: model"
        in reason.text
    )
    # What CEL advises is said once, in the words of the advice for this kind of cause.
    assert "consider" not in reason.text


def test_a_class_that_does_not_exist() -> None:
    reason = cause(one_node(claim("wanted", request(device_class="gone"))))
    assert (reason.code, reason.fatal) == (Code.NO_CLASS, True)
    assert 'deviceclass.resource.k8s.io "gone" not found' in reason.text


def test_all_devices_when_one_is_in_use() -> None:
    held = allocated("held", {"device": "gpu-0"})
    reason = cause(
        one_node(held, claim("wanted", request(allocationMode="All")))
    )
    assert (reason.code, reason.text) == (
        Code.IN_USE,
        "asks for all devices, and not all can be had: in use",
    )


def test_a_feature_that_is_off() -> None:
    conditional = gpus(
        1, bindingConditions=["ready"], bindingFailureConditions=["failed"]
    )
    features = ALL_FEATURES.switched({"DeviceBindingAndStatus": False})
    explanation = explain(
        one_node(claim("wanted", request()), devices=conditional),
        "default/wanted",
        features=features,
        suggest=False,
    )
    assert (
        explanation.groups[0].causes[0].text
        == "has binding conditions, and DRADeviceBindingConditions is off"
    )


def test_nodes_that_the_pod_excludes() -> None:
    far = {
        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]
    }
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [far]
            }
        }
    }
    cordoned = {
        **node("node-1", zone="z", disk="fast"),
        "spec": {"unschedulable": True},
    }
    explanation = explain(
        cluster(
            node("node-0", zone="y"),
            cordoned,
            device_class(),
            resource_slice(gpus(1), allNodes=True),
            claim("wanted", request()),
            pod(
                "user",
                "wanted",
                nodeSelector={"disk": "fast"},
                affinity=affinity,
            ),
        ),
        pod="default/user",
        suggest=False,
    )
    texts = {
        group.nodes[0]: group.causes[0].text for group in explanation.groups
    }
    assert texts == {
        "node-0": "pod spec.nodeSelector: disk=fast; pod spec.affinity.nodeAffinity: zone In ['z']",
        "node-1": "node is cordoned (spec.unschedulable)",
    }


def test_nodes_that_an_allocated_claim_of_the_pod_excludes() -> None:
    held = allocated("held", {"device": "gpu-0"})
    fields = [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]
    held["status"]["allocation"]["nodeSelector"] = {
        "nodeSelectorTerms": [{"matchFields": fields}]
    }
    cluster_state = one_node(
        held, claim("wanted", request()), pod("user", "held", "wanted")
    )
    assert (
        cause(cluster_state).text
        == "claim default/held is allocated for metadata.name In ['node-1']"
    )


def test_every_alternative_has_its_cause() -> None:
    listed = first_available("gpu", sub("two", count=3), sub("old", "false"))
    (group,) = reasons(one_node(claim("wanted", listed))).groups
    assert [reason.subject.rpartition(" ")[2] for reason in group.causes] == [
        "gpu/two",
        "gpu/old",
    ]
    assert [reason.code for reason in group.causes] == [
        Code.NO_DEVICE,
        Code.SELECTOR,
    ]


def test_equal_nodes_are_counted_together() -> None:
    slices = [
        resource_slice(gpus(1), name=name, pool=name, nodeName=name)
        for name in ("n-0", "n-1", "n-2")
    ]
    busy = allocated("held", {"device": "gpu-0", "pool": "n-1"})
    explanation = reasons(
        cluster(
            map_nodes(),
            device_class(),
            slices,
            busy,
            claim("wanted", request("gpu", "device.driver == 'x'")),
        )
    )
    assert [
        (len(group.nodes), group.causes[0].devices)
        for group in explanation.groups
    ] == [(3, 3)]


def map_nodes() -> list[Json]:
    return [node(name) for name in ("n-0", "n-1", "n-2")]


def test_a_member_of_a_gang_is_explained_beside_those_before_it() -> None:
    explanation = explain(
        one_node(
            [claim(name, request()) for name in ("a", "b", "c")],
            [labelled(pod(f"pod-{name}", name)) for name in ("a", "b", "c")],
        ),
        pod="default/pod-c",
        gang="job",
        suggest=False,
    )
    assert not explanation.placed
    assert explanation.groups[0].causes[0].code is Code.IN_USE
    assert "gang" in explanation.remarks[0]


def test_a_gang_fails_because_of_another_member() -> None:
    explanation = explain(
        one_node(
            [claim("a", request()), claim("b", request(count=3))],
            [labelled(pod("pod-a", "a")), labelled(pod("pod-b", "b"))],
        ),
        pod="default/pod-a",
        gang="job",
    )
    assert not explanation.placed
    assert (
        "default/pod-b of the gang fits on no node at its turn: explain that one."
        in explanation.remarks
    )


def labelled(wire: Json) -> Json:
    return {
        **wire,
        "metadata": {**wire["metadata"], "labels": {"job": "train"}},
    }


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"claim": "default/none"}, "ResourceClaim default/none: not found"),
        (
            {"claim": "default/held"},
            "ResourceClaim default/held: status.allocation: is allocated already",
        ),
        ({"pod": "default/none"}, "Pod default/none: not found"),
        (
            {"pod": "default/idle"},
            "Pod default/idle: spec.resourceClaims: has all of its claims allocated",
        ),
        (
            {"pod": "default/gated"},
            "spec.schedulingGates: has scheduling gates; --include gated plans for it",
        ),
        ({"claim": "default/later"}, "Pod default/gated: spec.schedulingGates"),
        (
            {"claim": "default/a", "pod": "default/b"},
            "explain needs the name of a claim or of a pod, and not both",
        ),
    ],
)
def test_what_cannot_be_explained(asked: dict[str, str], message: str) -> None:
    cluster_state = one_node(
        allocated("held", {"device": "gpu-0"}),
        claim("later", request()),
        pod("idle", "held"),
        pod("gated", "later", schedulingGates=[{"name": "wait"}]),
    )
    with pytest.raises(DrallocError) as raised:
        explain(cluster_state, **asked)  # type: ignore[call-overload]
    assert message in str(raised.value)


def test_a_pod_and_a_claim_of_the_same_name() -> None:
    cluster_state = one_node(
        claim("twin", request(count=3)),
        claim("wanted", request()),
        pod("twin", "wanted"),
    )
    assert (
        explain(cluster_state, pod="default/twin", suggest=False).claims[0].name
        == "wanted"
    )
    assert (
        explain(cluster_state, claim="default/twin", suggest=False)
        .claims[0]
        .name
        == "twin"
    )


def test_nodes_differ_by_what_the_group_has_already() -> None:
    """A running pod of the group has a device of rail 1: node-1 has none, and node-2 has one."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {
            "name": "group",
            "namespace": "default",
            "annotations": {
                "dralloc.dev/across": f"matchAttribute={DRIVER}/rail"
            },
        },
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    }
    member: Json = {"schedulingGroup": {"podGroupName": "group"}}
    railed = [
        resource_slice(
            [device("gpu-0", {"rail": rail})],
            name=f"slice-{node_index}",
            pool=f"pool-{node_index}",
            nodeName=f"node-{node_index}",
        )
        for node_index, rail in enumerate((1, 2, 1))
    ]
    whole = cluster(
        [node(f"node-{node_index}") for node_index in range(3)],
        device_class(),
        railed,
        group,
        allocated("held", {"device": "gpu-0"}),
        pod("runs", "held", nodeName="node-0", **member),
        claim("wanted", request()),
        pod("waits", "wanted", **member),
    )
    explanation = explain(whole, pod="default/waits")
    assert "placed on node-2" in explanation.headline
    assert [group.nodes for group in explanation.groups] == [
        ("node-0",),
        ("node-1",),
    ]
