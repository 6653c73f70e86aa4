"""Clusters in a few lines: what comes out is what was asked for, and Kubernetes would take it."""

from __future__ import annotations

from collections import Counter

import pytest

import dralloc


def test_a_hundred_nodes_and_five_hundred_pods_take_three_lines() -> None:
    builder = dralloc.ClusterBuilder().nodes(
        100, {"H100": 8}, cpu=128, memory="2Ti"
    )
    builder.pods(400, {"H100": 1}, cpu=8).pods(100, {"H100": 4}, priority=10)
    cluster = builder.cluster()
    products = dralloc.capacity(cluster).products
    assert [(row.product, row.total, row.most_free) for row in products] == [
        ("H100", 800, 8)
    ]
    assert len(cluster.pods) == len(cluster.claims) == 500
    assert Counter(pod.spec.priority for pod in cluster.pods) == {
        0: 400,
        10: 100,
    }
    assert len(dralloc.allocate(cluster, mode="first-fit").unplaced) == 0


def test_products_are_of_their_own_class() -> None:
    builder = dralloc.ClusterBuilder("gpus.of.mine").nodes(
        1, {"A 100": 2, "T4": 1}
    )
    builder.pods(3, {"A 100": 1}).pods(1, {"T4": 1, "A 100": 0}, namespace="b")
    cluster = builder.cluster()
    assert sorted(cluster.classes) == ["a-100", "t4"]
    plan = dralloc.allocate(cluster)
    assert {str(demand.key) for demand in plan.unplaced} == {
        "default/a-100-x1-2"
    }
    drivers = {
        result.device_id.driver
        for claim in plan.claims
        for result in claim.results
    }
    assert drivers == {"gpus.of.mine"}


def test_cpu_counts_where_nodes_have_some() -> None:
    builder = dralloc.ClusterBuilder().nodes(1, {"T4": 8}, cpu=4)
    cluster = builder.pods(8, {"T4": 1}, cpu="1500m").cluster()
    assert len(list(dralloc.allocate(cluster).placed)) == 2


def test_objects_are_those_of_kubernetes() -> None:
    builder = dralloc.ClusterBuilder().nodes(2, {"T4": 1}, labels={"zone": "a"})
    builder.nodes(1, {"T4": 2}).pods(
        2, {"T4": 1}, name="train", labels={"job": "x"}
    )
    builder.pods(1, {"T4": 1}, name="train")
    names = [
        (document["kind"], document["metadata"]["name"])
        for document in builder.objects
    ]
    assert len(set(names)) == len(names)
    assert (
        names.count(("Node", "node-2")) == names.count(("Pod", "train-2")) == 1
    )
    validation = dralloc.validate(dralloc.load(builder.objects))
    assert [
        violation
        for violation in validation
        if violation.level.value == "error"
    ] == []


def test_what_it_refuses() -> None:
    with pytest.raises(dralloc.DrallocError, match="T4: -1 is negative"):
        dralloc.ClusterBuilder().nodes(1, {"T4": -1})
    with pytest.raises(
        dralloc.DrallocError, match="a pod has to ask for a device"
    ):
        dralloc.ClusterBuilder().pods(1, {})
