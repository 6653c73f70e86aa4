"""``dralloc plan`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dralloc.cli import app
from dralloc.cli.console import Exit
from wire import (
    Json,
    allocated,
    claim,
    consumes,
    counters,
    device,
    device_class,
    node,
    pod,
    request,
    resource_slice,
)


def plan(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        app, ["plan", *(str(argument) for argument in arguments)]
    )


def gpus(where: str, gpu_count: int) -> list[Json]:
    """A node with GPUs, each as a whole and in two halves."""
    devices = []
    for index in range(gpu_count):
        parts = (("whole", "2"), ("half", "1"), ("half", "1"))
        for part_index, (kind, amount) in enumerate(parts):
            draws = consumes(f"set-{index}", units=amount)
            devices.append(
                device(
                    f"{kind}-{index}-{part_index}",
                    {"kind": kind},
                    consumesCounters=draws,
                )
            )
    sets = [counters(f"set-{index}", units="2") for index in range(gpu_count)]
    common: Json = {"pool": where, "nodeName": where, "count": 2}
    return [
        node(where, size=str(gpu_count)),
        resource_slice(devices, name=f"{where}-devices", **common),
        resource_slice(name=f"{where}-counters", sharedCounters=sets, **common),
    ]


def wants(kind: str) -> Json:
    return request(
        "gpu", f"device.attributes['gpu.example.com'].kind == '{kind}'"
    )


@pytest.fixture
def halves(tmp_path: Path) -> Path:
    """A node with one GPU, one with three; a half is in use, and claims for a half and for a whole are pending."""
    held = {"request": "gpu", "pool": "small", "device": "half-0-1"}
    claims = [
        claim("half", wants("half")),
        claim("whole", wants("whole")),
        allocated("held", held),
    ]
    path = tmp_path / "cluster.yaml"
    path.write_text(
        yaml.safe_dump_all(
            [device_class(), *gpus("small", 1), *gpus("large", 3), *claims]
        )
    )
    return path


def answer(*arguments: str | Path) -> Json:
    result = plan(*arguments, "--json")
    assert result.exit_code == Exit.DONE, result.output
    document: Json = json.loads(result.stdout)
    return document


def test_headroom_of_two_claims_is_a_front(halves: Path) -> None:
    document = answer("headroom", halves, "--claim", "half", "--claim", "whole")
    assert [entry["number"] for entry in document["alone"]] == [7, 3]
    assert [point["numbers"] for point in document["joint"]["points"]] == [
        [7, 0],
        [5, 1],
        [3, 2],
        [1, 3],
    ]
    assert document["joint"]["complete"] is document["joint"]["exact"] is True
    shown = plan("headroom", halves, "--claim", "half", "--claim", "whole")
    assert "What fits together" in shown.stdout
    assert "not all" not in shown.stdout


def test_a_long_front_is_cut_and_says_so(halves: Path) -> None:
    arguments = (
        "headroom",
        halves,
        "--claim",
        "half",
        "--claim",
        "whole",
        "--points",
        "2",
    )
    document = answer(*arguments)
    assert len(document["joint"]["points"]) == 2
    assert document["joint"]["complete"] is False
    assert "These 2 points are not all" in plan(*arguments).stdout


def test_four_claims_have_no_front(halves: Path) -> None:
    result = plan(
        "headroom",
        halves,
        *(part for name in "abcd" for part in ("--claim", name)),
    )
    assert result.exit_code == Exit.INPUT
    assert (
        result.stderr
        == "error: headroom for 4 claims: fronts are found for 3 at most\n"
    )


def test_headroom_takes_no_numbers(halves: Path) -> None:
    result = plan("headroom", halves, "--claim", "half=3")
    assert result.exit_code == Exit.INPUT
    assert result.stderr == (
        "error: default/half=3: headroom counts single copies; it takes no number\n"
    )


def test_fewest_nodes_for_all_that_is_pending(halves: Path) -> None:
    document = answer("fewest-nodes", halves)
    assert document["mix"] == [
        {"claim": "default/half", "number": 1},
        {"claim": "default/whole", "number": 1},
    ]
    assert {row["kind"]: row["number"] for row in document["nodes"]} == {
        "large": 1,
        "small": 0,
    }
    assert (document["cost"], document["bound"], document["exact"]) == (
        "1",
        "1",
        True,
    )


def test_the_cheapest_kinds_of_nodes(halves: Path) -> None:
    kinds = (
        "--kind",
        "one=small",
        "--kind",
        "three=size=3",
        "--price",
        "one=1",
        "--price",
        "three=2.5",
    )
    document = answer(
        "fewest-nodes",
        halves,
        "--claim",
        "half=3",
        "--claim",
        "whole=3",
        *kinds,
    )
    assert {row["kind"]: row["number"] for row in document["nodes"]} == {
        "one": 2,
        "three": 1,
    }
    assert document["cost"] == document["bound"] == "4.5"
    shown = plan(
        "fewest-nodes",
        halves,
        "--claim",
        "half=3",
        "--claim",
        "whole=3",
        *kinds,
    ).stdout
    assert "Cost 4.5: proven to be the lowest." in shown


@pytest.fixture
def zones(tmp_path: Path) -> Path:
    """Four nodes of one type, two in each zone, one of them cordoned; three pods with a zone each, and a claim."""
    objects = [device_class()]
    for name, zone in (("n0", "a"), ("n1", "a"), ("n2", "b"), ("n3", "b")):
        node_object, *slices = gpus(name, 1)
        node_object["metadata"]["labels"] |= {"zone": zone, "type": "big"}
        objects += [node_object, *slices]
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    objects[1]["spec"] = {"unschedulable": True, "taints": [cordon]}
    for pod_index, zone in enumerate("aab"):
        objects += [
            claim(f"c{pod_index}", wants("whole")),
            pod(f"p{pod_index}", f"c{pod_index}", nodeSelector={"zone": zone}),
        ]
    path = tmp_path / "zones.yaml"
    path.write_text(yaml.safe_dump_all([*objects, claim("c3", wants("whole"))]))
    return path


_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    """Three A100 and two H100 nodes with equal GPUs, and four nodes without any."""
    objects = [device_class()]
    for machine, count in (("a100", 3), ("h100", 2), ("cpu", 4)):
        for node_index in range(count):
            node_object, *slices = gpus(f"{machine}-{node_index}", 1)
            node_object["metadata"]["labels"] |= {
                _INSTANCE_TYPE: machine,
                "series": machine,
            }
            objects += [node_object, *(slices if machine != "cpu" else ())]
    path = tmp_path / "machines.yaml"
    path.write_text(yaml.safe_dump_all([*objects, claim("c", wants("whole"))]))
    return path


@pytest.mark.parametrize("kind", ["{}=series={}", "{}={}-0"])
def test_nodes_of_another_kind_are_not_counted_and_idle_ones_are(
    machines: Path, kind: str
) -> None:
    kinds = [kind.format(name, name) for name in ("a100", "h100", "cpu")]
    document = answer(
        "fewest-nodes",
        machines,
        "--claim",
        "c=2",
        *(part for definition in kinds for part in ("--kind", definition)),
    )
    assert {row["kind"]: row["existing"] for row in document["nodes"]} == {
        "a100": 3,
        "h100": 2,
        "cpu": 4,
    }


def test_without_kinds_equivalent_nodes_are_counted_together(
    machines: Path,
) -> None:
    document = answer("fewest-nodes", machines, "--claim", "c=2")
    assert [(row["kind"], row["existing"]) for row in document["nodes"]] == [
        ("a100-0", 5)
    ]


def test_a_cordon_makes_no_other_kind_of_node(zones: Path) -> None:
    document = answer(
        "fewest-nodes", zones, "--claim", "c3=3", "--kind", "big=type=big"
    )
    assert [
        (row["kind"], row["example"], row["number"])
        for row in document["nodes"]
    ] == [("big", "n0", 3)]
    assert document["cost"] == "3"


def test_zones_are_counted_apart_where_pods_choose_them(zones: Path) -> None:
    document = answer(
        "fewest-nodes", zones, "--kind", "big=type=big", "--price", "big=2"
    )
    counts = {row["example"]: row["number"] for row in document["nodes"]}
    assert {row["kind"] for row in document["nodes"]} == {"big"}
    assert (set(counts), sum(counts.values()), document["cost"]) == (
        {"n0", "n2"},
        4,
        "8",
    )
    alone = answer(
        "fewest-nodes", zones, "--pod", "p2=3", "--kind", "big=type=big"
    )
    assert [(row["example"], row["number"]) for row in alone["nodes"]] == [
        ("n2", 3)
    ]


def test_nodes_of_a_kind_offer_the_same(zones: Path) -> None:
    other, *slices = gpus("n4", 2)
    other["metadata"]["labels"]["type"] = "big"
    zones.write_text(
        zones.read_text() + "---\n" + yaml.safe_dump_all([other, *slices])
    )
    result = plan(
        "fewest-nodes", zones, "--claim", "c3", "--kind", "big=type=big"
    )
    differing = "nodes n0 and n4 differ in what they offer; name one as example"
    assert result.stderr == f"error: --kind big=type=big: {differing}\n"
    assert (
        plan(
            "fewest-nodes", zones, "--pod", "p2", "--kind", "big=type=big"
        ).exit_code
        == Exit.DONE
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "a=none"], '--kind a=none: node "none" does not exist'),
        (["--kind", "a=size=7"], "--kind a=size=7: no node has the label"),
        (["--kind", "a"], "--kind a: expected NAME=NODE or NAME=LABEL=VALUE"),
        (
            ["--kind", "a=small", "--kind", "a=large"],
            "--kind a: is given twice",
        ),
        (
            ["--price", "small=2", "--price", "small=3"],
            "--price small: is given twice",
        ),
        (["--price", "b=2"], "--price b: there is no such kind of node, only"),
        (
            ["--price", "small=2"],
            "node kind large: has no price; give all kinds one with --price, or none",
        ),
        (
            ["--price", "small=0"],
            "--price small=0: expected KIND=AMOUNT, with an amount above 0",
        ),
        (
            ["--claim", "none"],
            "ResourceClaim or ResourceClaimTemplate default/none: not found",
        ),
    ],
)
def test_what_fewest_nodes_cannot_use(
    halves: Path, arguments: list[str], message: str
) -> None:
    result = plan("fewest-nodes", halves, *arguments)
    assert result.exit_code == Exit.INPUT
    assert result.stderr.startswith(f"error: {message}")


def test_what_fits_nowhere_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(
        yaml.safe_dump_all(
            [device_class(), *gpus("small", 1), claim("a", wants("quarter"))]
        )
    )
    result = plan("fewest-nodes", path, "--claim", "a", "--kind", "one=small")
    assert result.stderr == "error: default/a: fits on no node of kind one\n"


def test_what_is_pending_and_cannot_be_had_is_left_out_with_the_reason(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cluster.yaml"
    claims = [
        claim("whole", wants("whole")),
        claim("quarter", wants("quarter")),
        claim("both", wants("half")),
    ]
    pods = [pod("a", "both"), pod("b", "both"), pod("c", "none")]
    path.write_text(
        yaml.safe_dump_all([device_class(), *gpus("small", 1), *claims, *pods])
    )
    document = answer("fewest-nodes", path)
    assert document["mix"] == [{"claim": "default/whole", "number": 1}]
    assert document["cost"] == "1"
    pods_left_out = [
        "pod default/a: shares a claim with other pods",
        "pod default/b: shares a claim with other pods",
    ]
    assert document["leftOut"][:2] == pods_left_out
    assert document["leftOut"][2].startswith("pod default/c: ")
    assert document["leftOut"][3:] == [
        "default/quarter: fits on no node of kind small"
    ]
    assert (
        "warning: does not count: default/quarter"
        in plan("fewest-nodes", path).stderr
    )


def test_nothing_needs_no_nodes(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(
        yaml.safe_dump_all(
            [device_class(), node("empty"), claim("a", wants("whole"))]
        )
    )
    document = answer("fewest-nodes", path)
    assert (document["cost"], document["nodes"], document["exact"]) == (
        "0",
        [],
        True,
    )
    assert document["leftOut"] == ["default/a: fits on no node"]


def test_a_device_for_all_nodes_makes_no_kind_of_node(tmp_path: Path) -> None:
    shared = resource_slice([device("gpu-0", {"kind": "whole"})], allNodes=True)
    path = tmp_path / "cluster.yaml"
    path.write_text(
        yaml.safe_dump_all(
            [
                device_class(),
                node("a"),
                node("b"),
                shared,
                claim("a", wants("whole")),
            ]
        )
    )
    result = plan("fewest-nodes", path)
    assert result.exit_code == Exit.INPUT
    assert (
        "device gpu.example.com/pool-0/gpu-0: is within reach of other nodes"
        in result.stderr
    )


def test_layouts(halves: Path) -> None:
    document = answer(
        "partition-layout", halves, "--claim", "half=5", "--claim", "whole"
    )
    assert document["onDemand"] == {"served": [5, 1], "total": 6, "bound": 6}
    single, best = document["fixed"]
    assert (single["layoutsPerKind"], single["total"], single["lost"]) == (
        1,
        5,
        1,
    )
    assert (best["total"], best["lost"]) == (6, 0)
    assert sorted(layout["units"] for layout in best["layouts"]) == [1, 3]
    assert (
        "one layout"
        in plan(
            "partition-layout", halves, "--claim", "half=5", "--claim", "whole"
        ).stdout
    )


def test_layouts_are_for_claims_of_one_device(halves: Path) -> None:
    pair = claim(
        "pair",
        {**wants("half"), "exactly": {**wants("half")["exactly"], "count": 2}},
    )
    halves.write_text(halves.read_text() + "---\n" + yaml.safe_dump(pair))
    result = plan("partition-layout", halves, "--claim", "pair")
    assert result.exit_code == Exit.INPUT
    rule = (
        "layouts are found for claims of one device each, without admin access"
    )
    assert result.stderr == f"error: default/pair: {rule}\n"
    assert answer("partition-layout", halves)["leftOut"] == [
        f"default/pair: {rule}"
    ]


def test_layouts_are_for_devices_that_are_not_shared(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    shared = resource_slice(
        [device("gpu-0", {"kind": "whole"}, allowMultipleAllocations=True)]
    )
    path.write_text(
        yaml.safe_dump_all(
            [device_class(), node(), shared, claim("a", wants("whole"))]
        )
    )
    result = plan("partition-layout", path)
    assert result.stderr.startswith(
        "error: device gpu.example.com/pool-0/gpu-0: can be shared; layouts are for devices"
    )


def test_who_asks_for_shared_devices_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    devices = [
        device("gpu-0", {"kind": "whole"}, allowMultipleAllocations=True),
        device("gpu-1", {"kind": "other"}),
    ]
    claims = [claim("a", wants("whole")), claim("b", wants("other"))]
    path.write_text(
        yaml.safe_dump_all(
            [device_class(), node(), resource_slice(devices), *claims]
        )
    )
    document = answer("partition-layout", path)
    assert document["leftOut"] == [
        "default/a: device gpu.example.com/pool-0/gpu-0: can be shared; "
        "layouts are for devices that one claim has for itself"
    ]
    assert [row["total"] for row in document["fixed"]] == [1]
