"""Once a rule about nodes is lifted, all others are asked again."""

from __future__ import annotations

import pytest

from dralloc import explain
from dralloc.ask.explain import Explanation
from dralloc.ask.explain.changes import Cost
from dralloc.objects.cluster import Cluster
from scenario_strategies import bound_pod, tainted_node
from settled import held
from wire import (
    Json,
    allocated,
    claim,
    cluster,
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


def one_node(node: Json, *objects: Json) -> Cluster:
    return cluster(
        device_class(),
        node,
        resource_slice(gpus(1), nodeName="a"),
        list(objects),
    )


CORDONED = tainted_node("a", taints=()) | {"spec": {"unschedulable": True}}
OTHER_TAINT: Json = {"key": "k", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "node", [CORDONED, tainted_node("a", taints=(OTHER_TAINT,))]
)
def test_a_node_without_cpu_is_no_remedy(node: Json) -> None:
    explanation = explain(
        one_node(node, claim("c", request()), bound_pod("p", "c", cpu="1000")),
        pod="default/p",
    )
    assert not explanation.suggestions
    assert explanation.conflict is not None
    assert [member.title for member in explanation.conflict.members] == [
        "Insufficient cpu"
    ]


def test_nothing_is_hidden_behind_what_runs_short_first() -> None:
    """A node with room for one pod, which takes all of its CPU: more room would not help."""
    full = tainted_node("a", cpu="1", taints=())
    full["status"]["allocatable"]["pods"] = "1"
    running = bound_pod("r", nodeName="a")
    explanation = explain(
        one_node(full, running, claim("c", request()), bound_pod("p", "c")),
        pod="default/p",
    )
    assert (
        explanation.reasons[0].causes[0].text
        == "Insufficient cpu; Too many pods"
    )
    assert [suggestion.text for suggestion in explanation.suggestions] == [
        "add a node like a"
    ]


@pytest.mark.parametrize(
    "node", [CORDONED, tainted_node("a", taints=(OTHER_TAINT,))]
)
def test_a_node_with_cpu_is_a_remedy(node: Json) -> None:
    explanation = explain(
        one_node(node, claim("c", request()), bound_pod("p", "c", cpu="8")),
        pod="default/p",
    )
    assert explanation.suggestions[0].text.startswith("lift node")


def test_whoever_gives_back_a_device_gives_back_cpu() -> None:
    running = [
        held("x", "pool-0", "gpu-0"),
        bound_pod("r", "x", cpu="6", nodeName="a"),
    ]
    running[0]["status"]["allocation"].pop("nodeSelector")
    waiting = [claim("c", request()), bound_pod("p", "c", cpu="6")]
    explanation = explain(
        one_node(tainted_node("a"), *running, *waiting), pod="default/p"
    )
    assert explanation.conflict is not None
    assert [member.title for member in explanation.conflict.members] == [
        "claim default/c, request gpu",
        "allocated claim default/x",
    ]
    assert "release claim default/x (priority 0)" in [
        suggestion.text for suggestion in explanation.suggestions
    ]


def added(explanation: Explanation) -> list[str]:
    return [
        suggestion.text
        for suggestion in explanation.suggestions
        if suggestion.cost is Cost.NODE
    ]


def in_use(pool: str, *devices: str) -> Json:
    results = ({"device": name, "pool": pool} for name in devices)
    return allocated(f"of-{pool}", *results)


def test_nodes_whose_counters_have_more_are_a_type_of_their_own() -> None:
    """Two partitions fit on a GPU of the second node, and one on that of the first, whose devices are equal."""
    parts = [
        device(f"part-{index}", consumesCounters=consumes("gpu", memory="20Gi"))
        for index in range(2)
    ]
    objects: list[Json] = []
    for name, memory in ("small", "20Gi"), ("large", "40Gi"):
        for part, content in enumerate(
            (
                {"sharedCounters": [counters("gpu", memory=memory)]},
                {"devices": parts},
            )
        ):
            objects.append(
                resource_slice(
                    name=f"{name}-{part}",
                    pool=name,
                    count=2,
                    nodeName=name,
                )
            )
            objects[-1]["spec"] |= content
    explanation = explain(
        cluster(
            [node("small"), node("large")],
            device_class(),
            objects,
            in_use("large", "part-0", "part-1"),
            claim("c", request(count=2)),
        ),
        claim="default/c",
    )
    assert added(explanation) == ["add a node like large"]


def test_nodes_whose_devices_have_more_in_common_are_a_type_of_their_own() -> (
    None
):
    sockets = {"apart": (0, 1), "together": (0, 0)}
    slices = [
        resource_slice(
            [
                device(f"gpu-{index}", {"socket": socket})
                for index, socket in enumerate(of_devices)
            ],
            name=name,
            pool=name,
            nodeName=name,
        )
        for name, of_devices in sockets.items()
    ]
    same = {"matchAttribute": "gpu.example.com/socket"}
    explanation = explain(
        cluster(
            list(map(node, sockets)),
            device_class(),
            slices,
            in_use("together", "gpu-0", "gpu-1"),
            claim("c", request(count=2), constraints=[same]),
        ),
        claim="default/c",
    )
    assert added(explanation) == ["add a node like together"]


def test_nodes_of_several_zones_are_types_of_their_own_to_rules_between_pods() -> (
    None
):
    slices = [
        resource_slice(gpus(1), name=name, pool=name, nodeName=name)
        for name in ("a", "b")
    ]
    nodes = [node("a", zone="1"), node("b", zone="2")]
    database = pod("database", nodeName="b")
    database["metadata"]["labels"] = {"app": "database"}
    beside = {
        "labelSelector": {"matchLabels": {"app": "database"}},
        "topologyKey": "zone",
    }
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [beside]
        }
    }
    explanation = explain(
        cluster(
            nodes,
            device_class(),
            slices,
            in_use("b", "gpu-0"),
            database,
            claim("c", request()),
            pod("p", "c", affinity=affinity),
        ),
        pod="default/p",
    )
    assert added(explanation) == ["add a node like b"]
