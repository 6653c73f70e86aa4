"""Pods that are placed all or none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from dralloc import Mode, allocate
from dralloc.check import check
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.compiler.demands import MAX_CONSUMERS
from dralloc.compile.write import allocated_claims
from dralloc.objects.cluster import Cluster
from dralloc.objects.features import ALL_FEATURES
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def group(name: str = "group", version: str = "v1alpha3", **spec: Any) -> Json:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec or GANG,
    }


def member(name: str, *claims: str, group: str = "group", **spec: Any) -> Json:
    return pod(name, *claims, schedulingGroup={"podGroupName": group}, **spec)


def two(*others: Json, gpu_count: int = 1, **spec: Any) -> Cluster:
    """Two pods of the group, each with a claim of its own."""
    pods = [member("p", "a", **spec), member("q", "b", **spec)]
    claims = [claim("a", request()), claim("b", request())]
    return cluster(
        node(),
        device_class(),
        resource_slice(gpus(gpu_count)),
        claims,
        pods,
        list(others),
    )


def placed(compiled: CompiledCluster) -> list[str]:
    solution = first_fit(compiled.problem)
    return [
        compiled.problem.demands[placement.demand].key.name
        for placement in solution.placements
    ]


def rules(compiled: CompiledCluster) -> list[str]:
    return [
        f"{finding.subject}: {finding.path}: {finding.rule}"
        for finding in compiled.findings
    ]


def test_a_pod_group_with_gang_policy_is_a_gang() -> None:
    compiled = compile_cluster(two(group()))
    assert [demand.gang for demand in compiled.problem.demands] == [
        "default/group"
    ] * 2
    assert compiled.findings == ()
    assert placed(compiled) == []
    assert placed(compile_cluster(two(group(), gpu_count=2))) == ["p", "q"]


def test_a_pod_group_with_basic_policy_is_none() -> None:
    assert placed(
        compile_cluster(two(group(schedulingPolicy={"basic": {}})))
    ) == ["p"]


def test_the_gate_generic_workload_is_off() -> None:
    assert placed(
        compile_cluster(
            two(group()),
            features=ALL_FEATURES.switched({"GenericWorkload": False}),
        )
    ) == ["p"]


def test_a_group_that_is_missing_counts_as_a_gang() -> None:
    compiled = compile_cluster(two())
    assert placed(compiled) == []
    assert rules(compiled) == [
        "Pod default/p: spec.schedulingGroup.podGroupName: "
        "the group default/group was not found; its 2 pods are placed all or none"
    ]


def test_too_few_pods_for_a_gang_are_not_placed() -> None:
    compiled = compile_cluster(
        two(group(schedulingPolicy={"gang": {"minCount": 3}}), gpu_count=2)
    )
    assert placed(compiled) == []
    assert rules(compiled) == [
        "PodGroup default/group: spec.schedulingPolicy.gang.minCount: needs 3 pods, but there are 2: none is placed"
    ]


def test_a_gated_pod_is_not_there_yet() -> None:
    gated = member("r", "c", schedulingGates=[{"name": "later"}])
    compiled = compile_cluster(
        two(
            group(schedulingPolicy={"gang": {"minCount": 3}}),
            gated,
            gpu_count=2,
        )
    )
    assert placed(compiled) == []


def test_more_pods_than_needed_are_welcome() -> None:
    compiled = compile_cluster(
        two(group(schedulingPolicy={"gang": {"minCount": 1}}))
    )
    assert placed(compiled) == ["p"]
    assert compiled.findings == ()


def test_pods_that_run_count() -> None:
    three = group(schedulingPolicy={"gang": {"minCount": 3}})
    waiting = member("r", "c"), claim("c", request())
    assert placed(compile_cluster(two(three, *waiting, gpu_count=2))) == []
    running = member("s", nodeName="node-0")
    assert placed(
        compile_cluster(two(three, *waiting, running, gpu_count=2))
    ) == [
        "p",
        "q",
    ]


def test_pods_that_wait_for_no_device_count() -> None:
    three = group(schedulingPolicy={"gang": {"minCount": 3}})
    assert placed(
        compile_cluster(two(three, member("launcher"), gpu_count=2))
    ) == [
        "p",
        "q",
    ]
    held = allocated("c", {"device": "gpu-2"})
    assert placed(
        compile_cluster(two(three, member("holder", "c"), held, gpu_count=3))
    ) == ["p", "q"]


def test_pods_that_ask_for_what_there_is_not_wait() -> None:
    limited = {**node(), "status": {"allocatable": {"cpu": "1"}}}
    pods = [
        member("p", "a"),
        member(
            "q",
            containers=[
                {
                    "name": "c",
                    "resources": {"limits": {"example.com/fpga": "1"}},
                }
            ],
        ),
    ]
    objects = cluster(
        limited,
        device_class(),
        resource_slice(gpus(1)),
        claim("a", request()),
        pods,
        group(),
    )
    assert placed(compile_cluster(objects)) == []


def test_where_enough_pods_run_the_others_come_one_by_one() -> None:
    running = [member(name, nodeName="node-0") for name in "rs"]
    assert placed(compile_cluster(two(group(), *running))) == ["p"]


def test_groups_of_a_workload() -> None:
    workload = {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {
            "podGroups": [
                {"name": "lead", "policy": {"basic": {}}},
                {"name": "workers", "policy": {"gang": {"minCount": 2}}},
            ]
        },
    }
    reference = {
        "name": "job",
        "podGroup": "workers",
        "podGroupReplicaKey": "0",
    }
    pods = [
        pod("p", "a", workloadRef=reference),
        pod("q", "b", workloadRef=reference),
    ]
    lead = pod("lead", "c", workloadRef={"name": "job", "podGroup": "lead"})
    claims = [claim(name, request()) for name in "abc"]
    compiled = compile_cluster(
        cluster(
            node(),
            device_class(),
            resource_slice(gpus(2)),
            workload,
            claims,
            pods,
            lead,
        )
    )
    assert [demand.gang for demand in compiled.problem.demands] == [
        "default/job/workers/0"
    ] * 2 + [""]
    assert placed(compiled) == ["p", "q"]


def test_a_label_makes_gangs_of_every_namespace() -> None:
    pods = [pod("p", "a"), pod("q", "b"), pod("r", "c")]
    for pod_object in pods[:2]:
        pod_object["metadata"]["labels"] = {"job": "training"}
    claims = [claim(name, request()) for name in "abc"]
    given = cluster(
        node(), device_class(), resource_slice(gpus(2)), claims, pods
    )
    compiled = compile_cluster(given, gang="job")
    assert [demand.gang for demand in compiled.problem.demands] == [
        "default/training"
    ] * 2 + [""]


@pytest.mark.parametrize("mode", [Mode.FIRST_FIT, Mode.OPTIMAL])
def test_a_pod_group_called_like_a_label_is_another_gang(mode: Mode) -> None:
    """Of the PodGroup one pod is enough, of those with the label both are needed."""
    labelled = [pod("p", "a"), pod("q", "b")]
    for pod_object in labelled:
        pod_object["metadata"]["labels"] = {"job": "group"}
    one_is_enough = group(schedulingPolicy={"gang": {"minCount": 1}})
    of_group = [member("r", "c"), member("s", "d")]
    claims = [claim(name, request()) for name in "abcd"]

    def placed_on(gpu_count: int, *pods: Json) -> set[str]:
        plan = allocate(
            cluster(
                node(),
                device_class(),
                resource_slice(gpus(gpu_count)),
                claims,
                list(pods),
                one_is_enough,
            ),
            mode,
            gang="job",
        )
        demands = plan.compiled.problem.demands
        return {
            demands[placement.demand].key.name
            for placement in plan.solution.placements
        }

    for pods in ([*labelled, *of_group], [*of_group, *labelled]):
        assert placed_on(3, *pods) & {"p", "q"} in ({"p", "q"}, set())
        assert placed_on(1, *pods) in ({"r"}, {"s"})


def test_a_gang_that_does_not_fit_gives_everything_back() -> None:
    """The gang stands before the pod in between, takes both GPUs, and has to return them."""
    claims = [claim(name, request()) for name in "abcd"]
    pods = [
        member("p", "a"),
        pod("alone", "d"),
        member("q", "b"),
        member("r", "c"),
    ]
    three = group(schedulingPolicy={"gang": {"minCount": 3}})
    given = cluster(
        node(), device_class(), resource_slice(gpus(2)), claims, pods, three
    )
    assert placed(compile_cluster(given)) == ["alone"]


def test_placements_keep_the_order_of_demands() -> None:
    claims = [claim(name, request()) for name in "abc"]
    pods = [member("p", "a"), pod("alone", "c"), member("q", "b")]
    given = cluster(
        node(), device_class(), resource_slice(gpus(2)), claims, pods, group()
    )
    compiled = compile_cluster(given)
    assert placed(compiled) == ["p", "q"]
    given = cluster(
        node(), device_class(), resource_slice(gpus(3)), claims, pods, group()
    )
    assert placed(compile_cluster(given)) == ["p", "alone", "q"]


def test_pods_share_the_claim_of_their_group() -> None:
    """An entry of a pod that its PodGroup has too means one claim for all, reserved for the group (KEP-5729)."""
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"spec": claim("", request())["spec"]},
    }
    entry = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    pods = [
        {
            **member(name),
            "spec": {
                "schedulingGroup": {"podGroupName": "group"},
                "resourceClaims": [entry],
            },
        }
        for name in "pq"
    ]
    for pod_object in pods:
        pod_object["metadata"]["uid"] = pod_object["metadata"]["name"]
    shared = group(
        schedulingPolicy=GANG["schedulingPolicy"], resourceClaims=[entry]
    )
    compiled = compile_cluster(
        cluster(
            node(),
            device_class(),
            resource_slice(gpus(1)),
            template,
            pods,
            shared,
        )
    )
    solution = first_fit(compiled.problem)
    assert len(solution.placements) == 2
    (written,) = allocated_claims(compiled, solution)
    assert written.name.startswith("group-gpu-")
    assert [
        (consumer.api_group, consumer.resource, consumer.name, consumer.uid)
        for consumer in written.status.reserved_for
    ] == [("scheduling.k8s.io", "podgroups", "group", "uid-group")]


def test_without_the_gate_each_pod_of_a_group_has_a_claim_of_its_own() -> None:
    """With DRAWorkloadResourceClaims off a template is the pod's, whatever the group says (KEP-5729)."""
    entry = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"spec": claim("", request())["spec"]},
    }
    pods = [member(name) for name in "pq"]
    for pod_object in pods:
        pod_object["metadata"]["uid"] = pod_object["metadata"]["name"]
        pod_object["spec"] = {
            "schedulingGroup": {"podGroupName": "group"},
            "resourceClaims": [entry],
        }
    shared = group(schedulingPolicy={"basic": {}}, resourceClaims=[entry])
    given = cluster(
        node(),
        device_class(),
        resource_slice(gpus(1)),
        template,
        pods,
        shared,
    )
    off = ALL_FEATURES.switched({"DRAWorkloadResourceClaims": False})
    together, apart = (
        compile_cluster(given),
        compile_cluster(given, features=off),
    )
    assert len(first_fit(together.problem).placements) == 2
    assert len(first_fit(apart.problem).placements) == 1
    assert [pod.key for pod in apart.cluster.pods] == [
        pod.key for pod in given.pods
    ]
    (written,) = allocated_claims(apart, first_fit(apart.problem))
    assert written.status.reserved_for[0].resource == "pods"
    # A claim that is named stays what it is, but reserved for its pod.
    named = compile_cluster(cluster(sharing("pq")), features=off)
    (written,) = allocated_claims(named, first_fit(named.problem))
    assert {user.resource for user in written.status.reserved_for} == {"pods"}


def test_without_the_gate_no_toleration_compares_numbers() -> None:
    """With TaintTolerationComparisonOperators off, ``Lt`` tolerates nothing (KEP-5471)."""
    tainted = node()
    taint = {"key": "age", "value": "3", "effect": "NoSchedule"}
    tainted["spec"] = {"taints": [taint]}
    toleration = {"key": "age", "operator": "Lt", "value": "5"}
    given = cluster(
        tainted,
        device_class(),
        resource_slice(gpus(1)),
        claim("c", request()),
        {
            **member("p"),
            "spec": {
                "tolerations": [toleration],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
            },
        },
    )
    off = ALL_FEATURES.switched({"TaintTolerationComparisonOperators": False})
    assert len(first_fit(compile_cluster(given).problem).placements) == 1
    assert not first_fit(
        compile_cluster(given, features=off).problem
    ).placements


def sharing(names: Iterable[str], count: int = 1) -> list[Json]:
    """A group whose pods use its claim ``shared``, which others can name, too."""
    entry = {"name": "gpu", "resourceClaimName": "shared"}
    pods = [
        {**member(name), "spec": {"schedulingGroup": {"podGroupName": "group"}}}
        for name in names
    ]
    for pod_object in pods:
        pod_object["metadata"]["uid"] = f"uid-{pod_object['metadata']['name']}"
        pod_object["spec"]["resourceClaims"] = [entry]
    shared = group(schedulingPolicy={"basic": {}}, resourceClaims=[entry])
    return [
        node(),
        device_class(),
        resource_slice(gpus(1)),
        claim("shared", request(count=count)),
        *pods,
        shared,
    ]


@pytest.mark.parametrize("mode", Mode)
def test_a_claim_is_reserved_for_its_group_and_for_pods_outside_of_it(
    mode: Mode,
) -> None:
    """A pod's entry is the group's only if the pod belongs to it (``resourceclaim.BindTo`` of 1.36)."""
    outsider = pod("outsider", "shared")
    outsider["metadata"]["uid"] = "uid-outsider"
    plan = allocate(cluster(*sharing(["p", "q"]), outsider), mode=mode)
    (written,) = plan.claims
    reserved = {
        (consumer.resource, consumer.name)
        for consumer in written.status.reserved_for
    }
    assert reserved == {("podgroups", "group"), ("pods", "outsider")}


@pytest.mark.parametrize("mode", Mode)
def test_a_group_counts_once_among_the_users_of_a_claim(mode: Mode) -> None:
    names = [f"p{index}" for index in range(MAX_CONSUMERS + 1)]
    plan = allocate(cluster(*sharing(names)), mode=mode)
    assert len(plan.solution.placements) == len(names)


def test_outside_of_its_group_a_claim_has_the_usual_limit_of_users() -> None:
    """The group and all others but one: as many as can use a claim at a time."""
    others = [pod(f"other-{index}", "shared") for index in range(MAX_CONSUMERS)]
    compiled = compile_cluster(cluster(*sharing(["p", "q"]), others))
    assert len(first_fit(compiled.problem).placements) == 2 + MAX_CONSUMERS - 1
    assert any(
        "only 256 can use it at a time" in rule for rule in rules(compiled)
    )


RACK = "example.com/rack"
IN_ONE_RACK = {"schedulingConstraints": {"topology": [{"key": RACK}]}}


def racks(*others: Json, **spec: Any) -> CompiledCluster:
    """Two pods of the group, and nodes with one GPU each: two racks with one node, one with two, and a node in none."""
    homes = {"a-0": "a", "b-0": "b", "c-0": "c", "c-1": "c", "loose": ""}
    nodes = [
        node(name, **({RACK: rack} if rack else {}))
        for name, rack in homes.items()
    ]
    slices = [
        resource_slice(gpus(1), name=f"slice-{name}", pool=name, nodeName=name)
        for name in homes
    ]
    pods = [member("p", "a"), member("q", "b")]
    claims = [claim("a", request()), claim("b", request())]
    policy: Json = {"schedulingPolicy": {"basic": {}}}
    shared = group(**{**policy, **IN_ONE_RACK, **spec})
    return compile_cluster(
        cluster(
            nodes, device_class(), slices, claims, pods, shared, list(others)
        )
    )


def homes(compiled: CompiledCluster) -> dict[str, str]:
    node_names = {}
    for solve_it in (first_fit, solve):
        solution = solve_it(compiled.problem)
        check(compiled.problem, solution)
        node_names = {
            compiled.problem.demands[
                placement.demand
            ].key.name: compiled.problem.nodes[placement.node].name
            for placement in solution.placements
        }
        assert set(node_names.values()) <= {"c-0", "c-1"}
    return node_names


def test_a_group_goes_where_most_of_it_fits_in_one_domain() -> None:
    assert homes(racks()).keys() == {"p", "q"}


def test_a_gang_with_a_topology_constraint_needs_its_pods_in_one_domain() -> (
    None
):
    assert homes(racks(schedulingPolicy={"gang": {"minCount": 2}})).keys() == {
        "p",
        "q",
    }
    third = member("r", "c"), claim("c", request())
    assert (
        homes(racks(*third, schedulingPolicy={"gang": {"minCount": 3}})) == {}
    )
    assert (
        len(homes(racks(*third, schedulingPolicy={"gang": {"minCount": 2}})))
        == 2
    )


def test_pods_that_run_have_chosen_the_domain() -> None:
    running = member("r", nodeName="c-1")
    assert homes(racks(running)).keys() == {"p", "q"}
    assert homes(racks(running, member("s", nodeName="a-0"))) == {}
    assert homes(racks(member("r", nodeName="loose"))) == {}


@pytest.mark.parametrize("mode", Mode)
def test_members_without_devices_count_for_the_minimum_and_leave_the_domain_to_the_others(
    mode: Mode,
) -> None:
    """One pod is enough, and the leader is one: still p and q are in one rack."""
    nodes = [node(name, **{RACK: name}) for name in ("a", "b")]
    slices = [
        resource_slice(gpus(1), name=name, pool=name, nodeName=name)
        for name in ("a", "b")
    ]
    pods = [member("p", "a"), member("q", "b"), member("leader")]
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": 1}}, **IN_ONE_RACK}
    claims = [claim("a", request()), claim("b", request())]
    plan = allocate(
        cluster(nodes, device_class(), slices, claims, pods, group(**spec)),
        mode,
    )
    assert len(plan.solution.placements) == 1


def test_a_pod_that_runs_counts_for_its_gang_once_though_its_claim_is_pending() -> (
    None
):
    running = [
        member("running", "c", nodeName="node-0", priority=1),
        claim("c", request()),
    ]
    needs_three, needs_four = (
        group(schedulingPolicy={"gang": {"minCount": count}})
        for count in (3, 4)
    )
    assert placed(compile_cluster(two(needs_three, *running, gpu_count=2))) == [
        "running"
    ]
    assert placed(compile_cluster(two(needs_three, *running, gpu_count=3))) == [
        "running",
        "p",
        "q",
    ]
    assert placed(compile_cluster(two(needs_four, *running, gpu_count=3))) == [
        "running"
    ]
