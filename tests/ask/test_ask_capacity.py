"""How much there is: every device is counted once, and what is called free can be given."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import dralloc
from dralloc.ask.capacity import DeviceState
from dralloc.cli import app
from dralloc.cli.console import Exit
from examples import examples
from live.snapshot.recorded import Recorded, serving
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

TAINT = {"key": "broken", "value": "fan", "effect": "NoSchedule"}


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["capacity", *map(str, arguments)])


def everything() -> list[Json]:
    """Whole devices of two products, a tainted one, one in use, a cordoned node, an incomplete pool, partitions."""
    whole = [
        device("a", {"productName": "A100"}),
        device("b", {"productName": "A100"}),
        device("c", {"productName": "T4"}, taints=[TAINT]),
    ]
    parts = [
        device(
            f"part-{part_index}",
            {"model": "M", "profile": "half"},
            consumesCounters=consumes("s", memory="40Gi"),
        )
        for part_index in range(3)
    ]
    return [
        device_class(),
        node("one"),
        node("two") | {"spec": {"unschedulable": True}},
        node("three"),
        resource_slice(whole, name="one", pool="one", nodeName="one"),
        resource_slice(gpus(2), name="two", pool="two", nodeName="two"),
        resource_slice(
            gpus(4), name="three", pool="three", nodeName="three", count=2
        ),
        resource_slice(
            parts, name="parts", pool="parts", nodeName="three", count=2
        ),
        resource_slice(
            name="sets",
            pool="parts",
            nodeName="three",
            count=2,
            sharedCounters=[counters("s", memory="70Gi")],
        ),
        allocated("held", {"device": "a", "pool": "one"}),
        allocated("half", {"device": "part-0", "pool": "parts"}),
    ]


def test_devices_are_counted_by_what_they_are_to_the_next_claim() -> None:
    report = dralloc.capacity(cluster(everything()))
    told = {(row.product, row.node): dict(row.states) for row in report.by_node}
    assert told == {
        ("A100", "one"): {DeviceState.IN_USE: 1, DeviceState.FREE: 1},
        ("T4", "one"): {DeviceState.TAINTED: 1},
        ("", "two"): {DeviceState.CORDONED: 2},
        ("", "three"): {DeviceState.INCOMPLETE: 4},
        ("M / half", "three"): {DeviceState.IN_USE: 1, DeviceState.BLOCKED: 2},
    }
    assert report.headline == (
        "12 devices (3 of them partitions, which overlap) on 3 nodes: 2 in use, 1 free, 2 blocked, 7 held back"
    )
    memory = [
        (
            row.kind,
            row.name,
            *(
                amount // 2**30 // 10**9
                for amount in (row.total, row.in_use, row.largest)
            ),
        )
        for row in report.amounts
    ]
    assert memory == [("counter", "memory", 70, 40, 30)]


def test_nothing_is_free_of_a_shared_device_that_somebody_has_as_a_whole() -> (
    None
):
    shared = gpus(
        1, allowMultipleAllocations=True, capacity={"memory": {"value": "8Gi"}}
    )
    objects = [
        device_class(),
        node("one"),
        resource_slice(shared, name="one", pool="one", nodeName="one"),
        allocated("held", {"device": "gpu-0", "pool": "one"}),
    ]
    [memory] = dralloc.capacity(cluster(objects)).amounts
    assert memory.in_use == memory.total
    assert not memory.largest
    # So it is in the figures of an answer, and for what is stranded.
    [utilisation] = dralloc.allocate(cluster(objects)).metrics.utilisation
    assert utilisation.used == utilisation.before == memory.total
    assert dralloc.stranded(cluster(objects)).headline.startswith("0 of 1 ")


def test_a_device_of_which_somebody_has_a_share_is_in_use() -> None:
    shared = gpus(
        2, allowMultipleAllocations=True, capacity={"memory": {"value": "8Gi"}}
    )
    share = {
        "device": "gpu-0",
        "shareID": "a8f1c2d3-0000-4000-8000-000000000001",
        "consumedCapacity": {"memory": "1Gi"},
    }
    report = dralloc.capacity(
        cluster(
            device_class(), resource_slice(shared), allocated("held", share)
        )
    )
    [row] = report.products
    assert (row.in_use, row.free) == (1, 1)


def test_products_are_told_apart_by_any_attribute() -> None:
    objects = [
        device_class(),
        node(),
        resource_slice([*gpus(2), device("x", {"index": 0, "odd": True})]),
    ]
    report = dralloc.capacity(
        cluster(objects), by=["index", "gpu.example.com/odd"]
    )
    assert [(row.product, row.total) for row in report.products] == [
        ("0", 1),
        ("0 / true", 1),
        ("1", 1),
    ]
    with pytest.raises(
        dralloc.DrallocError, match="by: no device has an attribute colour"
    ):
        dralloc.capacity(cluster(objects), by="colour")


def test_devices_that_several_nodes_reach_are_nobodys() -> None:
    objects = [
        device_class(),
        node("a"),
        node("b"),
        resource_slice(gpus(2), allNodes=True),
    ]
    report = dralloc.capacity(cluster(objects))
    assert [(row.node, row.free) for row in report.by_node] == [
        ("(several)", 2)
    ]


def test_the_newest_generation_counts() -> None:
    slices = [
        resource_slice(gpus(5), name="old"),
        resource_slice(gpus(2), name="new", generation=2),
    ]
    assert (
        dralloc.capacity(cluster(device_class(), node(), slices))
        .products[0]
        .total
        == 2
    )


@settings(max_examples=examples(40), deadline=None)
@given(st.randoms(use_true_random=False))
def test_what_is_free_can_be_given_and_the_rest_cannot(random: Random) -> None:
    """Asked of first fit, with one claim for each device that there is."""
    objects: list[Json] = [device_class()]
    for name in ("a", "b", "c"):
        devices = [
            gpu | {"taints": [TAINT] * (random.random() < 0.3)}
            for gpu in gpus(random.randint(1, 4))
        ]
        cordoned = {"spec": {"unschedulable": random.random() < 0.3}}
        pool = resource_slice(
            devices,
            name=name,
            pool=name,
            nodeName=name,
            count=random.choice([1, 1, 1, 2]),
        )
        held = [
            allocated(f"{name}-{n}", {"device": f"gpu-{n}", "pool": name})
            for n in range(random.randint(0, 1))
        ]
        objects += [node(name) | cordoned, pool, *held]
    report = dralloc.capacity(cluster(objects))
    [row] = report.products
    asked = [
        manifest
        for n in range(row.total + 1)
        for manifest in (
            claim(f"wanted-{n}", request()),
            pod(f"p-{n}", f"wanted-{n}"),
        )
    ]
    placed = list(
        dralloc.allocate(cluster(objects, asked), mode="first-fit").placed
    )
    assert row.free == len(placed)
    assert {
        node_row.node: node_row.free
        for node_row in report.by_node
        if node_row.free
    } == Counter(placement.node for placement in placed)
    assert row.most_free == max(
        (node_row.free for node_row in report.by_node), default=0
    )
    assert row.total == row.in_use + row.free + row.blocked + sum(
        row.held_back.values()
    )
    assert report.node_count == 3


def test_devices_that_are_held_back_are_on_nodes_too() -> None:
    """Of two pools that are not complete one is for a node by its name, and one for those that a selector selects."""
    only_b = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    slices = [
        resource_slice(gpus(2), name="x", pool="x", count=2, nodeName="a"),
        resource_slice(
            gpus(1),
            name="y",
            pool="y",
            count=2,
            nodeSelector={"nodeSelectorTerms": [{"matchFields": [only_b]}]},
        ),
        resource_slice(gpus(3), name="z", pool="z", count=2, allNodes=True),
    ]
    report = dralloc.capacity(
        cluster(device_class(), node("a"), node("b"), slices)
    )
    assert report.headline == (
        "6 devices on 2 nodes: 0 in use, 0 free, 6 held back"
    )
    assert [(row.node, row.total) for row in report.by_node] == [
        ("(several)", 3),
        ("a", 2),
        ("b", 1),
    ]


def test_whole_devices_are_among_what_answers_use() -> None:
    objects = [
        device_class(),
        node(),
        resource_slice([device(f"g{n}", {"model": "T4"}) for n in range(4)]),
    ]
    plan = dralloc.allocate(cluster(*objects, claim("c", request(count=3))))
    assert [
        (row.title, row.share_before, row.share)
        for row in plan.metrics.utilisation
    ] == [("T4 (gpu.example.com)", 0, 0.75)]


def test_the_command_prints_tables_and_json(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(everything()))
    shown = command(path)
    assert shown.exit_code == Exit.DONE
    assert "pool is incomplete" in shown.stdout
    told = json.loads(command(path, "--json", "--by", "model").stdout)
    assert told["by"] == ["model"]
    assert told["products"][-1] == {
        "driver": "gpu.example.com",
        "product": "M",
        "node": None,
        "pool": None,
        "total": 3,
        "inUse": 1,
        "free": 0,
        "blocked": 2,
        "heldBack": {},
        "mostFree": 0,
        "partitions": True,
    }
    assert command().exit_code == Exit.INPUT
    assert "nothing to read" in command().stderr


def test_a_live_cluster_is_asked_and_files_come_on_top(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    more = tmp_path / "more.yaml"
    more.write_text(
        yaml.safe_dump_all(
            [
                node("b"),
                resource_slice(gpus(3), name="b", pool="b", nodeName="b"),
            ]
        )
    )
    slices = [resource_slice(gpus(2), name="a", pool="a", nodeName="a")]
    server = Recorded(
        {
            "/api/v1/nodes": [node("a")],
            "/apis/resource.k8s.io/v1/resourceslices": slices,
        }
    )
    with serving(server, tmp_path) as kubeconfig:
        live = command("--live", "--kubeconfig", kubeconfig)
        both = command(more, "--live", "--kubeconfig", kubeconfig)
    assert live.stdout.startswith("2 devices on 1 node: 0 in use, 2 free")
    assert both.stdout.startswith("5 devices on 2 nodes: 0 in use, 5 free")


def test_a_live_cluster_is_explained_as_its_version_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The version that the API server says it is counts, whatever its nodes report."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    newer = node("a")
    newer["status"] = {"nodeInfo": {"kubeletVersion": "v1.36.0"}}
    resource = "/apis/resource.k8s.io/v1"
    lists = {
        "/api/v1/nodes": [newer],
        f"{resource}/resourceslices": [
            resource_slice(gpus(2), name="a", pool="a", nodeName="a")
        ],
        f"{resource}/deviceclasses": [device_class()],
        f"{resource}/resourceclaims": [claim("big", request(count=3))],
    }
    with serving(Recorded(lists, version="v1.35.4"), tmp_path) as kubeconfig:
        live = ["explain", "--live", "--kubeconfig", str(kubeconfig)]
        every = CliRunner().invoke(app, live)
        single = CliRunner().invoke(app, [*live, "--claim", "default/big"])
        settled = CliRunner().invoke(app, [*live, "--kubernetes", "1.35"])
    assert "0 placed, 1 pending for 1 reason" in every.stdout
    assert "default/big is not placed" in single.stdout
    for result in (every, single):
        assert result.stderr.startswith(
            "warning: the API server runs Kubernetes 1.35, where "
        )
        assert result.stderr.count("warning") == 1
    assert settled.stderr == ""
