"""How many more fit, and on how few nodes, against what `allocate` places of so many objects."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from changed_objects import only
from dralloc import stranded
from dralloc.ask.allocate import allocate
from dralloc.ask.whatif import (
    MixEntry,
    fewest_nodes,
    headroom,
    partition_layout,
)
from dralloc.ask.whatif.mix_entries import Source
from dralloc.compile.compiler.pod_rules import PodRules
from dralloc.objects.api import Node, Pod, ResourceClaim, ResourceSlice
from dralloc.objects.api.base import changed
from dralloc.objects.choices import Ignored
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import CheckError
from dralloc.objects.names import ClaimKey
from examples import INDEPENDENT, examples
from scenario_strategies import bound_pod, crowded_clusters, tainted_node
from wire import claim, cluster, device_class, gpus, request, resource_slice

MOST = 12
THOROUGH = settings(
    max_examples=examples(40),
    backend=INDEPENDENT,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def of_pod(name: str) -> MixEntry:
    return MixEntry(ClaimKey("default", name), Source.POD)


def test_a_node_without_cpu_has_no_room() -> None:
    slices = resource_slice(gpus(4), nodeName="a")
    cluster_state = cluster(
        device_class(),
        tainted_node("a"),
        slices,
        claim("c", request()),
        bound_pod("p", "c", cpu="1000"),
    )
    [count] = headroom(cluster_state, of_pod("p")).alone
    assert (count.number, count.bound) == (0, 0)


def test_pods_that_run_take_of_what_there_is() -> None:
    slices = resource_slice(gpus(4), nodeName="a")
    running = bound_pod("r", cpu="3", nodeName="a")
    wanted = [claim("c", request()), bound_pod("p", "c", cpu="2")]
    [count] = headroom(
        cluster(device_class(), tainted_node("a"), slices, running, wanted),
        of_pod("p"),
    ).alone
    assert (count.number, count.bound, count.per_device) == (2, 2, 2)


def test_who_keeps_a_distance_to_its_like_is_on_each_node_once() -> None:
    names = [f"node-{index}" for index in range(3)]
    apart = {
        "labelSelector": {"matchLabels": {"app": "x"}},
        "topologyKey": "zone",
    }
    wanted = bound_pod(
        "p",
        "c",
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [apart]
            }
        },
    )
    wanted["metadata"]["labels"] = {"app": "x"}
    cluster_state = cluster(
        device_class(),
        [
            tainted_node(name, zone="east" if name == "node-0" else "west")
            for name in names
        ],
        [
            resource_slice(gpus(2), name=name, pool=name, nodeName=name)
            for name in names
        ],
        claim("c", request()),
        wanted,
    )
    [count] = headroom(cluster_state, of_pod("p")).alone
    assert (count.number, count.bound) == (2, 2)


def test_pods_need_nodes_for_their_cpu() -> None:
    slices = resource_slice(gpus(4), nodeName="a")
    cluster_state = cluster(
        device_class(),
        tainted_node("a"),
        slices,
        claim("c", request()),
        bound_pod("p", "c", cpu="3"),
    )
    answer = fewest_nodes(
        cluster_state, MixEntry(ClaimKey("default", "p"), Source.POD, 4)
    )
    assert answer.cost == answer.bound == 2


def with_copies(whole: Cluster, pod: Pod, copy_count: int) -> Cluster:
    """The cluster in which nothing is pending but so many copies of a pod, with claims of their own."""
    settled = [
        settled_pod for settled_pod in whole.pods if settled_pod.spec.node_name
    ]
    claims = [claim for claim in whole.claims if claim.is_allocated]
    used = {
        settled_pod.key: whole.claims_of_pods[settled_pod.key]
        for settled_pod in settled
    }
    for copy_index in range(copy_count):
        copies = [
            copied(whole, key, copy_index)
            for key in whole.claims_of_pods[pod.key]
        ]
        metadata = changed(pod.metadata, name=f"{pod.name}-{copy_index}")
        again = changed(
            pod, metadata=metadata, spec=changed(pod.spec, node_name=None)
        )
        settled.append(again)
        claims += copies
        used[again.key] = tuple(claim.key for claim in copies)
    return replace(
        whole, pods=tuple(settled), claims=tuple(claims), claims_of_pods=used
    )


def copied(whole: Cluster, key: ClaimKey, copy_index: int) -> ResourceClaim:
    claim = whole.claim(key)
    assert claim is not None
    return changed(
        claim.unallocated(),
        metadata=changed(claim.metadata, name=f"{key.name}-{copy_index}"),
    )


def test_what_the_objects_forbid_is_withheld_whatever_the_compiler_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The compiler overlooks what pods take of their nodes."""

    monkeypatch.setattr(PodRules, "applied", lambda _, problem, **__: problem)
    cluster_state = cluster(
        device_class(),
        tainted_node("a"),
        resource_slice(gpus(4), nodeName="a"),
        claim("c", request()),
        bound_pod("p", "c", cpu="3"),
    )
    with pytest.raises(CheckError, match="no room on node a"):
        headroom(cluster_state, of_pod("p"))


@THOROUGH
@given(crowded_clusters(most_claims=2, company=True))
def test_headroom_minds_the_company_of_pods(whole: Cluster) -> None:
    """Every count passes the checker of objects, and no more can be placed."""
    for pod in whole.pods:
        [count] = headroom(whole, of_pod(pod.name)).alone
        assert count.number == count.bound
        assert count.number is not None
        plan = allocate(with_copies(whole, pod, count.number + 1))
        assert len(plan.solution.placements) == count.number


@THOROUGH
@given(crowded_clusters(most_claims=2))
def test_headroom_agrees_with_allocate(whole: Cluster) -> None:
    for pod in whole.pods:
        [count] = headroom(whole, of_pod(pod.name)).alone
        assert count.number == count.bound
        assert count.number is not None
        assert count.number < MOST
        plan = allocate(with_copies(whole, pod, count.number + 1))
        assert len(plan.solution.placements) == count.number
        greedy = allocate(
            with_copies(whole, pod, count.number + 1), "first-fit"
        )
        assert len(greedy.solution.placements) == count.first_fit


@THOROUGH
@given(crowded_clusters())
def test_the_fewest_nodes_agree_with_allocate(whole: Cluster) -> None:
    """So many copies of the only kind of node hold everything, one less does not."""
    pod = whole.pods[0]
    mine = replace(whole, nodes=whole.nodes[:1])
    bare = replace(mine, pods=(), claims=(), claims_of_pods={})
    pod_count = 3
    fitting = allocate(
        with_nodes(mine, bare, pod, pod_count, pod_count)
    ).solution.placements
    assume(len(fitting) == pod_count)
    answer = fewest_nodes(
        mine,
        MixEntry(pod.key, Source.POD, pod_count),
        kinds={"kind": whole.nodes[0].name},
    )
    assert answer.exact
    assert (
        len(
            allocate(
                with_nodes(mine, bare, pod, pod_count, int(answer.cost))
            ).solution.placements
        )
        == pod_count
    )
    less = (
        allocate(
            with_nodes(mine, bare, pod, pod_count, int(answer.cost) - 1)
        ).solution.placements
        if answer.cost > 1
        else ()
    )
    assert len(less) < pod_count


@THOROUGH
@given(crowded_clusters(company=True))
def test_layouts_do_not_depend_on_what_else_pods_and_nodes_say(
    whole: Cluster,
) -> None:
    """They serve pods of one device each as if these said nothing beside devices and the nodes that they may have."""
    single = [pod for pod in whole.pods if asks_for_one_device(whole, pod)]
    assume(single)
    beside_devices = [rule for rule in Ignored if rule is not Ignored.TAINTS]
    entry = MixEntry(single[0].key, Source.POD, 3)
    layout, ignoring = (
        partition_layout(whole, entry, ignore=rules)
        for rules in ((), beside_devices)
    )
    assert (layout.on_demand, layout.plans, layout.left_out) == (
        ignoring.on_demand,
        ignoring.plans,
        ignoring.left_out,
    )


def asks_for_one_device(whole: Cluster, pod: Pod) -> bool:
    claims = [whole.claim(key) for key in whole.pod_claims(pod)]
    requests = [
        request.exactly
        for claim in claims
        if claim
        for request in claim.spec.devices.requests
    ]
    return [exactly.count for exactly in requests if exactly] == [1]


def with_nodes(
    whole: Cluster, bare: Cluster, pod: Pod, pods: int, nodes: int
) -> Cluster:
    """So many copies of the first node, none of which is cordoned, and so many copies of a pod."""
    filled = with_copies(
        replace(
            bare,
            pods=(),
            claims=whole.claims,
            claims_of_pods=whole.claims_of_pods,
        ),
        pod,
        pods,
    )
    mine = [
        resource_slice
        for resource_slice in whole.slices
        if resource_slice.spec.node_name == whole.nodes[0].name
    ]
    copy_indices = range(nodes)
    return replace(
        filled,
        claims=tuple(
            claim for claim in filled.claims if not claim.is_allocated
        ),
        claims_of_pods={
            copied_pod.key: filled.claims_of_pods[copied_pod.key]
            for copied_pod in filled.pods
        },
        nodes=tuple(
            node_again(whole.nodes[0], copy_index)
            for copy_index in copy_indices
        ),
        slices=tuple(
            slice_again(resource_slice, whole.nodes[0], copy_index)
            for copy_index in copy_indices
            for resource_slice in mine
        ),
    )


def node_again(node: Node, copy_index: int) -> Node:
    metadata = changed(node.metadata, name=f"{node.name}-{copy_index}")
    return changed(
        node, metadata=metadata, spec=changed(node.spec, unschedulable=False)
    )


def slice_again(
    resource_slice: ResourceSlice, node: Node, copy_index: int
) -> ResourceSlice:
    pool = changed(
        resource_slice.spec.pool,
        name=f"{resource_slice.spec.pool.name}-{copy_index}",
    )
    metadata = changed(
        resource_slice.metadata,
        name=f"{resource_slice.metadata.name}-{copy_index}",
    )
    return changed(
        resource_slice,
        metadata=metadata,
        spec=changed(
            resource_slice.spec,
            node_name=f"{node.name}-{copy_index}",
            pool=pool,
        ),
    )


@THOROUGH
@given(crowded_clusters())
def test_what_is_stranded_agrees_with_allocate(whole: Cluster) -> None:
    """Of equal devices all that are free are of use, or none."""
    for pod in whole.pods:
        if not pod.spec.node_name:
            alone = only(whole, [pod.key])
            for row in stranded(alone).pools:
                fits = bool(
                    allocate(alone, nodes=[row.pool]).solution.placements
                )
                assert row.usable == (row.free if fits else 0)
                if not fits:
                    assert row.stranded == row.free
