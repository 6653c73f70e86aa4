"""Devices that nobody reaches, and requests that no device serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dralloc.lint.validate import RULES, Level, Violation, validate
from dralloc.objects.features import ALL_FEATURES
from lint.validate.objects import CONFIG, UID, edited
from wire import (
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

EXACTLY = "spec.devices.requests[0].exactly"
DEVICES = [device("small", {"size": 1}), device("large", {"size": 2})]
SLICE = resource_slice(DEVICES)
SIZE = "device.attributes['gpu.example.com'].size"


def violations(*objects: Json) -> list[Violation]:
    report = list(validate(cluster(*objects)))
    assert [
        violation for violation in report if violation.level is Level.ERROR
    ] == []
    return report


def found(*objects: Json) -> list[tuple[str, str]]:
    """Rule and path of everything that is said."""
    return [
        (violation.rule, violation.path) for violation in violations(*objects)
    ]


def asking(*expressions: str, **fields: Any) -> Json:
    return claim("c", request("gpu", *expressions, **fields))


def test_a_request_that_can_be_served() -> None:
    assert found(SLICE, device_class(), asking(f"{SIZE} > 1")) == []


def test_the_first_selector_that_excludes_all_is_named() -> None:
    claim_ = asking("true", f"{SIZE} < 2", f"{SIZE} > 1", "false")
    (only,) = violations(SLICE, device_class(), claim_)
    assert (only.rule, only.path) == (
        "request-no-device",
        f"{EXACTLY}.selectors[2].cel.expression",
    )
    assert (
        only.message
        == "accepts none of 1 device that the selectors before leave"
    )


def test_a_class_without_devices() -> None:
    assert found(SLICE, device_class("gpu", "false"), asking()) == [
        ("device-unreached", "spec.devices[0]"),
        ("class-no-device", "spec.selectors"),
        ("request-no-device", f"{EXACTLY}.deviceClassName"),
    ]


def test_a_class_that_does_not_exist() -> None:
    assert found(SLICE, device_class("other"), asking()) == [
        ("request-class-missing", f"{EXACTLY}.deviceClassName")
    ]
    assert found(SLICE, asking()) == [
        ("request-class-unknown", f"{EXACTLY}.deviceClassName")
    ]


def test_devices_that_no_class_reaches_are_named_once_for_each_slice() -> None:
    (only,) = violations(
        SLICE,
        device_class("gpu", "device.driver == 'nic.example.com' || false"),
    )[:1]
    assert (only.rule, only.path, only.level) == (
        "device-unreached",
        "spec.devices[0]",
        Level.INFO,
    )
    assert (
        only.message
        == 'no class accepts "small" and 1 more devices of the slice'
    )


def test_taints_that_are_not_tolerated() -> None:
    tainted = resource_slice(
        gpus(
            2,
            taints=[{"key": "broken", "value": "yes", "effect": "NoSchedule"}],
        )
    )
    assert found(tainted, device_class(), asking()) == [
        ("request-untolerated", f"{EXACTLY}.tolerations")
    ]
    tolerant = asking(tolerations=[{"key": "broken", "operator": "Exists"}])
    assert found(tainted, device_class(), tolerant) == []


def test_taints_of_rules_count() -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {
            "deviceSelector": {},
            "taint": {"key": "broken", "effect": "NoSchedule"},
        },
    }
    assert found(SLICE, device_class(), rule, asking()) == [
        ("request-untolerated", f"{EXACTLY}.tolerations")
    ]


@pytest.mark.parametrize(
    ("amount", "served"), [("40Gi", True), ("41Gi", False)]
)
def test_capacity_that_no_device_has(amount: str, served: bool) -> None:
    slice_ = resource_slice(gpus(1, capacity={"memory": {"value": "40Gi"}}))
    expected = (
        [] if served else [("request-capacity", f"{EXACTLY}.capacity.requests")]
    )
    assert (
        found(
            slice_,
            device_class(),
            asking(capacity={"requests": {"memory": amount}}),
        )
        == expected
    )


def test_capacity_of_a_counter() -> None:
    consumed = [
        {
            "counterSet": "set-0",
            "counters": {"width": {"valueFrom": {"capacityKey": "width"}}},
        }
    ]
    pool = [
        resource_slice(
            name="sets", count=2, sharedCounters=[counters("set-0", width="10")]
        ),
        resource_slice(
            [device("x", consumesCounters=consumed)], name="devices", count=2
        ),
    ]
    assert (
        found(
            *pool, device_class(), asking(capacity={"requests": {"width": "5"}})
        )
        == []
    )
    assert found(
        *pool, device_class(), asking(capacity={"requests": {"height": "5"}})
    ) == [("request-capacity", f"{EXACTLY}.capacity.requests")]


def test_more_devices_than_any_node_has() -> None:
    nodes = [
        resource_slice(gpus(2), name=name, pool=name, nodeName=name)
        for name in ("node-0", "node-1")
    ]
    assert found(*nodes, device_class(), asking(count=2)) == []
    assert found(*nodes, device_class(), asking(count=3)) == [
        ("request-too-many", f"{EXACTLY}.count")
    ]


def test_a_device_that_no_node_reaches() -> None:
    assert found(node("node-1"), SLICE, device_class(), asking()) == [
        ("slice-node-missing", "spec.nodeName"),
        ("request-too-many", EXACTLY),
    ]


def test_an_alternative_that_is_never_taken_is_a_remark() -> None:
    choice = claim(
        "c", first_available("gpu", sub("huge", f"{SIZE} > 2"), sub("any"))
    )
    assert found(SLICE, device_class(), choice) == [
        (
            "alternative-no-device",
            "spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression",
        )
    ]


def test_only_hopeless_alternatives_are_a_warning() -> None:
    choice = claim(
        "c",
        first_available(
            "gpu", sub("huge", f"{SIZE} > 2"), sub("tiny", f"{SIZE} < 1")
        ),
    )
    assert [rule for rule, _ in found(SLICE, device_class(), choice)] == [
        "request-no-device"
    ] * 2


def test_selectors_that_fail() -> None:
    assert found(SLICE, device_class(), asking(f"{SIZE} > 1 || {SIZE}x")) == [
        ("selector-fails", f"{EXACTLY}.selectors[0].cel.expression")
    ]
    bad = device_class(
        "bad", "device.attributes['gpu.example.com'].colour == 'red'"
    )
    assert [rule for rule, _ in found(SLICE, device_class(), bad)] == [
        "class-selector-fails",
        "class-no-device",
    ]


def test_constraints_on_attributes_that_no_device_has() -> None:
    both = [request("gpu"), request("nic", f"{SIZE} == 1")]
    match = {"matchAttribute": "gpu.example.com/numa"}
    assert found(
        SLICE, device_class(), claim("c", *both, constraints=[match])
    ) == [
        (
            "constraint-attribute-missing",
            "spec.devices.constraints[0].matchAttribute",
        ),
        (
            "constraint-attribute-missing",
            "spec.devices.constraints[0].matchAttribute",
        ),
    ]
    distinct = {
        "requests": ["nic"],
        "distinctAttribute": "gpu.example.com/numa",
    }
    assert found(
        SLICE, device_class(), claim("c", *both, constraints=[distinct])
    ) == [
        (
            "constraint-attribute-missing",
            "spec.devices.constraints[0].distinctAttribute",
        )
    ]
    known = {"matchAttribute": "gpu.example.com/size"}
    assert (
        found(SLICE, device_class(), claim("c", *both, constraints=[known]))
        == []
    )


def test_what_is_allocated_is_not_asked_again() -> None:
    assert found(
        SLICE,
        device_class("gpu", f"{SIZE} < 2"),
        allocated("c", {"device": "small"}),
    ) == [("device-unreached", "spec.devices[1]")]


def test_what_is_not_published_any_more() -> None:
    assert found(SLICE, device_class(), allocated("c", {"device": "gone"})) == [
        ("allocation-drift", "status.allocation.devices.results[0].device")
    ]


def partitions(*sizes: str) -> list[Json]:
    devices = [
        device(
            f"part-{size.lower()}",
            {"size": size},
            consumesCounters=consumes("set-0", memory=size),
        )
        for size in sizes
    ]
    sets = resource_slice(
        name="sets", count=2, sharedCounters=[counters("set-0", memory="40Gi")]
    )
    return [sets, resource_slice(devices, name="parts", count=2)]


def test_large_devices_before_small_ones() -> None:
    (only,) = violations(
        *partitions("10Gi", "40Gi", "20Gi"), device_class(), asking()
    )
    assert (only.rule, only.path, only.level) == (
        "device-order",
        "spec.devices[1]",
        Level.WARNING,
    )
    assert only.message.startswith(
        '"part-40gi" takes more of the same counters than "part-20gi" behind it'
    )
    assert (
        found(*partitions("10Gi", "20Gi", "40Gi"), device_class(), asking())
        == []
    )


def test_order_does_not_matter_if_nothing_accepts_both() -> None:
    only_small = asking(f"{SIZE} == '20Gi'")
    assert found(*partitions("40Gi", "20Gi"), device_class(), only_small) == []
    assert found(*partitions("40Gi", "20Gi"), device_class()) == [
        ("device-order", "spec.devices[0]")
    ]


def test_attributes_of_two_types() -> None:
    mixed = resource_slice(
        [device("a", {"numa": 1}), device("b", {"gpu.example.com/numa": "1"})]
    )
    assert found(mixed) == [
        ("attribute-type", "spec.devices[1].attributes[gpu.example.com/numa]")
    ]
    assert (
        found(
            resource_slice(
                [device("a", {"x": "1"}), device("b", {"x": ["1", "2"]})]
            )
        )
        == []
    )


def test_a_node_selector_that_selects_no_node() -> None:
    terms = [
        {
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["a"]}
            ]
        }
    ]
    slice_ = resource_slice(gpus(1), nodeSelector={"nodeSelectorTerms": terms})
    assert found(node("n", zone="b"), slice_) == [
        ("slice-no-node", "spec.nodeSelector")
    ]
    assert found(node("n", zone="a"), slice_) == []


def test_a_device_with_two_terms() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    device_object = device(
        "x", nodeSelector={"nodeSelectorTerms": [term, term]}
    )
    assert found(
        resource_slice([device_object], perDeviceNodeSelection=True)
    ) == [
        (
            "device-node-selector-terms",
            "spec.devices[0].nodeSelector.nodeSelectorTerms",
        )
    ]


def test_two_classes_for_an_extended_resource() -> None:
    both = [
        edited(
            device_class(name), {"spec.extendedResourceName": "example.com/gpu"}
        )
        for name in "ab"
    ]
    assert found(*both) == [
        ("class-extended-resource-unique", "spec.extendedResourceName")
    ]


@pytest.mark.parametrize(
    ("edit", "rule", "path"),
    [
        (
            {f"{EXACTLY}.tolerations": [{"key": "a", "value": "b"}] * 17},
            "toleration-limit",
            f"{EXACTLY}.tolerations",
        ),
        (
            {f"{EXACTLY}.tolerations": [{"value": "b"}]},
            "toleration-no-key",
            f"{EXACTLY}.tolerations[0].operator",
        ),
        (
            {f"{EXACTLY}.capacity": {"requests": {"a-b": "1"}}},
            "request-capacity-name",
            f"{EXACTLY}.capacity.requests",
        ),
        (
            {f"{EXACTLY}.count": 33},
            "request-result-limit",
            "spec.devices.requests",
        ),
        (
            {
                "spec.devices.constraints": [
                    {"matchAttribute": "a.io/b", "distinctAttribute": "a.io/c"}
                ]
            },
            "constraint-both",
            "spec.devices.constraints[0].distinctAttribute",
        ),
        (
            {
                "metadata.ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "p"}
                ]
            },
            "metadata-owner-uid",
            "metadata.ownerReferences.uid",
        ),
    ],
)
def test_warnings_about_one_claim(edit: Json, rule: str, path: str) -> None:
    assert found(edited(asking(), edit)) == [
        (rule, path),
        ("request-class-unknown", f"{EXACTLY}.deviceClassName"),
    ]


def admin(namespace: Json | None) -> list[tuple[str, str]]:
    objects = [
        asking(adminAccess=True),
        device_class(),
        *([namespace] if namespace else []),
    ]
    return [
        (violation.rule, violation.path)
        for violation in validate(cluster(*objects))
    ]


def namespace(**labels: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "labels": labels},
    }


def test_admin_access_needs_a_label_on_the_namespace() -> None:
    path = f"{EXACTLY}.adminAccess"
    assert (
        admin(namespace(**{"resource.kubernetes.io/admin-access": "true"}))
        == []
    )
    assert admin(
        namespace(**{"resource.kubernetes.io/admin-access": "True"})
    ) == [("admin-access", path)]
    assert admin(namespace()) == [("admin-access", path)]
    assert admin(None) == [("admin-access-unknown", path)]


def test_pods_that_refer_to_what_is_not_there() -> None:
    missing = pod("p", "gone")
    assert found(missing) == [
        ("pod-claim", "spec.resourceClaims[0].resourceClaimName")
    ]
    from_template = edited(
        missing,
        {
            "spec.resourceClaims[0]": {
                "name": "a",
                "resourceClaimTemplateName": "t",
            }
        },
    )
    assert found(from_template) == [
        ("pod-template", "spec.resourceClaims[0].resourceClaimTemplateName")
    ]


def test_pods_of_an_owner_are_looked_at_once() -> None:
    template = {
        "spec": {
            "resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]
        }
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": 3, "template": template},
    }
    assert found(deployment) == [
        ("pod-template", "spec.resourceClaims[0].resourceClaimTemplateName")
    ]


def test_pods_of_an_owner_that_has_two_sorts_are_all_looked_at() -> None:
    """A master and workers, say, or jobs of two API groups with one name."""

    def replicas(template: str, container_claim: str) -> Json:
        container = {
            "name": "c",
            "resources": {"claims": [{"name": container_claim}]},
        }
        entry = {"name": "a", "resourceClaimTemplateName": template}
        spec = {"containers": [container], "resourceClaims": [entry]}
        return {"replicas": 2, "template": {"spec": spec}}

    sorts = {"Master": replicas("t", "a"), "Worker": replicas("u", "b")}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "j"},
        "spec": {"pytorchReplicaSpecs": sorts},
    }
    assert sorted(
        (violation.rule, violation.finding.subject)
        for violation in validate(cluster(job))
    ) == [
        ("container-claim", "Pod j-worker-0"),
        ("pod-template", "Pod j-master-0"),
        ("pod-template", "Pod j-worker-0"),
    ]


def test_pods_that_the_api_server_refuses() -> None:
    neither = edited(pod("p"), {"spec.resourceClaims": [{"name": "a"}]})
    unknown = edited(
        pod("p"),
        {
            "spec.containers": [
                {"name": "x", "resources": {"claims": [{"name": "a"}]}}
            ]
        },
    )
    said = [
        [
            (violation.rule, violation.path)
            for violation in validate(cluster(pod_object))
        ]
        for pod_object in (neither, unknown)
    ]
    assert said == [
        [("pod-claim-source", "spec.resourceClaims[0]")],
        [("container-claim", "spec.containers[0].resources.claims[0]")],
    ]


def test_containers_that_name_an_unknown_request() -> None:
    uses = [{"name": "c0", "request": "nic"}]
    wrong = edited(
        pod("p", "c"),
        {"spec.initContainers": [{"name": "x", "resources": {"claims": uses}}]},
    )
    assert found(wrong, asking(), device_class()) == [
        (
            "container-request",
            "spec.initContainers[0].resources.claims[0].request",
        )
    ]


def test_claims_made_from_templates_are_not_looked_at_beside_them() -> None:
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"spec": asking("false")["spec"]},
    }
    user = edited(
        pod("p"),
        {
            "spec.resourceClaims": [
                {"name": "a", "resourceClaimTemplateName": "t"}
            ]
        },
    )
    assert found(SLICE, device_class(), template, user) == [
        (
            "request-no-device",
            "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression",
        )
    ]


def test_features_decide_what_an_expression_may_use() -> None:
    cluster_object = cluster(
        device_class("gpu", "device.allowMultipleAllocations == true")
    )
    assert validate(cluster_object) == ()
    off = validate(
        cluster_object, ALL_FEATURES.switched({"ConsumableCapacity": False})
    )
    assert [(violation.rule, violation.path) for violation in off] == [
        ("selector-compile", "spec.selectors[0].cel.expression")
    ]


def test_the_worst_comes_first_for_each_object() -> None:
    bad = edited(
        asking(count=40),
        {
            f"{EXACTLY}.deviceClassName": "a b",
            "spec.devices.config": [{**CONFIG, "requests": [UID]}],
        },
    )
    levels = [
        violation.level for violation in validate(cluster(bad, device_class()))
    ]
    assert levels == sorted(levels, key=lambda level: level.rank)
    assert {Level.ERROR, Level.WARNING} <= set(levels)


def test_every_warning_and_remark_is_told_in_some_test() -> None:
    texts = "".join(
        path.read_text() for path in Path(__file__).parent.glob("*.py")
    )
    missing = [
        rule.id
        for rule in RULES
        if rule.level is not Level.ERROR and f'"{rule.id}"' not in texts
    ]
    assert missing == []
