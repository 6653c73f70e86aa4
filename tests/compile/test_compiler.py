"""From a cluster to a problem: which demands there are, in which order, with which nodes."""

from __future__ import annotations

import pytest

from dralloc.compile.compiler import compile_cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.features import Features
from dralloc.problem import AlternativeIndex, DeviceIndex
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    device_class,
    first_available,
    gpus,
    node,
    pod,
    request,
    resource_slice,
    sub,
)


def test_pods_and_claims_without_a_pod_are_demands() -> None:
    given = cluster(
        node(),
        device_class(),
        claim("a", request()),
        claim("b", request()),
        claim("c", request()),
        pod("p", "a", "b"),
    )
    demands = compile_cluster(given).problem.demands
    assert [
        (
            demand.key.name,
            [demand_claim.key.name for demand_claim in demand.claims],
        )
        for demand in demands
    ] == [
        ("p", ["a", "b"]),
        ("c", ["c"]),
    ]


def test_nothing_to_do_for_allocated_claims_gated_pods_and_pods_without_claims() -> (
    None
):
    given = cluster(
        node(),
        device_class(),
        allocated("done", {"device": "gpu-0"}),
        claim("waiting", request()),
        pod("p", "done"),
        pod("gated", "waiting", schedulingGates=[{"name": "later"}]),
        pod("plain"),
    )
    assert compile_cluster(given).problem.demands == ()


def test_a_weight_is_more_than_all_of_lower_priority_together() -> None:
    claims = [claim(name, request()) for name in "abcd"]
    pods = [
        pod(name, name, priority=priority)
        for name, priority in zip("abcd", (5, 1000, 5, 0), strict=True)
    ]
    given = cluster(node(), device_class(), claims, pods)
    strict = compile_cluster(given).problem.demands
    assert [(demand.key.name, demand.weight) for demand in strict] == [
        ("b", 6),
        ("a", 2),
        ("c", 2),
        ("d", 1),
    ]
    ranked = compile_cluster(given, priorities="ranked").problem.demands
    assert [(demand.key.name, demand.weight) for demand in ranked] == [
        ("b", 3),
        ("a", 2),
        ("c", 2),
        ("d", 1),
    ]


def test_only_attributes_that_constraints_name_are_kept() -> None:
    wanted = claim(
        "a",
        request(),
        constraints=[{"matchAttribute": "gpu.example.com/index"}],
    )
    problem = compile_cluster(
        cluster(node(), device_class(), resource_slice(gpus(1)), wanted)
    ).problem
    assert problem.devices[DeviceIndex(0)].attributes == {
        "gpu.example.com/index": frozenset({("int", 0)})
    }
    problem = compile_cluster(
        cluster(
            node(),
            device_class(),
            resource_slice(gpus(1)),
            claim("a", request()),
        )
    ).problem
    assert problem.devices[DeviceIndex(0)].attributes == {}


def test_named_nodes_are_the_only_ones_in_the_named_order() -> None:
    given = cluster(node("node-0"), node("node-1"), node("node-2"))
    assert [
        problem_node.name
        for problem_node in compile_cluster(
            given, nodes=["node-2", "node-0"]
        ).problem.nodes
    ] == [
        "node-2",
        "node-0",
    ]
    with pytest.raises(DrallocError, match='node "nowhere" does not exist'):
        compile_cluster(given, nodes=["nowhere"])


def test_a_pod_that_is_bound_already_stays_on_its_node() -> None:
    given = cluster(
        node("node-0"),
        node("node-1"),
        device_class(),
        claim("a", request()),
        pod("p", "a", nodeName="node-1"),
    )
    (demand,) = compile_cluster(given).problem.demands
    assert demand.nodes == (1,)


def test_required_affinity_restricts_the_nodes() -> None:
    terms = [
        {
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["b"]}
            ]
        }
    ]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": terms
            }
        }
    }
    given = cluster(
        node("node-0", zone="a"),
        node("node-1", zone="b"),
        claim("a", request()),
        pod("p", "a", affinity=affinity),
    )
    (demand,) = compile_cluster(given).problem.demands
    assert demand.nodes == (1,)


def test_equal_requests_share_their_verdicts() -> None:
    selector = "device.attributes['gpu.example.com'].index == 0"
    claims = [claim(name, request("x", selector)) for name in "ab"]
    compiled = compile_cluster(
        cluster(node(), device_class(), resource_slice(gpus(2)), claims)
    )
    assert compiled.table.selects(AlternativeIndex(0), DeviceIndex(1)) is False
    assert compiled.table._selected[0] is compiled.table._selected[1]


def test_equal_claims_have_alternatives_of_their_own_and_their_names_in_errors() -> (
    None
):
    wanted = [
        first_available(
            "r",
            sub("a", "device.attributes['d'].missing == 1"),
            sub("b", count=2),
        ),
        request("s"),
    ]
    given = cluster(
        node(),
        device_class(),
        resource_slice(gpus(1)),
        [claim(name, *wanted) for name in "abc"],
        claim("d", wanted[1]),
    )
    problem = compile_cluster(given).problem
    asked = [list(demand.alternatives()) for demand in problem.demands]
    assert [
        alternative.index
        for alternatives in asked
        for alternative in alternatives
    ] == list(range(10))
    assert [
        [
            (str(alternative.name), alternative.rank, alternative.count)
            for alternative in alternatives
        ]
        for alternatives in asked[1:3]
    ] == [[("r/a", 0, 1), ("r/b", 1, 2), ("s", 0, 1)]] * 2
    errors = [
        str(
            problem.eligibility.selects(alternatives[0].index, DeviceIndex(0))
        ).split(":")[0]
        for alternatives in asked[:3]
    ]
    assert errors == ["claim default/a", "claim default/b", "claim default/c"]


def test_equal_claims_that_can_never_be_served_say_so_for_themselves() -> None:
    given = cluster(
        node(),
        device_class(),
        [claim(name, request(device_class="none")) for name in "ab"],
    )
    defects = [
        alternative.defect
        for demand in compile_cluster(given).problem.demands
        for alternative in demand.alternatives()
    ]
    assert [defect.split(",")[0] for defect in defects] == [
        "claim default/a",
        "claim default/b",
    ]


@pytest.mark.parametrize(
    ("toleration", "homes"),
    [
        ({"operator": "Exists"}, None),
        (
            {
                "key": "node.kubernetes.io/unschedulable",
                "operator": "Exists",
                "effect": "NoSchedule",
            },
            None,
        ),
        ({"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, (1,)),
    ],
)
def test_cordoned_nodes_are_for_pods_that_tolerate_it(
    toleration: Json, homes: tuple[int, ...] | None
) -> None:
    cordoned = {**node("node-0"), "spec": {"unschedulable": True}}
    wants = pod("p", "a", tolerations=[toleration])
    problem = compile_cluster(
        cluster(
            cordoned,
            node("node-1"),
            device_class(),
            claim("a", request()),
            wants,
        )
    ).problem
    assert [demand.nodes for demand in problem.demands] == [homes]


def test_pods_of_a_daemon_set_have_a_node_each_cordoned_or_not() -> None:
    template = {
        "spec": {
            "containers": [],
            "resourceClaims": [
                {"name": "gpu", "resourceClaimTemplateName": "one"}
            ],
        }
    }
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"template": template},
    }
    claim_template = {
        **claim("one"),
        "kind": "ResourceClaimTemplate",
        "spec": {"spec": claim("one", request())["spec"]},
    }
    cordoned = {**node("node-1"), "spec": {"unschedulable": True}}
    problem = compile_cluster(
        cluster(node(), cordoned, device_class(), claim_template, daemon_set)
    ).problem
    assert [(demand.key.name, demand.nodes) for demand in problem.demands] == [
        ("agent-node-0", (0,)),
        ("agent-node-1", (1,)),
    ]


def test_the_version_of_the_nodes_is_noticed() -> None:
    older = node()
    older["status"] = {"nodeInfo": {"kubeletVersion": "v1.35.2"}}
    source = cluster(older, device_class(), resource_slice(gpus(1)))
    [finding] = compile_cluster(source).findings
    assert finding.rule.startswith(
        "the nodes run Kubernetes 1.35, where DRAPartitionableDevices, "
    )
    assert finding.rule.endswith(
        "are off by default; --kubernetes 1.35 answers as that version does"
    )
    assert not compile_cluster(
        source, kubernetes="1.35", features=Features.of_kubernetes("1.35")
    ).findings
    older["status"]["nodeInfo"]["kubeletVersion"] = "v1.31.0-eks"
    [finding] = compile_cluster(cluster(older)).findings
    assert "Kubernetes 1.31, whose feature gates are not known" in finding.rule
    older["status"]["nodeInfo"]["kubeletVersion"] = "unknown"
    assert not compile_cluster(cluster(older)).findings
