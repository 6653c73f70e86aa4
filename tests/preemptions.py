"""Random crowded clusters, and the referee that tries every set of victims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import NamedTuple
from uuid import UUID

from hypothesis import assume
from hypothesis import strategies as st

from brute_force import best
from cluster_strategies import clusters
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.api import Pod, PodGroup
from dralloc.objects.api.workloads import PodSchedulingGroup
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from eviction_strategies import ANNOTATION
from settled import started, without
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

__all__ = ["Crowd", "cheapest", "crowds", "queues"]

GROUP = ClaimKey("default", "group")


class Crowd(NamedTuple):
    """A cluster with running pods, and a pod that waits."""

    cluster: Cluster
    pod: ClaimKey


@st.composite
def crowds(draw: st.DrawFn) -> Crowd:
    """A cluster in which first fit has placed all pods but one, for which it has a place in the empty cluster.

    Some of them are in a group, which may have to go as a whole.
    """
    initial = cluster(
        [draw(_limited(document)) for document in draw(clusters())]
    )
    newcomer, *others = draw(st.permutations(initial.pods))
    assume(
        started(initial, replace(initial, pods=(newcomer,))).pods
        != initial.pods
    )
    running = started(initial, replace(initial, pods=tuple(others)))
    whole = replace(
        running, pods=tuple(draw(_ranked(pod)) for pod in running.pods)
    )
    group = {
        "apiVersion": PodGroup.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "group", "namespace": "default"},
    }
    mode: str | Json | None = draw(
        st.sampled_from([None, "Pod", "PodGroup", {"all": {}}])
    )
    spec = {
        "disruptionMode": mode,
        "priority": draw(st.sampled_from([None, None, 1, 9])),
    }
    return Crowd(
        replace(
            whole,
            pod_groups={
                GROUP: PodGroup.model_validate({**group, "spec": spec})
            },
        ),
        newcomer.key,
    )


@st.composite
def _limited(draw: st.DrawFn, document: Json) -> Json:
    """A node with so much CPU, a pod that asks for some."""
    if document["kind"] == "Node" and draw(st.booleans()):
        return {
            **document,
            "status": {
                "allocatable": {
                    "cpu": str(draw(st.integers(1, 4))),
                    "pods": "10",
                }
            },
        }
    if document["kind"] == "Pod":
        container = {
            "name": "cpu",
            "resources": {"requests": {"cpu": str(draw(st.integers(1, 2)))}},
        }
        return {
            **document,
            "spec": {
                **document["spec"],
                "containers": [
                    *document["spec"].get("containers", ()),
                    container,
                ],
            },
        }
    return document


@st.composite
def _ranked(draw: st.DrawFn, pod: Pod) -> Pod:
    """The pod with a priority and a cost, in the group or not; who waits is important, most often."""
    priority = (
        draw(st.integers(0, 3))
        if pod.spec.node_name
        else draw(st.sampled_from([2, 5, 5, 5]))
    )
    grouped = bool(pod.spec.node_name) and draw(st.booleans())
    group = PodSchedulingGroup(pod_group_name=GROUP.name) if grouped else None
    update = {"priority": priority, "scheduling_group": group}
    annotations = {ANNOTATION: str(draw(st.integers(0, 3)))}
    metadata = pod.metadata.model_copy(update={"annotations": annotations})
    return pod.model_copy(
        update={
            "metadata": metadata,
            "spec": pod.spec.model_copy(update=update),
        }
    )


@st.composite
def queues(draw: st.DrawFn) -> Cluster:
    """A node with partitions of some units in all: one is in use, the important pods need more than is free.

    Others that wait do not. There are as many partitions of each size as can be in use at a time. They may be for two
    pods each, and a pod may take one of several sizes.
    """
    total = draw(st.integers(3, 8))
    shared: Json = {}
    share: Json = {}
    part: Json = {}
    if draw(st.booleans()):
        shared = {
            "allowMultipleAllocations": True,
            "capacity": {"seats": {"value": "2"}},
        }
        share = {
            "shareID": str(UUID(int=1)),
            "consumedCapacity": {"seats": "1"},
        }
        part = {"capacity": {"requests": {"seats": "1"}}}
    partitions = [
        device(
            f"{size}-{index}",
            {"size": size},
            consumesCounters=consumes("gpu", units=str(size)),
            **shared,
        )
        for size in range(1, total + 1)
        for index in range(total // size)
    ]
    published: Json = {"pool": "node-0", "nodeName": "node-0", "count": 2}
    used = draw(st.integers(total // 2 + 1, total - 1))
    held = {
        "request": "gpu",
        "pool": "node-0",
        "device": f"{used}-0",
        **share,
    }
    free = total - used
    important = draw(
        st.lists(
            st.integers(free + 1, max(free + 1, total // 2)),
            min_size=1,
            max_size=3,
        )
    )
    lesser = draw(st.lists(st.integers(1, free), min_size=1, max_size=2))
    queue = [([size], draw(st.integers(2, 3))) for size in important]
    others = st.sampled_from([*important, used])
    for size in lesser:
        sizes = [size, *draw(st.lists(others, max_size=1))]
        queue.append((sizes, draw(st.integers(0, 2))))
    waiting = [
        [
            pod(f"p{index}", f"p{index}", priority=priority),
            claim(
                f"p{index}",
                request(
                    "gpu",
                    f"device.attributes['gpu.example.com'].size in {sizes}",
                    **part,
                ),
            ),
        ]
        for index, (sizes, priority) in enumerate(queue)
    ]
    return cluster(
        device_class(),
        node("node-0"),
        resource_slice(
            name="sets",
            sharedCounters=[counters("gpu", units=str(total))],
            **published,
        ),
        resource_slice(partitions, **published),
        pod("low", "low", nodeName="node-0", priority=0),
        allocated("low", held),
        *waiting,
    )


class _Unit(NamedTuple):
    pods: tuple[Pod, ...]
    priority: int


def cheapest(crowd: Crowd, cost: str, gang: str = "") -> tuple[int, ...] | None:
    """What the cheapest victims cost, most important first: everybody who could be evicted is, or is not."""
    whole = crowd.cluster
    companions = _companions(crowd, gang)
    units = [
        unit
        for unit in _units(whole)
        if unit.priority < _asked(whole, crowd.pod, gang)[1]
        and companions.isdisjoint(pod.key for pod in unit.pods)
    ]
    subsets = chain.from_iterable(
        combinations(units, size) for size in range(len(units) + 1)
    )
    admitting = [
        _cost(subset, units, cost)
        for subset in subsets
        if _is_admitted(crowd, subset, gang)
    ]
    return min(admitting, default=None)


def _units(whole: Cluster) -> list[_Unit]:
    spec = whole.pod_groups[GROUP].spec
    running = [pod for pod in whole.pods if pod.spec.node_name]
    together = tuple(
        pod
        for pod in running
        if pod.pod_group and spec.disruption_mode not in (None, "Pod")
    )
    alone = [
        _Unit((pod,), pod.spec.priority or 0)
        for pod in running
        if pod not in together
    ]
    highest = max((pod.spec.priority or 0 for pod in together), default=0)
    return (
        [
            *alone,
            _Unit(
                together, highest if spec.priority is None else spec.priority
            ),
        ]
        if together
        else alone
    )


def _companions(crowd: Crowd, gang: str) -> set[ClaimKey]:
    """The pods of the newcomer's gang, which nobody evicts for it."""
    pods = crowd.cluster.pods
    own = next(
        pod.metadata.labels.get(gang) for pod in pods if pod.key == crowd.pod
    )
    return {
        pod.key
        for pod in pods
        if own is not None and pod.metadata.labels.get(gang) == own
    }


def _asked(
    whole: Cluster, pod: ClaimKey, gang: str
) -> tuple[set[ClaimKey], int]:
    """Who is to be admitted, and the lowest priority of them."""
    demands = compile_cluster(whole, gang=gang).problem.demands
    named = next(demand.gang for demand in demands if demand.key == pod)
    wanted = [
        demand
        for demand in demands
        if demand.key == pod or (named and demand.gang == named)
    ]
    return {demand.key for demand in wanted}, min(
        demand.priority for demand in wanted
    )


def _is_admitted(crowd: Crowd, evicted: Sequence[_Unit], gang: str) -> bool:
    keys, _ = _asked(crowd.cluster, crowd.pod, gang)
    remaining = without(
        crowd.cluster, {pod.key for unit in evicted for pod in unit.pods}
    )
    problem = compile_cluster(remaining, gang=gang).whole
    demands = tuple(
        replace(demand, weight=1)
        for demand in problem.demands
        if demand.key in keys
    )
    return best(replace(problem, demands=demands))[0] == len(keys)


def _cost(
    evicted: Sequence[_Unit], units: Sequence[_Unit], cost: str
) -> tuple[int, ...]:
    pods = sum(len(unit.pods) for unit in evicted)
    ranks = [
        sum(len(unit.pods) for unit in evicted if unit.priority == priority)
        for priority in sorted({unit.priority for unit in units}, reverse=True)
    ]
    if cost == "priority":
        return tuple(ranks)
    if cost == "pods":
        return (pods, *ranks)
    return (
        sum(
            int(pod.metadata.annotations[ANNOTATION])
            for unit in evicted
            for pod in unit.pods
        ),
        pods,
        *ranks,
    )
