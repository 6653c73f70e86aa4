"""What binds pods to nodes beside devices binds them in every mode."""

from __future__ import annotations

from typing import Any

import pytest

import wire
from dralloc import Mode, allocate
from dralloc.compile.compiler import compile_cluster
from dralloc.problem import DeviceIndex
from dralloc.solve.first_fit import first_fit
from scheduling_wire import AMPLE, node, pod
from wire import Json

HOST = "kubernetes.io/hostname"
SMALL = {"cpu": "4", "memory": "8Gi", "pods": "10"}
TWO_SMALL = [node("a", SMALL), node("b", SMALL)]
TWO = [node("a"), node("b")]
JOB = {"job": "x"}
TWO_ZONES = [
    node("a", labels={"zone": "east"}),
    node("b", labels={"zone": "west"}),
]
TEMPLATE = {
    "apiVersion": wire.VERSION,
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [wire.request()]}}},
}


def devices() -> list[Json]:
    """Three GPUs for each of nodes a and b."""
    slices = [
        wire.resource_slice(
            wire.gpus(3), name=f"s-{name}", pool=name, nodeName=name
        )
        for name in ("a", "b")
    ]
    return [wire.device_class(), *slices, TEMPLATE]


def waiting(name: str, requests: Json | None = None, **spec: Any) -> Json:
    """A pod that waits for a GPU."""
    return pod(
        name,
        requests=requests,
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}],
        **spec,
    )


def apart(by: str = HOST, **labels: str) -> Json:
    return {"podAntiAffinity": _required(by, labels)}


def near(by: str = "zone", **labels: str) -> Json:
    return {"podAffinity": _required(by, labels)}


def _required(by: str, labels: Json) -> Json:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": by}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def evenly(**labels: str) -> Json:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    return {"labels": labels, "topologySpreadConstraints": [constraint]}


def on_port(port: int, **fields: str) -> Json:
    return {"ports": [{"containerPort": 80, "hostPort": port, **fields}]}


def many(count: int, *args: Any, **spec: Any) -> list[Json]:
    return [waiting(f"p{index}", *args, **spec) for index in range(count)]


CASES: dict[str, tuple[list[Json], int]] = {
    "nodes that say nothing limit nothing": ([node("a", {}), node("b", {}), *many(3, {"cpu": "99"})], 3),
    "CPU": ([*TWO_SMALL, *many(3, {"cpu": "3"})], 2),
    "memory": ([*TWO_SMALL, *many(5, {"memory": "4Gi"})], 4),
    "room for pods": ([node("a", {**AMPLE, "pods": "1"}), node("b", {**AMPLE, "pods": "2"}), *many(6)], 3),
    "what no node lists": ([*TWO, *many(1, {"hugepages-2Mi": "2Mi"})], 0),
    "what device plugins have": ([node("a", {**AMPLE, "v.io/x": "1"}), node("b"), *many(3, {"v.io/x": "1"})], 1),
    "pods on nodes": ([*TWO_SMALL, pod("q", on="a", requests={"cpu": "2"}), *many(3, {"cpu": "3"})], 1),
    "nodes that are overcommitted": (
        [node("a", SMALL), pod("q", on="a", requests={"cpu": "9"}), waiting("p0", {"cpu": "1"}), waiting("p1")],
        1,
    ),
    "init containers": (
        [*TWO_SMALL, *many(3, initContainers=[{"name": "i", "resources": {"requests": {"cpu": "4"}}}])],
        2,
    ),
    "overhead": ([*TWO_SMALL, *many(6, {"cpu": "1"}, overhead={"cpu": "1"})], 4),
    "a port on any address": ([*TWO, *many(4, container=on_port(80))], 2),
    "a port on two addresses": (
        [*TWO, *(waiting(f"p{n}", container=on_port(80, hostIP=f"10.0.0.{n % 2}")) for n in range(6))],
        4,
    ),
    "a port on one address and on any": (
        [node("a"), waiting("one", container=on_port(80, hostIP="10.0.0.1")), waiting("any", container=on_port(80))],
        1,
    ),
    "protocols of a port": ([node("a"), waiting("t", container=on_port(80)),
                             waiting("u", container=on_port(80, protocol="UDP"))], 2),
    "ports in use": ([*TWO, pod("q", on="a", container=on_port(80)), *many(2, container=on_port(80))], 1),
    "apart by node": ([*TWO, *many(3, labels=JOB, affinity=apart(**JOB))], 2),
    "apart from those that have no term": (
        [node("a"), *many(3, labels=JOB), waiting("alone", labels=JOB, affinity=apart(**JOB))],
        3,
    ),
    "apart from who is there": (
        [*TWO, pod("q", on="a", labels=JOB), *many(2, labels=JOB, affinity=apart(**JOB))],
        1,
    ),
    "who is there stays apart": ([*TWO, pod("q", on="a", affinity=apart(**JOB)), *many(4, labels=JOB)], 3),
    "those who are there are in nobody's way who has no term": (
        [
            *TWO,
            pod("q", on="a", affinity=apart(**JOB)),
            *(pod(f"r{n}", on="b", labels=JOB) for n in range(2)),
            *many(3, labels=JOB),
        ],
        3,
    ),
    "those who are there keep away who has a term": (
        [
            node("a"),
            *(pod(f"r{n}", on="a", labels=JOB) for n in range(3)),
            waiting("free", labels=JOB),
            waiting("alone", labels=JOB, affinity=apart(**JOB)),
        ],
        1,
    ),
    "apart by zone": ([*TWO_ZONES, *many(3, labels=JOB, affinity=apart("zone", **JOB))], 2),
    "apart by zone from others": (
        [*TWO_ZONES, pod("q", on="a", labels={"job": "y"}), *many(4, labels=JOB, affinity=apart("zone", job="y"))],
        3,
    ),
    "near to each other": ([*TWO_ZONES, *many(5, labels=JOB, affinity=near(**JOB))], 3),
    "near to who is there": ([*TWO_ZONES, pod("q", on="b", labels=JOB), *many(5, affinity=near(**JOB))], 3),
    "near to nobody": ([*TWO_ZONES, *many(2, affinity=near(**JOB))], 0),
    "nodes without the label": ([*TWO, *many(2, labels=JOB, affinity=near(**JOB))], 0),
    "on a node without the label nobody sees who came first": (
        [
            node("a", labels={"rack": "r"}),
            node("b"),
            waiting("first", labels=JOB, affinity=near(HOST, **JOB), nodeSelector={HOST: "b"}, priority=1),
            waiting("next", labels=JOB, affinity=near("rack", **JOB)),
        ],
        2,
    ),
    "evenly": ([*TWO_ZONES, waiting("other"), *many(4, **evenly(**JOB))], 5),
    "evenly beside who is there": (
        [*TWO_ZONES, *(pod(f"q{n}", on="b", labels=JOB) for n in range(3)), *many(5, **evenly(**JOB))],
        4,
    ),
    "evenly, where one domain is full": (
        [*TWO_ZONES, *many(2, nodeSelector={"zone": "east"}), *(waiting(f"e{n}", **evenly(**JOB)) for n in range(4))],
        5,
    ),
    "taints": ([node("a", taints=[{"key": "t", "effect": "NoSchedule"}]), node("b"), *many(4)], 3),
    "taints that are tolerated": (
        [
            node("a", taints=[{"key": "t", "effect": "NoExecute"}]),
            node("b"),
            *many(5, tolerations=[{"key": "t", "operator": "Exists"}]),
        ],
        5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("case", CASES)
def test_every_mode_minds(case: str, mode: Mode) -> None:
    objects, pod_count = CASES[case]
    plan = allocate(wire.cluster(devices(), objects), mode)
    assert len(list(plan.placed)) == pod_count
    assert all(
        result.driver == wire.DRIVER
        for allocation in plan.allocations.values()
        for result in allocation.devices.results
    )


@pytest.mark.parametrize(
    ("ignore", "case", "pod_count"),
    [
        ("cpu", "CPU", 3),
        ("memory,cpu", "memory", 5),
        ("pods", "room for pods", 6),
        ("hugepages", "what no node lists", 1),
        ("extended", "what device plugins have", 3),
        ("ports", "a port on any address", 4),
        ("affinity", "apart by node", 3),
        ("taints", "taints", 4),
        ("affinity", "near to nobody", 2),
        ("spread", "evenly, where one domain is full", 6),
    ],
)
def test_what_is_ignored_does_not_bind(
    ignore: str, case: str, pod_count: int
) -> None:
    plan = allocate(wire.cluster(devices(), CASES[case][0]), ignore=ignore)
    assert len(list(plan.placed)) == pod_count
    assert any("ignore, as asked" in str(finding) for finding in plan.findings)


def test_where_nothing_can_run_short_the_problem_stays_as_it_is() -> None:
    compiled = compile_cluster(
        wire.cluster(devices(), TWO, many(3, {"cpu": "1"}))
    )
    assert compiled.whole is compiled.problem


def test_what_runs_out_after_something_else_is_left_out() -> None:
    objects = [
        node("a", {"cpu": "4", "memory": "64Gi", "pods": "9"}),
        *many(9, {"cpu": "1", "memory": "1Gi"}),
    ]
    compiled = compile_cluster(wire.cluster(devices(), objects))
    assert list(compiled.whole.devices[DeviceIndex(-1)].capacity) == [
        "node cpu"
    ]
    assert len(first_fit(compiled.whole).placements) == 3


def test_caps_mean_devices_and_not_nodes() -> None:
    gpu = wire.device(
        "gpu",
        capacity={"memory": {"value": "80Gi"}},
        allowMultipleAllocations=True,
    )
    published = [wire.device_class(), wire.resource_slice([gpu], nodeName="a")]
    claims = [
        wire.claim(name, wire.request(capacity={"requests": {"memory": "2Gi"}}))
        for name in ("c0", "c1")
    ]
    pods = [
        pod(
            name,
            requests={"memory": "5Gi"},
            resourceClaims=[{"name": "gpu", "resourceClaimName": claim}],
        )
        for name, claim in (("p0", "c0"), ("p1", "c1"))
    ]
    plan = allocate(
        wire.cluster(published, node("a", SMALL), claims, pods),
        caps=["default=memory:3Gi"],
    )
    assert len(list(plan.placed)) == 1


def test_a_pod_of_the_same_name_as_its_claim_takes_cpu() -> None:
    pod_object = pod(
        "x",
        requests={"cpu": "8"},
        resourceClaims=[{"name": "gpu", "resourceClaimName": "x"}],
    )
    source = wire.cluster(
        *devices(), *TWO_SMALL, pod_object, wire.claim("x", wire.request())
    )
    assert allocate(source).solution.placements == ()
