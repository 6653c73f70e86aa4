"""What is replaced with what."""

from __future__ import annotations

from typing import Any

import pytest

from dralloc.objects.redact import Redaction, plan_redaction
from dralloc.objects.redact.cel_literals import looks_inside
from dralloc.objects.redact.identifiers import Identifiers
from wire import (
    DRIVER,
    Json,
    allocated,
    claim,
    consumes,
    counters,
    device,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)


def redacted(*objects: Json) -> list[Json]:
    return planned(*objects)[0]


def planned(*objects: Json) -> tuple[list[Json], Redaction]:
    redaction = plan_redaction(objects)
    return [redaction.apply(document) for document in objects], redaction


def attribute(value: Any, name: str = "host") -> Json:
    return resource_slice([device("gpu-0", {name: value})])


def texts(value: Any, name: str = "host") -> Any:
    """What becomes of an attribute's text, beside a node ``node-0``."""
    (new_slice,) = redacted(attribute(value, name))
    (wire,) = new_slice["spec"]["devices"][0]["attributes"].values()
    return next(iter(wire.values()))


def selector(expression: str, *others: Json) -> str:
    """What becomes of a selector, beside nodes ``node-a`` and ``node-b``."""
    everywhere = resource_slice(gpus(1), allNodes=True)
    documents = redacted(
        node("node-a"),
        node("node-b"),
        *others,
        everywhere,
        device_class("gpu", expression),
    )
    text: str = documents[-1]["spec"]["selectors"][0]["cel"]["expression"]
    return text


def pool_names(*objects: Json) -> list[str]:
    return [
        document["spec"]["pool"]["name"]
        for document in redacted(*objects)
        if document["kind"] == "ResourceSlice"
    ]


def test_a_name_is_the_same_everywhere() -> None:
    held = allocated("held", {"device": "gpu-1", "pool": "rack-7"})
    where = {
        "nodeSelectorTerms": [
            {
                "matchFields": [
                    {
                        "key": "metadata.name",
                        "operator": "In",
                        "values": ["rack-7"],
                    }
                ]
            }
        ]
    }
    held["status"]["allocation"]["nodeSelector"] = where
    held["status"]["reservedFor"] = [
        {"resource": "pods", "name": "train", "uid": "u-1"}
    ]
    user = pod("train", "held", nodeName="rack-7")
    user["metadata"]["uid"] = "u-1"
    machine = node("rack-7")
    machine["metadata"]["labels"] = {
        "kubernetes.io/hostname": "rack-7",
        "kubernetes.io/arch": "amd64",
    }
    published = resource_slice(
        gpus(2), nodeName="rack-7", pool="rack-7", name="rack-7-gpu"
    )
    published["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Node", "name": "rack-7", "uid": "u-2"}
    ]
    new_node, new_slice, new_claim, new_pod = redacted(
        machine, published, held, user
    )
    assert new_node["metadata"]["name"] == "node-0001"
    assert new_node["metadata"]["labels"] == {
        "kubernetes.io/hostname": "node-0001",
        "kubernetes.io/arch": "amd64",
    }
    assert new_slice["metadata"]["name"] == "slice-0001"
    assert new_slice["metadata"]["ownerReferences"][0]["name"] == "node-0001"
    assert (
        new_slice["spec"]["nodeName"],
        new_slice["spec"]["pool"]["name"],
    ) == (
        "node-0001",
        "node-0001",
    )
    assert [
        new_device["name"] for new_device in new_slice["spec"]["devices"]
    ] == [
        "device-0001",
        "device-0002",
    ]
    allocation = new_claim["status"]["allocation"]
    assert (
        allocation["devices"]["results"][0]["pool"],
        allocation["devices"]["results"][0]["device"],
    ) == (
        "node-0001",
        "device-0002",
    )
    assert allocation["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0][
        "values"
    ] == ["node-0001"]
    (reserved,) = new_claim["status"]["reservedFor"]
    assert (reserved["name"], reserved["uid"]) == (
        new_pod["metadata"]["name"],
        new_pod["metadata"]["uid"],
    )
    assert new_pod["spec"]["nodeName"] == "node-0001"
    assert (
        new_pod["spec"]["resourceClaims"][0]["resourceClaimName"]
        == new_claim["metadata"]["name"]
        == "claim-0001"
    )


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        (["node-b", "node-a"], ["node-0002", "node-0001"]),
        (["z", "y"], ["pool-0002", "pool-0001"]),
        (
            [
                "node-b",
                "node-b-net",
                "node-a",
                "node-a-net",
                "node-a-opt",
                "fabric",
            ],
            [
                "node-0002",
                "node-0002-pool-0001",
                "node-0001",
                "node-0001-pool-0001",
                "node-0001-pool-0002",
                "node-0000-pool-0001",
            ],
        ),
    ],
)
def test_pools_keep_their_order(pools: list[str], expected: list[str]) -> None:
    slices = [
        resource_slice(pool=pool, name=f"s-{pool}", nodeName="node-a")
        for pool in pools
    ]
    new_names = pool_names(node("node-b"), node("node-a"), *slices)
    assert new_names == expected
    assert [pools.index(pool) for pool in sorted(pools)] == [
        new_names.index(name) for name in sorted(new_names)
    ]


def test_slices_keep_their_order() -> None:
    names = [f"s-{suffix}" for suffix in (10, 9, 2)]
    new_names = [
        document["metadata"]["name"]
        for document in redacted(*(resource_slice(name=name) for name in names))
    ]
    assert new_names == ["slice-0001", "slice-0003", "slice-0002"]


def test_ten_thousand_names_keep_their_order() -> None:
    nodes = [node(f"n{index:05}") for index in range(10001)]
    new_names = [document["metadata"]["name"] for document in redacted(*nodes)]
    assert new_names == sorted(new_names)
    assert new_names[0] == "node-00001"


def test_a_replacement_is_never_a_text_that_stays() -> None:
    machine, _ = redacted(node("a"), attribute("node-0001"))
    assert machine["metadata"]["name"] == "other-node-0001"


def test_the_default_namespace_stays() -> None:
    elsewhere = claim("b", request())
    elsewhere["metadata"]["namespace"] = "team"
    nowhere = claim("c", request())
    del nowhere["metadata"]["namespace"]
    new_claims = redacted(claim("a", request()), elsewhere, nowhere)
    assert [
        new_claim["metadata"].get("namespace") for new_claim in new_claims
    ] == [
        "default",
        "namespace-0001",
        None,
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("node-0", "node-0001"),
        (["node-0", "free"], ["node-0001", "free"]),
        (
            "GPU-0f1e2d3c-aaaa-4bbb-8ccc-0123456789ab",
            "GPU-00000000-0000-0000-0000-000000000001",
        ),
        (
            "MIG-GPU-0f1e2d3c-aaaa-4bbb-8ccc-0123456789ab/7/0",
            "MIG-GPU-00000000-0000-0000-0000-000000000001/7/0",
        ),
        ("1653923045678901", "0000000000000001"),
        ("60:5e:65:14:0f:10", "02:00:00:00:00:01"),
        ("b8:3f:d2:03:00:aa:bb:cc", "02:00:00:00:00:00:00:01"),
        ("192.168.155.224/19", "10.0.0.1/19"),
        ("fd00::17", "2001:db8::1"),
        ("0000:40:00.0", "0000:40:00.0"),
        ("pci0000:40", "pci0000:40"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"),
        ("", ""),
        (17, 17),
        (True, True),
    ],
)
def test_texts(given: Any, expected: Any) -> None:
    assert texts(given) == expected


def test_counters_are_called_after_other_nodes_and_devices() -> None:
    sets = [counters("gpu-0-counters", **{"links-rack-7": "4"})]
    drawing = device(
        "gpu-0",
        consumesCounters=consumes("gpu-0-counters", **{"links-rack-7": "1"}),
    )
    rows, devices, _ = redacted(
        resource_slice(sharedCounters=sets, name="a", count=2),
        resource_slice([drawing], name="b", count=2),
        node("rack-7"),
    )
    assert rows["spec"]["sharedCounters"] == [
        counters("device-0001-counters", **{"links-node-0002": "4"})
    ]
    assert devices["spec"]["devices"][0]["consumesCounters"] == consumes(
        "device-0001-counters", **{"links-node-0002": "1"}
    )


def test_equal_identifiers_stay_equal() -> None:
    identifiers = Identifiers()
    first, second = (
        f"GPU-0f1e2d3c-aaaa-4bbb-8ccc-00000000000{digit}" for digit in "ab"
    )
    assert (
        identifiers.replaced(first)
        == identifiers.replaced(first)
        != identifiers.replaced(second)
    )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (
            "device.attributes['d'].host == 'node-a'",
            "device.attributes['d'].host == \"node-0001\"",
        ),
        (
            'x == "node-b" || x == r"node-b"',
            'x == "node-0002" || x == "node-0002"',
        ),
        (
            'x in ["""node-a""", \'node\\x2da\']',
            'x in ["node-0001", "node-0001"]',
        ),
        (
            "x == 'node-a-1' || x == 'Node-a'",
            "x == \"node-0001-1\" || x == 'Node-a'",
        ),
        ("x.startsWith('pci/node-a.')", 'x.startsWith("pci/node-0001.")'),
        (
            "x == 'node-ab' || x == 'snode-a'",
            "x == 'node-ab' || x == 'snode-a'",
        ),
        ("x == 'it\\'s' // node-a", "x == 'it\\'s' //"),
        ("x == '// node-a'", 'x == "// node-0001"'),
        ("x == b'node-a'", 'x == b"node-0001"'),
        (f"device.driver == '{DRIVER}'", f"device.driver == '{DRIVER}'"),
        ("x == 'unfinished", "x == 'unfinished"),
        ("x == '\\q'", "x == '\\q'"),
    ],
)
def test_expressions(expression: str, expected: str) -> None:
    assert selector(expression) == expected


def test_words_that_expressions_may_name_stay() -> None:
    # A node is called as an attribute, another one as a driver.
    same = [node("host"), node(DRIVER), attribute("x")]
    text = f"device.attributes['{DRIVER}']['host'] == 'x' && device.driver == '{DRIVER}'"
    assert selector(text, *same) == text


@pytest.mark.parametrize(
    ("expression", "inside"),
    [
        ("x.startsWith('a')", True),
        ("x.matches('a.*')", True),
        ("size(x) > 3", True),
        ("cidr('10.0.0.0/8').containsIP(x)", True),
        ("x == 'no' + 'de'", True),
        ("x >= 'node-5'", True),
        ("'node-5' < x", True),
        ("y.join(',') == 'a,b'", True),
        ("int(x) > 5", True),
        ("x == '.startsWith('", False),
        ("x == 'a' // + 'b'", False),
        ("x == 'a' && 5 + y > 6", False),
        ("x == 'a' && has(y.z)", False),
    ],
)
def test_what_looks_inside_of_text(expression: str, inside: bool) -> None:
    assert looks_inside(expression) is inside


def test_a_selector_that_looks_inside_of_redacted_text_is_a_warning() -> None:
    text = f"device.attributes['{DRIVER}'].host.startsWith('node')"
    _, redaction = planned(attribute("node-0"), device_class("gpu", text))
    (warning,) = redaction.warnings()
    assert (
        "a selector looks inside of the text of host, which is redacted"
        in warning
    )
    _, redaction = planned(attribute("free"), device_class("gpu", text))
    assert list(redaction.warnings()) == []


def test_a_name_beside_text_that_stays_is_a_warning() -> None:
    """Only the literal is a name: the attribute has it in upper case, and stays."""
    text = f"device.attributes['{DRIVER}'].host.lowerAscii() == 'node-0'"
    redacted, redaction = planned(
        attribute("NODE-0"), device_class("gpu", text)
    )
    assert "'node-0001'" in str(redacted).replace('"', "'")
    assert "NODE-0" in str(redacted)
    (warning,) = redaction.warnings()
    assert warning.startswith(
        "a selector looks inside of text and names something, which is redacted"
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("node-0.example.com", "node-0001.example.com"),
        ("node-0/eth0", "node-0001/eth0"),
        ("node-01", "node-01"),
        ("host node-0, node-0-1", "host node-0001, node-0001-1"),
        (
            "node-0/GPU-0f1e2d3c-aaaa-4bbb-8ccc-0123456789ab",
            "node-0001/GPU-00000000-0000-0000-0000-000000000001",
        ),
    ],
)
def test_names_inside_of_longer_texts(given: str, expected: str) -> None:
    new_slice, _ = redacted(attribute(given), node("node-0"))
    assert (
        new_slice["spec"]["devices"][0]["attributes"]["host"]["string"]
        == expected
    )


def test_a_name_inside_of_a_text_that_stays_is_a_warning() -> None:
    _, redaction = planned(
        node("acme-7"), device_class("acme-7-gpu"), device_class("acme-70")
    )
    assert list(redaction.warnings()) == [
        'a name is left inside of the text "acme-7-gpu"'
    ]


def test_a_part_of_a_drivers_name_is_no_secret() -> None:
    text = "device.driver.endsWith('.example.com') && x == 'example'"
    elsewhere = claim("x", request())
    elsewhere["metadata"]["namespace"] = "example"
    assert (
        selector(text, elsewhere)
        == "device.driver.endsWith('.example.com') && x == \"namespace-0001\""
    )


def test_labels_of_nodes_stay_if_they_are_asked_for() -> None:
    machine = node("a")
    labels = {
        "team": "red",
        "rack": "r1",
        "cores": "64",
        "topology.kubernetes.io/zone": "z",
        "seen-by": "a",
    }
    machine["metadata"]["labels"] = labels
    expressions = [
        {"key": "cores", "operator": "Gt", "values": ["8"]},
        {"key": "seen-by", "operator": "In", "values": ["a"]},
    ]
    selected = resource_slice(
        gpus(1),
        nodeSelector={"nodeSelectorTerms": [{"matchExpressions": expressions}]},
    )
    user = pod("8", nodeSelector={"rack": "r1"})
    new_node, new_slice, new_pod = redacted(machine, selected, user)
    assert new_node["metadata"]["labels"] == {
        "key-0002": "r1",
        "key-0001": "64",
        "topology.kubernetes.io/zone": "z",
        "key-0003": "node-0001",
    }
    new_expressions = new_slice["spec"]["nodeSelector"]["nodeSelectorTerms"][0][
        "matchExpressions"
    ]
    assert [expression["key"] for expression in new_expressions] == [
        "key-0001",
        "key-0003",
    ]
    assert [expression["values"] for expression in new_expressions] == [
        ["8"],
        ["node-0001"],
    ]
    assert new_pod["spec"]["nodeSelector"] == {"key-0002": "r1"}


def test_labels_of_pods_stay_equal_and_others_go() -> None:
    first, second, third = (pod(name) for name in "abc")
    for member, gang in ((first, "red"), (second, "blue"), (third, "red")):
        member["metadata"]["labels"] = {"gang": gang}
    lone = claim("x", request())
    lone["metadata"]["labels"] = {"team": "red"}
    *pods, new_claim = redacted(first, second, third, lone)
    assert [new_pod["metadata"]["labels"]["key-0001"] for new_pod in pods] == [
        "label-0002",
        "label-0001",
        "label-0002",
    ]
    assert "labels" not in new_claim["metadata"]


def test_labels_that_other_pods_ask_for_stay_the_same_labels() -> None:
    lonely = {
        "labelSelector": {"matchLabels": {"acme/team": "red"}},
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "acme/stage", "operator": "In", "values": ["prod"]}
            ]
        },
        "namespaces": ["lab"],
        "topologyKey": "acme/rack",
    }
    user = pod(
        "a",
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [lonely]
            }
        },
    )
    other = pod("b")
    other["metadata"] |= {"namespace": "lab", "labels": {"acme/team": "red"}}
    labels = {
        "acme/stage": "prod",
        "acme/owner": "x",
        "kubernetes.io/metadata.name": "lab",
    }
    home = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "lab", "labels": labels},
    }
    machine = node("n")
    machine["metadata"]["labels"] = {"acme/rack": "r7", "acme/team": "blue"}
    new_user, new_other, new_home, new_node = redacted(
        user, other, home, machine
    )
    (term,) = new_user["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    rack, stage, team = (f"key-000{index}" for index in (1, 2, 3))
    assert term == {
        "labelSelector": {"matchLabels": {team: "label-0002"}},
        "namespaceSelector": {
            "matchExpressions": [
                {"key": stage, "operator": "In", "values": ["label-0001"]}
            ]
        },
        "namespaces": ["namespace-0001"],
        "topologyKey": rack,
    }
    assert new_other["metadata"]["labels"] == {team: "label-0002"}
    assert new_home["metadata"]["labels"] == {
        stage: "label-0001",
        "kubernetes.io/metadata.name": "namespace-0001",
    }
    assert new_node["metadata"]["labels"] == {rack: "r7", team: "blue"}


def test_pods_of_jobs_are_still_selected_by_the_name_of_their_job() -> None:
    named = {"batch.kubernetes.io/job-name": "train"}
    apart = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "rack", "labelSelector": {"matchLabels": named}}
        ]
    }
    template = {"spec": {"affinity": {"podAntiAffinity": apart}}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"template": template},
    }
    made = pod("train-abc")
    made["metadata"]["labels"] = {"job-name": "train"}
    new_job, new_pod = redacted(job, made)
    new_name = new_job["metadata"]["name"]
    assert new_name == "owner-0001"
    affinity = new_job["spec"]["template"]["spec"]["affinity"]
    [term] = affinity["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert term["labelSelector"]["matchLabels"] == dict.fromkeys(
        named, new_name
    )
    assert new_pod["metadata"]["labels"] == {"job-name": new_name}


def test_images_and_ports_of_nodes() -> None:
    ports = [
        {"containerPort": 80, "hostPort": 80, "hostIP": ip}
        for ip in ("0.0.0.0", "10.1.2.3")
    ]
    user = pod(
        "a",
        containers=[
            {"name": "c", "image": "acme.example.com/train:1", "ports": ports}
        ],
    )
    machine = {
        **node("n"),
        "status": {
            "images": [{"names": ["acme.example.com/train:1"], "sizeBytes": 5}]
        },
    }
    new_pod, new_node = redacted(user, machine)
    (container,) = new_pod["spec"]["containers"]
    assert new_node["status"]["images"] == [
        {"names": ["image-0001"], "sizeBytes": 5}
    ]
    assert container["image"] == "image-0001"
    assert [port["hostIP"] for port in container["ports"]] == [
        "0.0.0.0",
        "address-0001",
    ]


def test_what_only_drivers_read_is_emptied() -> None:
    opaque = {"opaque": {"driver": DRIVER, "parameters": {"password": "x"}}}
    given = claim(
        "a",
        request(),
        config=[opaque],
        status={"devices": [{"driver": DRIVER, "data": {"ip": "10.0.0.1"}}]},
    )
    new_claim, class_ = redacted(given, device_class("gpu", config=[opaque]))
    for config in (
        new_claim["spec"]["devices"]["config"],
        class_["spec"]["config"],
    ):
        assert config == [{"opaque": {"driver": DRIVER, "parameters": {}}}]
    assert new_claim["status"]["devices"] == [{"driver": DRIVER}]


def test_names_of_the_api_stay() -> None:
    given = claim(
        "a",
        request("gpu-0", "true"),
        constraints=[{"requests": ["gpu-0"], "matchAttribute": "a.b/numa"}],
    )
    new_claim, _ = redacted(given, resource_slice(gpus(1)))
    assert new_claim["spec"] == given["spec"]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_older_versions(version: str) -> None:
    inner = {"attributes": {"host": {"string": "node-0"}}}
    wire = (
        {"name": "gpu-0", "basic": inner}
        if version == "v1beta1"
        else {"name": "gpu-0", **inner}
    )
    published = resource_slice([wire]) | {
        "apiVersion": f"resource.k8s.io/{version}"
    }
    exact = {
        "deviceClassName": "gpu",
        "selectors": [{"cel": {"expression": "x == 'node-0'"}}],
    }
    wanted = (
        {"name": "gpu", **exact}
        if version == "v1beta1"
        else {"name": "gpu", "exactly": exact}
    )
    asked = claim("a", wanted) | {"apiVersion": f"resource.k8s.io/{version}"}
    text = str(redacted(published, asked))
    assert "node-0'" not in text
    assert text.count("node-0001") == 3


def test_templates_and_owners_of_pods() -> None:
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": pod("", "a", nodeName="n")["spec"],
    }
    owner: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "team",
            "annotations": {"secret": "x"},
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "x"}},
            "template": template,
        },
    }
    (new_owner,) = redacted(owner)
    assert new_owner == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "owner-0001", "namespace": "namespace-0001"},
        "spec": {
            "replicas": 2,
            "template": {
                "metadata": {"labels": {"app": "label-0001"}},
                "spec": {
                    "resourceClaims": [
                        {"name": "c0", "resourceClaimName": "claim-0001"}
                    ],
                    "nodeName": "node-0001",
                },
            },
        },
    }


def test_taint_rules_and_groups() -> None:
    rule: Json = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "drain-node-0"},
        "spec": {
            "deviceSelector": {
                "driver": DRIVER,
                "pool": "pool-0",
                "device": "gpu-1",
            },
            "taint": {
                "key": "example.com/broken",
                "value": "node-0",
                "effect": "NoSchedule",
            },
        },
        "status": {"conditions": [{"message": "evicting pod team/train"}]},
    }
    group: Json = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "ring", "namespace": "team"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "podGroupTemplateRef": {"workloadName": "acme"},
            "resourceClaims": [
                {"name": "x", "resourceClaimTemplateName": "wide"}
            ],
        },
    }
    member = pod(
        "train", schedulingGroup={"podGroupName": "ring"}, nodeName="node-0"
    )
    _, new_rule, new_group, new_pod = redacted(
        resource_slice(gpus(2)), rule, group, member
    )
    assert new_rule["metadata"]["name"] == "rule-0001"
    assert new_rule["spec"] == {
        "deviceSelector": {
            "driver": DRIVER,
            "pool": "pool-0001",
            "device": "device-0002",
        },
        "taint": {
            "key": "example.com/broken",
            "value": "node-0001",
            "effect": "NoSchedule",
        },
    }
    assert "status" not in new_rule
    assert new_group["spec"] == {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "resourceClaims": [
            {"name": "x", "resourceClaimTemplateName": "template-0001"}
        ],
    }
    assert (
        new_pod["spec"]["schedulingGroup"]["podGroupName"]
        == new_group["metadata"]["name"]
        == "group-0001"
    )


def test_the_given_objects_are_not_changed() -> None:
    objects = [node("a"), attribute("a"), allocated("x", {"device": "gpu-0"})]
    before = str(objects)
    redacted(*objects)
    assert str(objects) == before
