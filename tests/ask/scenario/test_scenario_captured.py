"""Forty captured GPU nodes, tainted as usual, with CPU and memory in use: questions agree with `allocate`."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import yaml

from changed_objects import (
    homes_of,
    of_equal_rank,
    only,
    pending_again,
    settled_on,
)
from dralloc import explain, stranded
from dralloc.ask.allocate import allocate
from dralloc.ask.explain.changes import Cost
from dralloc.ask.whatif import MixEntry, defragment, drain, headroom
from dralloc.ask.whatif.mix_entries import Source
from dralloc.objects.api.base import changed
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from settled import started
from wire import Json, claim, cluster, device_class, pod, request
from wire_edits import with_node_like

NODES = 40
TAINT: Json = {
    "key": "nvidia.com/gpu",
    "value": "present",
    "effect": "NoSchedule",
}
TOLERATION: Json = {
    "key": "nvidia.com/gpu",
    "operator": "Exists",
    "effect": "NoSchedule",
}
KINDS = ("aws_eks_examples_gpu-efa", "oci_oke_examples_BM.GPU.GB200-v3.4")
DRIVERS = ("gpu.nvidia.com", "dra.net")


@pytest.fixture(scope="module")
def busy(shared: Path) -> Cluster:
    """Of the pods that wait in the end, some find no CPU, some no devices, some tolerate no taint."""
    random = Random(0)
    templates = [list(captured(shared, kind)) for kind in KINDS]
    names = [f"node-{index:02d}" for index in range(NODES)]
    slices = [
        copied(template, name)
        for node_index, name in enumerate(names)
        for template in templates[node_index % len(templates)]
    ]
    classes = [
        device_class(driver.split(".")[0], f'device.driver == "{driver}"')
        for driver in DRIVERS
    ]
    pods = [
        manifest
        for job_index in range(NODES)
        for manifest in training(job_index, random)
    ]
    early = cluster(
        classes, [gpu_node(name, random) for name in names], slices, pods
    )
    running = started(early, early)
    late = [
        manifest
        for job_index in range(NODES, NODES + 8)
        for manifest in training(job_index, random)
    ]
    late += [claim("plain", request(device_class="gpu")), pod("plain", "plain")]
    more = cluster(classes, late)
    return of_equal_rank(
        replace(
            running,
            claims=(*running.claims, *more.claims),
            pods=(*running.pods, *more.pods),
            claims_of_pods={**running.claims_of_pods, **more.claims_of_pods},
        )
    )


def captured(shared: Path, kind: str) -> Iterator[Json]:
    for part in ("gpu", "dranet"):
        path = (
            shared
            / "data"
            / "resourceslices"
            / f"{kind}_resourceslice-{part}.yaml"
        )
        for document in yaml.safe_load_all(path.read_text()):
            yield from document.get("items", [document])


def copied(template: Json, node: str) -> Json:
    again = deepcopy(template)
    again["metadata"] = {"name": f"{node}-{template['spec']['driver']}"}
    again["spec"] |= {
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
    }
    return again


def gpu_node(name: str, random: Random) -> Json:
    allocatable = {
        "cpu": str(random.choice((12, 24, 96))),
        "memory": random.choice(("64Gi", "512Gi")),
        "pods": "30",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "rack": name[-1]},
        },
        "spec": {"taints": [TAINT]},
        "status": {"allocatable": allocatable},
    }


def training(job_index: int, random: Random) -> list[Json]:
    name, devices = f"train-{job_index:02d}", random.choice((1, 2, 4, 4, 8))
    wanted = [request("gpu", device_class="gpu", count=devices)]
    if random.random() < 0.3:
        wanted.append(request("nic", device_class="dra"))
    requests = {"cpu": str(4 * devices), "memory": f"{8 * devices}Gi"}
    containers = [{"name": "main", "resources": {"requests": requests}}]
    return [
        claim(name, *wanted),
        pod(name, name, containers=containers, tolerations=[TOLERATION]),
    ]


def waiting(whole: Cluster) -> list[ClaimKey]:
    return [pod.key for pod in whole.pods if not pod.spec.node_name]


def test_drained_nodes(busy: Cluster) -> None:
    used = sorted(
        {pod.spec.node_name for pod in busy.pods if pod.spec.node_name}
    )
    for name in used[:6]:
        answer = drain(busy, name)
        leaving = [pod.key for pod in busy.pods if pod.spec.node_name == name]
        homes = homes_of(busy, answer.itinerary)
        assert settled_on(pending_again(busy, homes), homes) is not None
        others = [node.name for node in busy.nodes if node.name != name]
        best = allocate(
            only(pending_again(busy, leaving), leaving), nodes=others
        )
        assert answer.gone == answer.most == len(best.solution.placements)


def test_moves_that_make_room(busy: Cluster) -> None:
    answer = defragment(busy, 2, time_limit=60)
    homes = homes_of(busy, answer.itinerary)
    assert (
        settled_on(
            pending_again(busy, homes.keys() - set(waiting(busy))), homes
        )
        is not None
    )
    assert (
        len(answer.before.placements)
        == len(allocate(busy).solution.placements)
        <= len(answer.admitted)
    )


def test_what_explanations_suggest(busy: Cluster) -> None:
    """A pod that tolerates no taint is told of the taint, and of nothing that leaves the taint there."""
    explanation = explain(
        only(busy, [ClaimKey("default", "plain")]), pod="default/plain"
    )
    assert [suggestion.text for suggestion in explanation.suggestions] == [
        "lift node taint nvidia.com/gpu=present:NoSchedule is not tolerated"
    ]
    free = replace(
        busy,
        nodes=tuple(
            changed(node, spec=changed(node.spec, taints=()))
            for node in busy.nodes
        ),
    )
    assert allocate(
        only(free, [ClaimKey("default", "plain")])
    ).solution.placements
    seen = set()
    for key in waiting(busy):
        alone = only(busy, [key])
        explanation = explain(alone, pod=key)
        assert explanation.placed == bool(
            allocate(alone, "first-fit").solution.placements
        )
        for suggestion in explanation.suggestions:
            seen.add(suggestion.cost)
            if suggestion.cost is Cost.NODE:
                more = with_node_like(
                    alone, suggestion.text.removeprefix("add a node like ")
                )
                assert allocate(more, "first-fit").solution.placements
            if suggestion.cost is Cost.RELEASE:
                gone = {
                    pod.key
                    for pod in busy.pods
                    if suggestion.change.released & {*busy.pod_claims(pod)}
                }
                assert allocate(
                    released(alone, gone), "first-fit"
                ).solution.placements
    assert seen >= {Cost.NODE, Cost.RELEASE}


def released(whole: Cluster, gone: set[ClaimKey]) -> Cluster:
    """The cluster without some pods, whose claims hold nothing any more."""
    claims = {key for pod_key in gone for key in whole.claims_of_pods[pod_key]}
    return replace(
        whole,
        pods=tuple(pod for pod in whole.pods if pod.key not in gone),
        claims=tuple(
            claim for claim in whole.claims if claim.key not in claims
        ),
    )


def test_what_is_free_and_of_use(busy: Cluster) -> None:
    key = ClaimKey("default", "plain")
    assert all(row.usable == 0 for row in stranded(only(busy, [key])).pools)
    [count] = headroom(busy, MixEntry(key, Source.POD)).alone
    assert (count.number, count.bound) == (0, 0)
    tolerant = next(pod_key for pod_key in waiting(busy) if pod_key != key)
    alone = only(busy, [tolerant])
    fits = {
        node.name: bool(allocate(alone, nodes=[node.name]).solution.placements)
        for node in busy.nodes
    }
    rows = [row for row in stranded(alone).pools if row.driver == DRIVERS[0]]
    assert {row.pool: row.usable > 0 for row in rows} == {
        name: fits[name] for name in (row.pool for row in rows)
    }
