"""Once a rule about nodes is lifted, all others are asked again."""

from __future__ import annotations

import pytest

from dralloc import explain
from dralloc.objects.cluster import Cluster
from scenario_strategies import bound_pod, tainted_node
from settled import held
from wire import (
    Json,
    claim,
    cluster,
    device_class,
    gpus,
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
