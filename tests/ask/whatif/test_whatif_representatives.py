"""One node of each kind is compiled, and tells about all of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from cluster_strategies import CLASSES, DRIVERS, pods, pools, taint_rules
from dralloc.ask.whatif import MixEntry, headroom
from dralloc.ask.whatif.copies import count_copies
from dralloc.ask.whatif.headroom import POINTS, pareto_front
from dralloc.ask.whatif.mix_entries import Source, compile_mix
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.features import ALL_FEATURES
from examples import examples
from inventory_strategies import rarely
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    consumes,
    counters,
    device,
    device_class,
    node,
    pod,
    request,
    resource_slice,
)

EXAMPLES = examples(100)
THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

WISH = MixEntry.parse("default/entry")


def named(kind: list[Json], name: str) -> list[Json]:
    """The objects of a kind of node, for a node of this name."""
    objects: list[Json] = json.loads(json.dumps(kind).replace("NAME", name))
    return objects


@st.composite
def kinds(draw: st.DrawFn) -> list[Json]:
    """A node with pools of its own, and what is allocated there."""
    labels = (
        {"zone": draw(st.sampled_from("ab"))} if draw(st.booleans()) else {}
    )
    objects = [node("NAME", **labels)]
    if draw(rarely()):
        objects[0]["spec"] = {"unschedulable": True}
    for driver in DRIVERS[: draw(st.integers(1, 2))]:
        objects += draw(pools(driver, "NAME", {"nodeName": "NAME"}))
        if draw(rarely()):
            objects += draw(pools(driver, "NAME", {"nodeName": "NAME"}, 2))
        if draw(st.booleans()):
            result: Json = {
                "driver": driver,
                "pool": "NAME",
                "device": f"device-{draw(st.integers(0, 2))}",
            }
            if draw(st.booleans()):
                amounts = {"memory": str(draw(st.integers(1, 3)))}
                result |= {
                    "shareID": str(UUID(int=1)),
                    "consumedCapacity": amounts,
                }
            objects.append(allocated(f"held-{driver}-NAME", result))
    return objects


EDITS: dict[str, list[Any]] = {
    "device": ["device-0", "device-1"],
    "generation": [1, 2],
    "int": [0, 1],
    "memory": ["1", "2"],
    "name": ["device-0", "device-1", "a", "z"],
    "nodeName": ["elsewhere"],
    "resourceSliceCount": [1, 2],
    "shareID": [None, str(UUID(int=2))],
    "value": ["1", "2", "6"],
}
"""What to write instead, by field."""


def fields(value: Any) -> Iterator[tuple[Json, str]]:
    """Where an edit is possible."""
    for key, child in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        if key in EDITS and not isinstance(child, dict):
            yield value, key
        yield from fields(child)


@st.composite
def edited(draw: st.DrawFn, kind: list[Json]) -> list[Json]:
    """The kind of node with one field changed in what is published or allocated."""
    changed: list[Json] = json.loads(json.dumps(kind))
    slices = [
        document for document in changed if document["kind"] == "ResourceSlice"
    ]
    locations = [
        *fields([document["spec"] for document in slices]),
        *((document["metadata"], "name") for document in slices),
    ]
    locations += fields([document.get("status") for document in changed])
    holder, key = draw(st.sampled_from(locations))
    value = draw(st.sampled_from(EDITS[key]))
    if holder in [document["metadata"] for document in slices]:
        holder[key] = f"{value}-{holder[key]}"
    else:
        holder[key] = value
    return changed


@st.composite
def crowded(draw: st.DrawFn) -> list[Json]:
    """A few kinds of nodes that are almost equal, several of each, perhaps with a pool for all of them, and a pod."""
    objects: list[Json] = [*CLASSES]
    base = draw(kinds())
    node_kinds = [
        base,
        draw(edited(base) if draw(st.integers(0, 3)) else kinds()),
    ]
    for index in range(draw(st.integers(1, 4))):
        objects += named(draw(st.sampled_from(node_kinds)), f"node-{index}")
    if draw(rarely()):
        objects += draw(pools(DRIVERS[1], "network", {"allNodes": True}))
    if draw(rarely()):
        objects.append(draw(taint_rules("device-0")))
    wanted = draw(pods("entry"))
    if draw(rarely()):
        wanted[0]["spec"]["nodeSelector"] = {"zone": "a"}
    return [*objects, *wanted]


@THOROUGH
@given(crowded(), st.booleans())
def test_it_makes_no_difference(objects: list[Json], strict: bool) -> None:
    whole = cluster(objects)
    entry = MixEntry.parse("default/entry", Source.POD)
    staged = compile_mix(whole, [entry], strict=strict)
    [copy_count] = headroom(whole, entry, strict=strict).alone
    assert copy_count == count_copies(
        staged.compiled.problem, staged.demands[0]
    )
    counted = compile_mix(whole, [entry], strict=strict, once=True)
    compiled = counted.compiled.problem.nodes
    event(f"{len(compiled)} of {len(whole.nodes)} nodes")
    assert len(counted.order) == len(whole.nodes)
    assert [
        compiled[node_index].name for node_index in dict.fromkeys(counted.order)
    ] == [compiled_node.name for compiled_node in compiled]


@THOROUGH
@given(crowded(), st.data())
def test_nor_for_several(objects: list[Json], data: st.DataObject) -> None:
    whole = cluster([*objects, *data.draw(pods("other"))])
    entries = [
        MixEntry.parse(f"default/{name}", Source.POD)
        for name in ("entry", "other")
    ]
    answer = headroom(whole, *entries)
    staged = compile_mix(whole, entries)
    alone = tuple(
        count_copies(staged.compiled.problem, demand)
        for demand in staged.demands
    )
    assert answer.alone == alone
    most = tuple(
        copy_count.bound for copy_count in alone if copy_count.bound is not None
    )
    joint = (
        pareto_front(
            staged.compiled.problem, staged.demands, most, limit=POINTS
        )
        if len(most) == len(alone)
        else None
    )
    assert answer.joint == joint


def gpus(
    name: str,
    *,
    kind: str = "small",
    units: str = "2",
    uuids: str = "xx",
    **fields: Any,
) -> list[Json]:
    """A node with two halves of a GPU."""
    draws = consumes("set", units="1")
    devices = [
        device(
            f"half-{half}",
            {"kind": kind, "uuid": f"{name}-{uuid}"},
            consumesCounters=draws,
            **fields,
        )
        for half, uuid in enumerate(uuids)
    ]
    common: Json = {"pool": name, "nodeName": name, "count": 2}
    return [
        node(name, zone="a" if name < "node-2" else "b"),
        resource_slice(devices, name=f"{name}-devices", **common),
        resource_slice(
            name=f"{name}-counters",
            sharedCounters=[counters("set", units=units)],
            **common,
        ),
    ]


def row(*objects: Json | list[Json], **fields: Any) -> Cluster:
    """Four such nodes."""
    rows = [gpus(f"node-{index}", **fields) for index in range(4)]
    return cluster(device_class(), *rows, *objects)


SMALL = claim(
    "entry",
    request("gpu", "device.attributes['gpu.example.com'].kind == 'small'"),
)
BY_NAME = claim(
    "entry",
    request("gpu", "device.attributes['gpu.example.com'].uuid != 'node-2-x'"),
)
NUMBERED = claim(
    "entry",
    request(),
    request("more"),
    constraints=[{"matchAttribute": "gpu.example.com/uuid"}],
)


def times(
    whole: Cluster, entry: MixEntry = WISH, **options: Any
) -> dict[str, int]:
    staged = compile_mix(whole, [entry], once=True, **options)
    return Counter(
        staged.compiled.problem.nodes[node_index].name
        for node_index in staged.order
    )


def held(name: str, half: int) -> Json:
    return allocated(f"held-{name}", {"pool": name, "device": f"half-{half}"})


def rule(**selector: str) -> Json:
    taint = {"key": "example.com/hot", "effect": "NoSchedule"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rule"},
        "spec": {"deviceSelector": selector, "taint": taint},
    }


LAST = {"node-2": 1, "node-3": 1}


def nics(name: str, *, names: str = "ab", elsewhere: str = "") -> list[Json]:
    """A node with a small and a large NIC that can be shared, in a slice each; perhaps one for others."""
    shared: Json = {
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "4"}},
    }
    objects: list[Json] = [node(name)]
    for letter, kind in zip(names, ("small", "large"), strict=True):
        where = elsewhere if kind == "large" and elsewhere else name
        nic = device(kind, {"kind": kind}, **shared)
        objects.append(
            resource_slice(
                [nic],
                name=f"{name}-{letter}",
                pool=name,
                nodeName=where,
                count=2,
            )
        )
    return objects


def share(name: str, amount: str, **fields: str) -> Json:
    return allocated(
        f"held-{name}",
        {
            "pool": name,
            "device": "small",
            "consumedCapacity": {"memory": amount},
            **fields,
        },
    )


ONE = {"shareID": str(UUID(int=1))}
TWO = [*nics("node-0"), *nics("node-1")]
NICS = resource_slice([device("nic")], name="nics", pool="nics", allNodes=True)
APART = {f"node-{index}": 1 for index in range(4)}


@pytest.mark.parametrize(
    ("objects", "same"),
    [
        pytest.param([*TWO], True, id="nothing"),
        pytest.param(
            [*nics("node-0"), *nics("node-1", names="ba")],
            False,
            id="order of slices",
        ),
        pytest.param(
            [*nics("node-0"), *nics("node-1", elsewhere="node-2")],
            False,
            id="slices for others",
        ),
        pytest.param(
            [*TWO, share("node-0", "1", **ONE), share("node-1", "1", **ONE)],
            True,
            id="equal shares",
        ),
        pytest.param(
            [*TWO, share("node-0", "1", **ONE), share("node-1", "2", **ONE)],
            False,
            id="shares",
        ),
        pytest.param(
            [*TWO, share("node-0", "1", **ONE), share("node-1", "1")],
            False,
            id="a share and a whole",
        ),
    ],
)
def test_two_nodes(objects: list[Json], same: bool) -> None:
    counts = times(cluster(device_class(), objects, SMALL))
    assert counts == ({"node-0": 2} if same else {"node-0": 1, "node-1": 1})


@pytest.mark.parametrize(
    ("whole", "kinds"),
    [
        pytest.param(row(SMALL), {"node-0": 4}, id="what no selector reads"),
        pytest.param(row(BY_NAME), APART, id="what a selector reads"),
        pytest.param(
            row(NUMBERED), {"node-0": 4}, id="values that recur in the same way"
        ),
        pytest.param(
            row(NUMBERED, gpus("node-9", uuids="ab")),
            {"node-0": 4, "node-9": 1},
            id="that recur differently",
        ),
        pytest.param(
            row(SMALL, held("node-1", 0)),
            {"node-0": 3, "node-1": 1},
            id="what is in use",
        ),
        pytest.param(
            row(SMALL, held("node-1", 0), held("node-2", 0)),
            {"node-0": 2, "node-1": 2},
            id="in use twice",
        ),
        pytest.param(
            row(SMALL, held("node-2", 0), held("node-3", 1)),
            {"node-0": 2} | LAST,
            id="where",
        ),
        pytest.param(
            row(SMALL, gpus("node-9", kind="large")),
            {"node-0": 4, "node-9": 1},
            id="another kind",
        ),
        pytest.param(
            row(SMALL, gpus("node-9", bindsToNode=True)),
            {"node-0": 4, "node-9": 1},
            id="binds to node",
        ),
        pytest.param(
            row(SMALL, rule(device="half-0")),
            {"node-0": 4},
            id="a rule for all",
        ),
        pytest.param(
            row(SMALL, rule(pool="node-1")),
            {"node-0": 3, "node-1": 1},
            id="a rule for one",
        ),
        pytest.param(row(SMALL, NICS), APART, id="a common pool"),
    ],
)
def test_twins(whole: Cluster, kinds: dict[str, int]) -> None:
    assert times(whole) == kinds


def test_where_a_pod_may_go_tells_nodes_apart() -> None:
    whole = row(SMALL, pod("pod", "entry", nodeSelector={"zone": "a"}))
    assert times(whole, MixEntry.parse("default/pod", Source.POD)) == {
        "node-0": 2,
        "node-2": 2,
    }


def test_nodes_are_chosen_before() -> None:
    assert times(row(SMALL), nodes=["node-3", "node-1"]) == {"node-3": 2}


def test_a_closed_pool_tells_nodes_apart() -> None:
    gone = allocated("gone", {"pool": "node-1", "device": "none"})
    assert times(row(SMALL, gone)) == {"node-0": 4}
    assert times(row(SMALL, gone), strict=True) == {"node-0": 3, "node-1": 1}


def test_an_error_ends_first_fit_before_the_other_twins() -> None:
    expression = "device.attributes['gpu.example.com'].kind == 'small' || device.attributes['gpu.example.com'].size > 0"
    kinds = ("small", "small", "large", "small")
    rows = [
        gpus(f"node-{index}", kind=kind, units="1")
        for index, kind in enumerate(kinds)
    ]
    whole = cluster(
        device_class(), *rows, claim("entry", request("gpu", expression))
    )
    assert times(whole) == {"node-0": 3, "node-2": 1}
    [copy_count] = headroom(whole, "entry").alone
    assert (copy_count.number, copy_count.first_fit) == (3, 2)
    assert "no such key: size" in copy_count.reason


def test_a_node_that_does_not_exist() -> None:
    with pytest.raises(DrallocError, match='node "nowhere" does not exist'):
        compile_mix(
            row(SMALL),
            [WISH],
            nodes=["nowhere"],
            features=ALL_FEATURES,
            once=True,
        )
