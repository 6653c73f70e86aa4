"""Each rule of pods, nodes and groups, broken and kept by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dralloc import allocate
from dralloc.check import check_objects
from dralloc.check.objects import Binding, Filters, Promise, violations
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.api import NodeSelector, TopologySpreadConstraint
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import CheckError
from dralloc.objects.features import ALL_FEATURES
from dralloc.objects.names import ClaimKey
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    device_class,
    gpus,
    request,
    resource_slice,
)

HOST = "kubernetes.io/hostname"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"


def node(
    name: str,
    *,
    taints: Sequence[Json] = (),
    cordoned: bool = False,
    **labels: str,
) -> Json:
    allocatable = {
        key: labels.pop(key) for key in ("cpu", "pods") if key in labels
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, **labels}},
        "spec": {"taints": list(taints), "unschedulable": cordoned},
        "status": {"allocatable": allocatable},
    }


def pod(
    name: str,
    *,
    on: str = "",
    app: str = "",
    asks: bool = True,
    space: str = "default",
    **spec: Any,
) -> list[Json]:
    """A pod with a claim of its own, or one that runs on a node."""
    pod_object: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": space,
            "labels": {"app": app} if app else {},
        },
        "spec": {**spec, **({"nodeName": on} if on else {})},
    }
    if on or not asks:
        return [pod_object]
    pod_object["spec"]["resourceClaims"] = [
        {"name": "gpu", "resourceClaimName": f"{name}-gpu"}
    ]
    wanted = claim(f"{name}-gpu", request())
    wanted["metadata"]["namespace"] = space
    return [pod_object, wanted]


def term(app: str, key: str = HOST, **more: Any) -> Json:
    return {
        "labelSelector": {"matchLabels": {"app": app}},
        "topologyKey": key,
        **more,
    }


def apart(*terms: Json) -> Json:
    return {"podAntiAffinity": {HARD: list(terms)}}


def near(*terms: Json) -> Json:
    return {"podAffinity": {HARD: list(terms)}}


def spread(app: str, key: str, skew: int = 1, **more: Any) -> list[Json]:
    selector = {"matchLabels": {"app": app}}
    constraint = {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
    }
    return [{**constraint, "labelSelector": selector, **more}]


def takes(cpu: str) -> list[Json]:
    return [
        {
            "name": "main",
            "image": "main",
            "resources": {"requests": {"cpu": cpu}},
        }
    ]


def has_port(
    port_number: int, address: str = "", protocol: str = ""
) -> list[Json]:
    port = {
        "hostPort": port_number,
        "containerPort": port_number,
        **({"hostIP": address} if address else {}),
        **({"protocol": protocol} if protocol else {}),
    }
    return [{"name": "main", "image": "main", "ports": [port]}]


def offers(port_number: int) -> list[Json]:
    """A port of the pod, which is one of the node if the pod is on its network."""
    return [
        {
            "name": "main",
            "image": "main",
            "ports": [{"containerPort": port_number}],
        }
    ]


def in_rack(*racks: str) -> Json:
    """Node affinity to some racks."""
    rack = {"key": "rack", "operator": "In", "values": list(racks)}
    return {
        "nodeAffinity": {
            HARD: {"nodeSelectorTerms": [{"matchExpressions": [rack]}]}
        }
    }


def group(
    name: str,
    count: int | None = None,
    key: str = "",
    parent: str = "",
    kind: str = "PodGroup",
) -> Json:
    field = "minCount" if kind == "PodGroup" else "minGroupCount"
    spec: Json = {
        "schedulingPolicy": {"gang": {field: count}} if count else {"basic": {}}
    }
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def member(name: str, of: str, **more: Any) -> list[Json]:
    return pod(name, schedulingGroup={"podGroupName": of}, **more)


class Case(NamedTuple):
    """Objects, who goes where, what is promised, and a part of the only violation; empty if there is none."""

    objects: list[Json | list[Json]]
    bindings: dict[str, str]
    rule: str
    promise: dict[str, Any]


def case(
    *objects: Json | list[Json],
    at: dict[str, str],
    rule: str = "",
    **promise: Any,
) -> Case:
    return Case(list(objects), at, rule, promise)


A, B = node("a", rack="1", zone="x"), node("b", rack="2", zone="x")
BARE = node("bare")
IN_ORDER: dict[str, Any] = {"in_order": True}
AWAY_FROM_WEB: dict[str, Any] = {"affinity": apart(term("web"))}
TO_WEB: dict[str, Any] = {"affinity": near(term("web"))}

CASES = {
    # Where a pod may be.
    "no such pod": case(A, at={"p": "a"}, rule="pod default/p: is not there"),
    "no such node": case(
        A,
        pod("p"),
        at={"p": "b"},
        rule="pod default/p: there is no node b for it",
    ),
    "a node that is not chosen": case(
        A, B, pod("p"), at={"p": "b"}, rule="there is no node b", nodes=["a"]
    ),
    "a pod that is on another node": case(
        A, B, pod("p", on="a"), at={"p": "b"}, rule="is on node a already"
    ),
    "a pod with gates": case(
        A,
        pod("p", schedulingGates=[{"name": "x"}]),
        at={"p": "a"},
        rule="has scheduling gates",
    ),
    "a pod twice": case(
        A, pod("p"), at={"p": "a", "default/p": "a"}, rule="gets a node 2 times"
    ),
    "another label": case(
        A,
        pod("p", nodeSelector={"rack": "2"}),
        at={"p": "a"},
        rule="has no label rack=2",
    ),
    "another label, where that does not count": case(
        A,
        pod("p", nodeSelector={"rack": "2"}, affinity=in_rack("2")),
        at={"p": "a"},
        other_filters=Filters(frozenset({"NodeAffinity"})),
    ),
    "the label that it asks for": case(
        A,
        pod("p", nodeSelector={"rack": "1"}, affinity=in_rack("1", "3")),
        at={"p": "a"},
    ),
    "affinity to another rack": case(
        A,
        pod("p", affinity=in_rack("2", "3")),
        at={"p": "a"},
        rule="its node affinity does not select node a",
    ),
    "an untolerated taint": case(
        node("a", taints=[{"key": "k", "effect": "NoSchedule"}]),
        pod("p"),
        at={"p": "a"},
        rule="does not tolerate",
    ),
    "a taint that does not count": case(
        node("a", taints=[{"key": "k", "effect": "NoSchedule"}]),
        pod("p"),
        at={"p": "a"},
        other_filters=Filters(frozenset({"TaintToleration"})),
    ),
    "a number that is tolerated": case(
        node("a", taints=[{"key": "k", "value": "5", "effect": "NoSchedule"}]),
        pod("p", tolerations=[{"key": "k", "operator": "Gt", "value": "4"}]),
        at={"p": "a"},
    ),
    "a number that is not": case(
        node("a", taints=[{"key": "k", "value": "05", "effect": "NoSchedule"}]),
        pod("p", tolerations=[{"key": "k", "operator": "Gt", "value": "4"}]),
        at={"p": "a"},
        rule="does not tolerate",
    ),
    "a cordoned node": case(
        node("a", cordoned=True),
        pod("p"),
        at={"p": "a"},
        rule="node a is unschedulable",
    ),
    # Room.
    "too little CPU": case(
        node("a", cpu="2", pods="9"),
        pod("r", on="a", containers=takes("1500m")),
        pod("p", containers=takes("1")),
        at={"p": "a"},
        rule="no room on node a: 2500 of cpu are requested, 2000 are there",
    ),
    "no CPU asked for on an overcommitted node": case(
        node("a", cpu="1", pods="9"),
        pod("r", on="a", containers=takes("2")),
        pod("p"),
        at={"p": "a"},
    ),
    "a node that does not say what it has": case(
        A, pod("p", containers=takes("99")), at={"p": "a"}
    ),
    "too many pods": case(
        node("a", pods="1"),
        pod("r", on="a"),
        pod("p"),
        at={"p": "a"},
        rule="2 of pods are requested",
    ),
    "a resource that does not count": case(
        node("a", cpu="2", pods="9"),
        pod("p", containers=takes("3")),
        at={"p": "a"},
        other_filters=Filters(ignores=lambda resource: resource == "cpu"),
    ),
    "no room beside one that did not ask, and came later": case(
        node("a", cpu="4", pods="9"),
        pod("p", containers=takes("3")),
        pod("q", schedulerName="lax", containers=takes("3")),
        at={"p": "a", "q": "a"},
        filters={"lax": Filters(frozenset({"NodeResourcesFit"}))},
        **IN_ORDER,
    ),
    "no room beside one that did not ask, and came before": case(
        node("a", cpu="4", pods="9"),
        pod("p", containers=takes("3")),
        pod("q", schedulerName="lax", containers=takes("3")),
        at={"q": "a", "p": "a"},
        filters={"lax": Filters(frozenset({"NodeResourcesFit"}))},
        rule="p: no room on node a: 6000 of cpu are requested, 4000 are there",
        **IN_ORDER,
    ),
    "a port that is taken": case(
        A,
        pod("r", on="a", containers=has_port(80)),
        pod("p", containers=has_port(80, "10.0.0.1")),
        at={"p": "a"},
        rule="port 80 of node a is taken by pod default/r",
    ),
    "the same port of another address": case(
        A,
        pod("r", on="a", containers=has_port(80, "10.0.0.2")),
        pod("p", containers=has_port(80, "10.0.0.1")),
        at={"p": "a"},
    ),
    "a port of another protocol": case(
        A,
        pod("r", on="a", containers=has_port(53, protocol="UDP")),
        pod("p", containers=has_port(53)),
        at={"p": "a"},
    ),
    "the same port of a protocol that is named": case(
        A,
        pod("r", on="a", containers=has_port(53, protocol="TCP")),
        pod("p", containers=has_port(53)),
        at={"p": "a"},
        rule="port 53",
    ),
    "the same port on the node's network": case(
        A,
        pod("r", on="a", hostNetwork=True, containers=offers(80)),
        pod("p", containers=has_port(80)),
        at={"p": "a"},
        rule="port 80",
    ),
    "the same port on networks of their own": case(
        A,
        pod("r", on="a", containers=offers(80)),
        pod("p", containers=offers(80)),
        at={"p": "a"},
    ),
    # Anti-affinity.
    "near to somebody who runs": case(
        A,
        pod("r", on="a", app="web"),
        pod("p", **AWAY_FROM_WEB),
        at={"p": "a"},
        rule="keeps it away from pod default/r",
    ),
    "somebody who runs keeps it away": case(
        A,
        pod("r", on="a", **AWAY_FROM_WEB),
        pod("p", app="web"),
        at={"p": "a"},
        rule="anti-affinity of pod default/r",
    ),
    "on another node than who runs": case(
        A,
        B,
        pod("r", on="a", **AWAY_FROM_WEB),
        pod("s", on="b", app="web"),
        pod("p", app="web"),
        at={"p": "b"},
    ),
    "two of which one keeps away": case(
        A,
        pod("p", app="web"),
        pod("q", **AWAY_FROM_WEB),
        at={"q": "a", "p": "a"},
        rule="keeps it out of",
    ),
    "one who means itself": case(
        A, pod("p", app="web", **AWAY_FROM_WEB), at={"p": "a"}
    ),
    "in another namespace": case(
        A,
        pod("r", on="a", app="web", space="other"),
        pod("p", **AWAY_FROM_WEB),
        at={"p": "a"},
    ),
    "in a namespace that is selected": case(
        A,
        pod("r", on="a", app="web", space="other"),
        pod(
            "p",
            affinity=apart(
                term(
                    "web",
                    namespaceSelector={
                        "matchLabels": {"kubernetes.io/metadata.name": "other"}
                    },
                )
            ),
        ),
        at={"p": "a"},
        rule="keeps it away from pod other/r",
    ),
    "of another version": case(
        A,
        pod("r", on="a", app="web"),
        pod("p", app="db", affinity=apart(term("web", matchLabelKeys=["app"]))),
        at={"p": "a"},
    ),
    "no domain, nobody too near": case(
        BARE,
        pod("r", on="bare", app="web"),
        pod("p", affinity=apart(term("web", "rack"))),
        at={"p": "bare"},
    ),
    # Affinity.
    "nobody is near": case(
        A,
        pod("p", **TO_WEB),
        at={"p": "a"},
        rule="nobody whom its affinity means",
    ),
    "the one who means itself": case(
        A, pod("p", app="web", **TO_WEB), at={"p": "a"}
    ),
    "two who mean each other on two nodes": case(
        A,
        B,
        pod("p", app="web", **TO_WEB),
        pod("q", app="web", **TO_WEB),
        at={"p": "a", "q": "b"},
        rule="nobody whom",
    ),
    "two who need each other": case(
        A,
        pod("p", app="db", **TO_WEB),
        pod("q", app="web", affinity=near(term("db"))),
        at={"p": "a", "q": "a"},
        rule="nobody whom its affinity means can have been near node a before it\npod default/q",
    ),
    "no label on the node": case(
        BARE,
        pod("p", app="web", affinity=near(term("web", "rack"))),
        at={"p": "bare"},
        rule="nobody whom",
    ),
    "another begins, whom nobody sees from there": case(
        A,
        BARE,
        pod("p", app="web", **TO_WEB),
        pod("q", app="web", affinity=near(term("web", "rack"))),
        at={"q": "a", "p": "bare"},
    ),
    "begun in the wrong order": case(
        A,
        BARE,
        pod("p", app="web", **TO_WEB),
        pod("q", app="web", affinity=near(term("web", "rack"))),
        at={"q": "a", "p": "bare"},
        rule="pod default/p: nobody whom",
        **IN_ORDER,
    ),
    "in the right order": case(
        A,
        BARE,
        pod("p", app="web", **TO_WEB),
        pod("q", app="web", affinity=near(term("web", "rack"))),
        at={"p": "bare", "q": "a"},
        **IN_ORDER,
    ),
    "a filter that is off": case(
        A,
        pod("p", schedulerName="lax", **TO_WEB),
        at={"p": "a"},
        filters={"lax": Filters(frozenset({"InterPodAffinity"}))},
        **IN_ORDER,
    ),
    # Topology spread.
    "too uneven": case(
        A,
        B,
        pod("p", app="web", topologySpreadConstraints=spread("web", "rack")),
        pod("q", app="web", topologySpreadConstraints=spread("web", "rack")),
        at={"p": "a", "q": "a"},
        rule="topology spread: 2 in rack=1, but 0 are in the domain with the fewest, and the skew is 1",
    ),
    "uneven in this order only": case(
        A,
        B,
        pod("p", app="web", topologySpreadConstraints=spread("web", "rack")),
        pod("q", app="web"),
        pod("s", app="web"),
        at={"q": "a", "p": "a", "s": "b"},
        rule="2 in rack=1",
        **IN_ORDER,
    ),
    "even in some order": case(
        A,
        B,
        pod("p", app="web", topologySpreadConstraints=spread("web", "rack")),
        pod("q", app="web"),
        pod("s", app="web"),
        at={"q": "a", "p": "a", "s": "b"},
    ),
    "too few domains": case(
        A,
        B,
        pod("r", on="b", app="web"),
        pod("s", on="a", app="web"),
        pod(
            "p",
            app="web",
            topologySpreadConstraints=spread("web", "rack", minDomains=3),
        ),
        at={"p": "a"},
        rule="2 in rack=1, but 0 are in the domain with the fewest",
    ),
    "a tainted node is no domain": case(
        A,
        node("b", rack="2", taints=[{"key": "k", "effect": "NoSchedule"}]),
        pod("r", on="a", app="web"),
        pod(
            "p",
            app="web",
            topologySpreadConstraints=spread(
                "web", "rack", nodeTaintsPolicy="Honor"
            ),
        ),
        at={"p": "a"},
    ),
    "no label to spread by": case(
        BARE,
        pod("p", topologySpreadConstraints=spread("web", "rack")),
        at={"p": "bare"},
        rule="node has no label rack",
    ),
    # Groups.
    "half a gang": case(
        A,
        group("g", 2),
        member("p", "g"),
        member("q", "g"),
        at={"p": "a"},
        rule="1 pods have a node, 2 are needed",
    ),
    "with one who runs": case(
        A,
        group("g", 2),
        member("r", "g", on="a"),
        member("p", "g"),
        at={"p": "a"},
    ),
    "with one who is left to others": case(
        A,
        group("g", 2),
        member("p", "g"),
        member("leader", "g", asks=False),
        at={"p": "a"},
    ),
    "nobody is left to others by the scheduler": case(
        A,
        group("g", 2),
        member("p", "g"),
        member("leader", "g", asks=False),
        at={"p": "a"},
        rule="2 are needed",
        **IN_ORDER,
    ),
    "with one who waits for what there is not": case(
        node("a", cpu="9", pods="9"),
        group("g", 2),
        member("p", "g"),
        member(
            "leader",
            "g",
            asks=False,
            containers=[
                {
                    "name": "main",
                    "image": "main",
                    "resources": {"limits": {"x.com/fpga": "1"}},
                }
            ],
        ),
        at={"p": "a"},
        rule="2 are needed",
    ),
    "two racks, although enough members are left to others": case(
        A,
        B,
        group("g", 1, "rack"),
        member("p", "g"),
        member("q", "g"),
        member("leader", "g", asks=False),
        at={"p": "a", "q": "b"},
        rule="group default/g: its pods have to be in one domain of rack, but are in 1, 2",
    ),
    "another rack than who runs": case(
        A,
        B,
        group("g", key="rack"),
        member("r", "g", on="a"),
        member("p", "g"),
        at={"p": "b"},
        rule="are in 1, 2",
    ),
    "racks that do not count": case(
        A,
        B,
        group("g", key="rack"),
        member("r", "g", on="a"),
        member("p", "g"),
        at={"p": "b"},
        features=ALL_FEATURES.switched(
            {"TopologyAwareWorkloadScheduling": False}
        ),
    ),
    "groups that do not count": case(
        A,
        group("g", 2),
        member("p", "g"),
        at={"p": "a"},
        features=ALL_FEATURES.switched({"GenericWorkload": False}),
    ),
    "a group that is missing": case(
        A,
        member("p", "g"),
        member("q", "g"),
        at={"p": "a"},
        rule="group default/g: 1 pods are placed, and 1 are not",
    ),
    "a group that the scheduler does not find": case(
        A, member("p", "g"), at={"p": "a"}, rule="it was not found", **IN_ORDER
    ),
    "half of those with a label": case(
        A,
        pod("p", app="web"),
        pod("q", app="web"),
        at={"p": "a"},
        rule="1 pods are placed, and 1 are not",
        gang_label="app",
    ),
    "half of those with a label, beside a PodGroup called like it": case(
        A,
        group("web", 1),
        member("o", "web"),
        pod("p", app="web"),
        pod("q", app="web"),
        at={"o": "a", "p": "a"},
        rule="group default/web: 1 pods are placed, and 1 are not",
        gang_label="app",
    ),
    "half a group of a Workload": case(
        A,
        {
            "apiVersion": "scheduling.k8s.io/v1alpha1",
            "kind": "Workload",
            "metadata": {"name": "w", "namespace": "default"},
            "spec": {
                "podGroups": [
                    {"name": "g", "policy": {"gang": {"minCount": 2}}}
                ]
            },
        },
        pod("p", workloadRef={"name": "w", "podGroup": "g"}),
        at={"p": "a"},
        rule="group default/w/g: 1 pods have a node, 2 are needed",
    ),
    # Groups of groups.
    "one child of two": case(
        A,
        group("root", 2, kind="CompositePodGroup"),
        group("g", 1, parent="root"),
        group("h", 2, parent="root"),
        member("p", "g"),
        member("q", "h"),
        at={"p": "a"},
        rule="group default/root: 1 of its groups are admitted, 2 are needed",
    ),
    "the other child is left to others": case(
        A,
        group("root", 2, kind="CompositePodGroup"),
        group("g", 1, parent="root"),
        group("h", 1, parent="root"),
        member("p", "g"),
        member("q", "h", asks=False),
        at={"p": "a"},
    ),
    "children in two racks": case(
        A,
        B,
        group("root", key="rack", kind="CompositePodGroup"),
        group("g", 1, parent="root"),
        group("h", 1, parent="root"),
        member("p", "g"),
        member("q", "h"),
        at={"p": "a", "q": "b"},
        rule="group default/root: its pods have to be in one domain of rack",
    ),
    "no group above": case(
        A,
        group("g", 1, parent="root"),
        member("p", "g"),
        at={"p": "a"},
        rule="default/root was not found",
    ),
    "groups in a circle": case(
        A,
        group("root", parent="low", kind="CompositePodGroup"),
        group("low", parent="root", kind="CompositePodGroup"),
        group("g", 1, parent="low"),
        member("p", "g"),
        at={"p": "a"},
        rule="there are 4 groups above it, or a circle",
    ),
}


@pytest.mark.parametrize("rule_case", CASES.values(), ids=CASES)
def test_only_what_is_broken_is_refused(rule_case: Case) -> None:
    messages = violations(
        cluster(*rule_case.objects),
        bindings_of(rule_case),
        promise_of(rule_case),
    )
    assert len(messages) == (
        len(rule_case.rule.split("\n")) if rule_case.rule else 0
    ), messages
    assert rule_case.rule in "\n".join(messages)


def bindings_of(rule_case: Case) -> list[Binding]:
    return [
        Binding(ClaimKey.parse(key), name)
        for key, name in rule_case.bindings.items()
    ]


def promise_of(rule_case: Case) -> Promise:
    given = [
        known["metadata"]["name"]
        for known in rule_case.objects
        if isinstance(known, dict) and known["kind"] == "Node"
    ]
    return Promise(**{"nodes": given, **rule_case.promise})


def test_a_claim_is_used_where_it_was_allocated() -> None:
    held = allocated("p-gpu", {"device": "gpu-0"})
    home = {
        "matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["b"]}
        ]
    }
    held["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [home]}
    given = cluster(A, B, device_class(), pod("p")[0], held)
    assert (
        violations(
            given, [Binding(ClaimKey("default", "p"), "b")], Promise(["a", "b"])
        )
        == []
    )
    messages = violations(
        given, [Binding(ClaimKey("default", "p"), "a")], Promise(["a", "b"])
    )
    assert messages == [
        "pod default/p: its claim default/p-gpu is allocated, and not for node a"
    ]


def test_a_node_has_what_its_device_plugin_serves_beside_devices() -> None:
    """Two pods ask for a GPU of the plugin and for a device: there is one GPU, and no NIC at all."""
    classes = [device_class(name) for name in ("gpu", "nic")]
    for extended in classes:
        name = extended["metadata"]["name"]
        extended["spec"]["extendedResourceName"] = f"x.com/{name}"
    plugin = node("a", cpu="1")
    plugin["status"]["allocatable"] |= {"pods": "9", "x.com/gpu": "1"}
    requests = {"x.com/gpu": "1", "x.com/nic": "1"}
    container = {"name": "c", "resources": {"requests": requests}}
    pods = [
        pod(name, asks=False, containers=[container]) for name in ("p", "q")
    ]
    given = compile_cluster(cluster(plugin, B, classes, *pods)).cluster
    first, second = (Binding(ClaimKey("default", name), "a") for name in "pq")
    assert violations(given, [first], Promise(["a", "b"])) == []
    assert violations(given, [first, second], Promise(["a", "b"])) == [
        "pod default/q: no room on node a: 2 of x.com/gpu are requested, 1 are there"
    ]


def of_set(name: str, owner: str, kind: str = "StatefulSet") -> list[Json]:
    """A pod that a controller made."""
    made, *claims = pod(name)
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "name": owner,
            "controller": True,
        }
    ]
    return [made, *claims]


def spread_by_default(given: Cluster, *names: str) -> list[str]:
    """What is wrong with pods on these nodes, in order, where a scheduler spreads over racks what says nothing."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "rack",
        "whenUnsatisfiable": "DoNotSchedule",
    }
    filters = Filters(
        default_constraints=(
            TopologySpreadConstraint.model_validate(constraint),
        )
    )
    bindings = [
        Binding(ClaimKey("default", f"p{index}"), name)
        for index, name in enumerate(names)
    ]
    return violations(
        given,
        bindings,
        Promise(["a", "b"], in_order=True, other_filters=filters),
    )


def test_pods_of_a_controller_are_spread_as_the_scheduler_does_by_default() -> (
    None
):
    same = cluster(A, B, of_set("p0", "s"), of_set("p1", "s"))
    assert spread_by_default(same, "a", "b") == []
    assert [
        message.partition(": topology")[0]
        for message in spread_by_default(same, "a", "a")
    ] == ["pod default/p1"]
    others = cluster(A, B, of_set("p0", "s"), of_set("p1", "t"))
    assert spread_by_default(others, "a", "a") == []
    assert (
        spread_by_default(
            cluster(A, B, of_set("p0", "s", "Job"), of_set("p1", "s", "Job")),
            "a",
            "a",
        )
        == []
    )
    own = cluster(
        A,
        B,
        *(
            pod(name, topologySpreadConstraints=spread("x", HOST, 9))
            for name in ("p0", "p1")
        ),
    )
    assert spread_by_default(own, "a", "a") == []


def test_node_affinity_that_a_scheduler_adds_binds_its_pods() -> None:
    given = cluster(A, B, pod("p"), pod("q", schedulerName="other"))
    rack = {"key": "rack", "operator": "In", "values": ["1"]}
    added = Filters(
        added_affinity=NodeSelector.model_validate(
            {"nodeSelectorTerms": [{"matchExpressions": [rack]}]}
        )
    )
    promise = Promise(["a", "b"], filters={"default-scheduler": added})
    assert (
        violations(
            given,
            [
                Binding(ClaimKey("default", "q"), "b"),
                Binding(ClaimKey("default", "p"), "a"),
            ],
            promise,
        )
        == []
    )
    messages = violations(
        given, [Binding(ClaimKey("default", "p"), "b")], promise
    )
    assert messages == [
        "pod default/p: the node affinity that its scheduler adds does not select node b"
    ]


def test_answers_of_a_configured_scheduler_are_right(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIGURATION)
    nodes = [A, B, node("c", rack="2", zone="y")]
    slices = [
        resource_slice(gpus(4), name=name, pool=name, nodeName=name)
        for name in "abc"
    ]
    pods = [of_set(f"p{index}", "s", "ReplicaSet") for index in range(6)]
    plan = allocate(
        cluster(device_class(), nodes, slices, *pods),
        "scheduler",
        scheduler_config=config,
    )
    assert Counter(placed_demand.node for placed_demand in plan.placed) == {
        "a": 3,
        "b": 3,
    }


CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [x]}]}]
"""


def test_what_is_broken_is_an_error_with_every_violation() -> None:
    given = cluster(A, pod("p", nodeSelector={"rack": "2"}), pod("q", **TO_WEB))
    bindings = [Binding(ClaimKey("default", name), "a") for name in "pq"]
    with pytest.raises(
        CheckError,
        match=r"has no label rack=2.*\n.*nobody whom its affinity means",
    ):
        check_objects(given, bindings, Promise(["a"]))
