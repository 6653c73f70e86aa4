"""What makes one node better than another."""

from __future__ import annotations

from typing import Any

import pytest

import wire
from dralloc.solve.scheduler import Profile
from dralloc.solve.scheduler.profile import Strategy
from scheduling_wire import AMPLE, attempt, node, pod, scores


def test_nodes_with_more_left_are_better() -> None:
    outcome = attempt(
        node("a"),
        node("b"),
        pod("there", on="a", requests={"cpu": "4"}),
        pod("pod", requests={"cpu": "2"}),
    )
    # Without a request for memory, 200 MiB count: a has 2 of 8 CPUs left, b has 6.
    assert scores(outcome, "NodeResourcesFit") == {
        "a": (25 + 97) // 2,
        "b": (75 + 98) // 2,
    }


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (
            Profile(strategy=Strategy.MOST, scored_resources={"cpu": 1}),
            {"a": 75, "b": 25},
        ),
        (
            Profile(
                strategy=Strategy.RATIO,
                shape=((0, 0), (50, 100), (100, 0)),
                scored_resources={"cpu": 3},
            ),
            {"a": 50, "b": 50},
        ),
        (
            Profile(scored_resources={"cpu": 1, "x.com/y": 5}),
            {"a": 25, "b": 75},
        ),
    ],
)
def test_other_strategies_rate_what_is_left_otherwise(
    profile: Profile, expected: dict[str, int]
) -> None:
    there = pod("there", on="a", requests={"cpu": "4"})
    outcome = attempt(
        node("a"),
        node("b"),
        there,
        pod("pod", requests={"cpu": "2"}),
        profile=profile,
    )
    assert scores(outcome, "NodeResourcesFit") == expected


def test_evenly_used_nodes_are_better() -> None:
    there = pod("there", on="a", requests={"memory": "8Gi"})
    outcome = attempt(
        node("a"), node("b"), there, pod("pod", requests={"cpu": "4"})
    )
    assert scores(outcome, "NodeResourcesBalancedAllocation") == {
        "a": 50 + (50 + 100 - 75) // 2,
        "b": 50 + (50 + 75 - 100) // 2,
    }


def test_pods_without_requests_have_no_balance() -> None:
    assert (
        "NodeResourcesBalancedAllocation"
        not in attempt(node("a"), node("b"), pod("pod")).scores
    )


def test_taints_that_only_discourage_cost() -> None:
    taints = [{"key": key, "effect": "PreferNoSchedule"} for key in ("x", "y")]
    outcome = attempt(
        node("a", taints=taints),
        node("b", taints=taints[:1]),
        node("c"),
        pod("pod"),
    )
    assert scores(outcome, "TaintToleration") == {"a": 0, "b": 150, "c": 300}


def test_preferred_nodes_are_better() -> None:
    def preferring(weight: int, value: str) -> dict[str, Any]:
        expression = {"key": "tier", "operator": "In", "values": [value]}
        return {
            "weight": weight,
            "preference": {"matchExpressions": [expression]},
        }

    preferred = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            preferring(30, "x"),
            preferring(10, "y"),
        ]
    }
    nodes = [
        node("a", labels={"tier": "x"}),
        node("b", labels={"tier": "y"}),
        node("c"),
    ]
    outcome = attempt(nodes, pod("pod", affinity={"nodeAffinity": preferred}))
    assert scores(outcome, "NodeAffinity") == {"a": 200, "b": 66, "c": 0}


def test_preferred_company_is_better() -> None:
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "topologyKey": "zone",
    }
    near = {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 10, "podAffinityTerm": term}
            ]
        }
    }
    away = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "podAffinityTerm": {**term, "labelSelector": {}}}
            ]
        }
    }
    nodes = [node(name, labels={"zone": name}) for name in "abc"]
    there = [
        pod("x", on="a", labels={"app": "db"}),
        pod("y", on="b", affinity=away),
    ]
    outcome = attempt(nodes, there, pod("pod", affinity=near))
    # 10 in a, -5 in b, where somebody would rather be alone.
    assert scores(outcome, "InterPodAffinity") == {"a": 200, "b": 0, "c": 66}
    # The value of a label may be empty, which a node without it has not.
    nodes = [node("a", labels={"zone": ""}), node("b")]
    outcome = attempt(nodes, there[0], pod("pod", affinity=near))
    assert scores(outcome, "InterPodAffinity") == {"a": 200, "b": 0}


def test_pods_of_a_controller_are_spread_by_default() -> None:
    def owned(name: str, **more: Any) -> dict[str, Any]:
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": "u",
            "controller": True,
        }
        made = pod(name, **more)
        return {
            **made,
            "metadata": {**made["metadata"], "ownerReferences": [owner]},
        }

    nodes = [node("a"), node("b"), node("c")]
    outcome = attempt(
        nodes,
        owned("x", on="a"),
        owned("y", on="a"),
        owned("z", on="b"),
        owned("pod"),
    )
    # ln(3 + 2) for each pod on the node, and maxSkew - 1 for the constraint: 5, 4 and 2.
    assert scores(outcome, "PodTopologySpread") == {"a": 80, "b": 120, "c": 200}
    assert (
        "PodTopologySpread"
        not in attempt(nodes, owned("x", on="a"), pod("pod")).scores
    )


def test_images_that_many_nodes_have_count_more() -> None:
    image = [{"names": ["main:1"], "sizeBytes": 500 * 1024 * 1024}]
    outcome = attempt(
        node("a", images=image), node("b", images=image), node("c"), pod("pod")
    )
    assert scores(outcome, "ImageLocality") == {"a": 31, "b": 31, "c": 0}


def test_better_alternatives_make_better_nodes() -> None:
    large, small = (
        wire.device(name, {"size": name}) for name in ("large", "small")
    )
    slices = [
        wire.resource_slice([large], name="s1", pool="a", nodeName="a"),
        wire.resource_slice([small], name="s2", pool="b", nodeName="b"),
    ]
    wanted = wire.first_available(
        "gpu",
        *(
            wire.sub(
                size, f"device.attributes['gpu.example.com'].size == '{size}'"
            )
            for size in ("large", "small")
        ),
    )
    outcome = attempt(
        node("a"),
        node("b"),
        slices,
        wire.device_class(),
        wire.claim("claim", wanted),
        wire.pod("pod", "claim"),
    )
    assert scores(outcome, "DynamicResources") == {"a": 200, "b": 2 * 87}


def test_weights_and_plugins_are_the_profiles() -> None:
    profile = Profile(
        weights={"NodeResourcesFit": 7}, no_scores=frozenset({"ImageLocality"})
    )
    outcome = attempt(
        node("a", AMPLE), node("b", AMPLE), pod("pod"), profile=profile
    )
    assert scores(outcome, "NodeResourcesFit") == {"a": 7 * 98, "b": 7 * 98}
    assert list(outcome.scores) == [
        "TaintToleration",
        "NodeResourcesFit",
        "DynamicResources",
    ]
    assert outcome.totals.tolist() == [300 + 7 * 98] * 2
